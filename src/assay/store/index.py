"""Finding items by id in a log that is too large to hold: 16 bytes an item (twice that while it is made)."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

import msgspec
import numpy as np

from assay.errors import UserError
from assay.interfaces import IntArray, Log
from assay.records import Item
from assay.store.items import decode_item

_CACHED_ITEMS = 64  # rows in completion order ask for the same few items again and again


class _Id(msgspec.Struct):
    id: str


class ItemIndex:
    """The items of a dataset's log, read once to check that each line is a row and no id is given twice.

    `content` is the hash of the lines. The log must not change while the index is in use.
    """

    def __init__(self, log: Log, *, source: str = "items.jsonl") -> None:
        self.log = log
        self.source = source
        hashes, positions = array("Q"), array("Q")
        content = blake2b(digest_size=16)
        decode = msgspec.json.Decoder(_Id).decode
        for number, (position, line) in enumerate(log.scan(), 1):
            content.update(line)
            content.update(b"\n")
            if not line or line.isspace():
                continue
            try:
                item_id = decode(line).id
            except (ValueError, RecursionError):
                item_id = decode_item(line, f"{source}, line {number}").id
            hashes.append(id_number(item_id))
            positions.append(position)
        self.content = content.hexdigest()
        order = np.argsort(np.frombuffer(hashes, np.uint64)) if hashes else np.zeros(0, np.int64)
        self._hashes = _reordered(hashes, order)
        self._positions = _reordered(positions, order)
        self._find = lru_cache(_CACHED_ITEMS)(self._look_up)
        self._refuse_repeated_ids()

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[Item]:
        """All items in the order of the file."""
        for number, (_, line) in enumerate(self.log.scan(), 1):
            if line and not line.isspace():
                yield decode_item(line, f"{self.source}, line {number}")

    def get(self, item_id: str) -> Item | None:
        found = self._find(item_id)
        return found[1] if found else None

    def position(self, item_id: str) -> int | None:
        """Where the item's line is in the log."""
        found = self._find(item_id)
        return found[0] if found else None

    def positions(self, item_ids: "array[int] | np.typing.NDArray[np.uint64]") -> IntArray:
        """Where the lines of many items are, by the hashes of their ids (see `id_number`); -1 for those not there.
        It takes equal hashes for equal ids: callers that cannot bear one case in 10**13 compare the ids as well."""
        if not len(item_ids) or not self._hashes:
            return np.full(len(item_ids), -1, np.int64)
        wanted, known = np.asarray(item_ids, np.uint64), np.frombuffer(self._hashes, np.uint64)
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found = np.frombuffer(self._positions, np.uint64)[at].astype(np.int64)
        return np.where(known[at] == wanted, found, -1)

    def _look_up(self, item_id: str) -> tuple[int, Item] | None:
        hashed = id_number(item_id)
        at = bisect_left(self._hashes, hashed)
        while at < len(self._hashes) and self._hashes[at] == hashed:
            position = self._positions[at]
            item = decode_item(self.log.read(position), self.source)
            if item.id == item_id:
                return position, item
            at += 1  # another id with the same hash
        return None

    def _refuse_repeated_ids(self) -> None:
        ordered = np.frombuffer(self._hashes, np.uint64) if self._hashes else np.zeros(0, np.uint64)
        groups: dict[int, dict[str, int]] = {}
        for at in np.flatnonzero(ordered[1:] == ordered[:-1]).tolist():
            known = groups.setdefault(self._hashes[at], {})
            for position in (self._positions[at], self._positions[at + 1]):
                item_id = decode_item(self.log.read(position), self.source).id
                if known.setdefault(item_id, position) != position:
                    raise self._repeated(item_id, {known[item_id], position})

    def _repeated(self, item_id: str, positions: set[int]) -> UserError:
        lines = [
            str(number)
            for number, (position, _) in enumerate(self.log.scan(), 1)
            if position in positions
        ]
        shown = item_id if len(item_id) <= 80 else f"{item_id[:77]}…"
        return UserError(
            f"two items have the id {shown!r}",
            where=f"{self.source}, lines {' and '.join(lines)}",
            fix="give each item its own `id`, or none: then it gets the hash of its content",
        )


def content_hash(log: Log) -> str:
    """What `ItemIndex.content` is, without the index."""
    content = blake2b(digest_size=16)
    for _, line in log.scan():
        content.update(line)
        content.update(b"\n")
    return content.hexdigest()


def id_number(item_id: str) -> int:
    """64 bits of an id: what `ItemIndex.positions` takes."""
    # Python's own hash differs between processes, which does no harm: an index is never stored.
    return hash(item_id) & 0xFFFF_FFFF_FFFF_FFFF


def _reordered(values: "array[int]", order: "np.typing.NDArray[np.int64]") -> "array[int]":
    return array("Q", np.frombuffer(values, np.uint64)[order].tobytes()) if values else values
