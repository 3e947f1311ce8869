"""The lines of a sidecar that are about rows, found by the rows' addresses."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay.engine.experiment.imports.patches import SHAPES, RowKind, RowLine, damaged
from assay.store.log import FileLog

_ROW = b'{"of":"'


class SidecarLines:
    """The lines of rows."""

    def __init__(self, path: Path) -> None:
        self._log = FileLog(path)
        self._kinds = {kind: _OfKind(self._log) for kind in SHAPES}
        self._whole = array("q")
        decode = msgspec.json.Decoder(_Place).decode
        for position, text in self._log.scan():
            if text.startswith(_ROW):
                try:
                    line = decode(text)
                except (ValueError, RecursionError) as error:
                    raise damaged(error) from None
                self._kinds[line.of].add(line.at, position) if line.was else self._whole.append(
                    position
                )

    def take(self, kind: RowKind, at: tuple[Any, ...], digest: str) -> RowLine | None:
        return self._kinds[kind].take(at, digest)

    def unused(self) -> bool:
        """Whether a row is no longer in the file."""
        return any(lines.unused() for lines in self._kinds.values())

    def whole_rows(self) -> Iterator[RowLine]:
        return map(_read, self._log.read_many(self._whole))


class _Place(msgspec.Struct, gc=False):
    """Where the row of a line stands."""

    of: RowKind
    at: tuple[Any, ...]
    was: str = ""


class _OfKind:
    """The lines of one kind of rows, found by address: 29 bytes for each."""

    def __init__(self, log: FileLog) -> None:
        self._log = log
        self._hashes, self._positions = array("q"), array("q")
        self._used = bytearray()
        self._next, self._ahead_at = 0, -1
        self._ahead: Iterator[bytes] = iter(())

    def add(self, at: tuple[Any, ...], position: int) -> None:
        self._hashes.append(hash(at))
        self._positions.append(position)
        self._used.append(0)

    def take(self, at: tuple[Any, ...], digest: str) -> RowLine | None:
        """The line of the row at an address: that of an equal row first, then the first one that no row has had."""
        sought, free = hash(at), None
        for number in self._candidates(sought):
            if self._used[number]:
                continue
            line = self._at(number)
            if line.at == at and line.was == digest:
                return self._use(number, line)
            if line.at == at and free is None:
                free = number, line
        return self._use(*free) if free is not None else None

    def unused(self) -> bool:
        return 0 in self._used

    def _candidates(self, sought: int) -> Iterator[int]:
        """The lines of an address, most often the one after the last."""
        if self._next < len(self._hashes) and self._hashes[self._next] == sought:
            yield self._next
        order, ordered = self._order
        at = bisect_left(ordered, sought)
        while at < len(ordered) and ordered[at] == sought:
            yield order[at]
            at += 1

    @cached_property
    def _order(self) -> "tuple[array[int], array[int]]":
        hashes = np.frombuffer(self._hashes, np.int64) if self._hashes else np.zeros(0, np.int64)
        order = np.argsort(hashes, kind="stable")
        return array("q", order.astype(np.int64).tobytes()), array("q", hashes[order].tobytes())

    def _use(self, number: int, line: RowLine) -> RowLine:
        self._used[number] = 1
        self._next = number + 1
        return line

    def _at(self, number: int) -> RowLine:
        if number != self._ahead_at:
            self._ahead = self._log.read_many(
                self._positions[each] for each in range(number, len(self._positions))
            )
        self._ahead_at = number + 1
        return _read(next(self._ahead))


_decode = msgspec.json.Decoder(RowLine).decode


def _read(text: bytes) -> RowLine:
    try:
        return _decode(text)
    except (ValueError, RecursionError) as error:
        raise damaged(error) from None
