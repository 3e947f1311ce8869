"""Which rows of several logs become the rows of one: each key once; and where the logs disagree.

Rows of one key are equal if their content is, whatever the time at which a scorer was called. A failure that the next
run would try again yields to every other row. Some 40 bytes a row are held while logs are compared, and no row.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from assay.engine.run.existing import TRANSIENT, Flags, Keys, Row, Table, blocks_of
from assay.interfaces import Log
from assay.store.keys import canonical
from assay.store.keyset import KeySet
from assay.store.repair import row_decoder

Prefer = Literal["first", "newest"]
_TIMES = ("timestamp", "evaluation_time")  # of a scorer's call, which may be made again and says the same
_TORN = (0, 2)


class MergedRow(Row):
    """What decides which row stands for a key."""

    timestamp: float | None = None
    responses: list[str] | None = None


Asked = Callable[[MergedRow], bool]


def never(row: MergedRow) -> bool:
    return False


class Rows:
    """The rows of one log by commit: all labels of a scorer's call, or one row. Rows that `dropped` says are left out,
    those that are `behind` yield to all others."""

    def __init__(self, log: Log, dropped: Asked = never, behind: Asked = never) -> None:
        self.log = log
        self._content, self._times, self._behind, self._left = array("Q"), array("d"), bytearray(), bytearray()
        self.table = Table(self._rows(dropped, behind))
        starts = np.flatnonzero(np.diff(self.table.commit, prepend=-1))
        self.starts = starts
        self.keys: Keys = self.table.keys[starts]
        self.content: Keys = _sums(np.array(self._content, np.uint64), starts)
        self.times = np.array(self._times, np.float64)[starts]
        self.transient: Flags = self.table.commits_with(TRANSIENT)[starts]
        self.behind: Flags = np.frombuffer(bytes(self._behind), np.bool_)[starts]
        self.usable: Flags = self.table.complete[starts] & ~np.frombuffer(bytes(self._left), np.bool_)[starts]

    def _rows(self, dropped: Asked, behind: Asked) -> Iterator[Row]:
        decode = row_decoder(MergedRow)
        for _, line in self.log.scan():
            if not line.strip():
                continue
            content = xxh3_64_intdigest(line)
            try:
                row = decode(line)
            except (ValueError, RecursionError):
                row = MergedRow("", part=_TORN)
            row.key = row.key or f"{content:016x}"  # rows of others may have none: then equal ones are one
            self._content.append(content)
            self._times.append(row.timestamp or 0.0)
            self._behind.append(behind(row))
            self._left.append(dropped(row))
            yield row

    def meanings(self, commits: Flags) -> None:
        """Compare these commits by their values instead of their bytes."""
        wanted, content = commits[self.table.commit], np.array(self._content, np.uint64)
        lines = (line for _, line in self.log.scan() if line.strip())
        for at, (line, is_wanted) in enumerate(zip(lines, wanted.tolist(), strict=False)):
            if is_wanted:
                content[at] = _meaning(line)
        self.content = np.where(commits, _sums(content, self.starts), self.content)

    def flags(self, commits: npt.NDArray[np.int64]) -> Flags:
        """The rows of some commits."""
        chosen = np.zeros(len(self.starts), np.bool_)
        chosen[commits] = True
        return chosen[self.table.commit] if len(chosen) else chosen


def _sums(content: Keys, starts: npt.NDArray[np.int64]) -> Keys:
    return np.add.reduceat(content, starts) if len(starts) else content


def _meaning(line: bytes) -> int:
    try:
        row: Any = msgspec.json.decode(line)
    except ValueError:
        return xxh3_64_intdigest(line)
    if isinstance(row, dict) and "scorer" in row:
        for name in _TIMES:
            row.pop(name, None)
    return xxh3_64_intdigest(canonical(row))


class Choice:
    """`keep` are flags of the rows of each log, `lost` the keys that another log's row of other content stands for.
    `conflicts` counts those about which a person has to decide, `repeated` the equal ones."""

    def __init__(self, logs: Sequence[Rows], prefer: Prefer | None = None) -> None:
        self.logs = logs
        number = np.concatenate([np.full(len(rows.keys), at) for at, rows in enumerate(logs)])
        commit = np.concatenate([np.arange(len(rows.keys)) for rows in logs])
        usable = np.concatenate([rows.usable for rows in logs])
        self._number, self._commit = number[usable], commit[usable]
        self._keys = np.concatenate([rows.keys for rows in logs])[usable]
        self._transient = np.concatenate([rows.transient for rows in logs])[usable]
        behind = np.concatenate([rows.behind for rows in logs])[usable]
        times = np.concatenate([rows.times for rows in logs])[usable]
        age = -times if prefer == "newest" else np.zeros(len(times))
        place = np.arange(len(times))
        self._order = np.lexsort((place, age, behind | self._transient, self._keys))
        ordered = self._keys[self._order]
        self._is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
        if (suspect := self._unlike() & ~self._transient[self._order]).any():
            self._look_again(suspect)
        unlike = self._unlike()
        self.repeated = int(np.sum(~self._is_first & ~unlike))
        self.lost = [self._keys_of(unlike, at) for at in range(len(logs))]
        self._open: Flags = unlike & ~self._transient[self._order]
        self.conflicts = int(np.sum(self._open))
        winners = self._order[self._is_first]
        self.keep = [rows.flags(self._commit[winners[self._number[winners] == at]]) for at, rows in enumerate(logs)]

    def _winners(self) -> npt.NDArray[np.int64]:
        """For each commit, in order of keys, that which stands for its key."""
        group = np.cumsum(self._is_first) - 1
        return self._order[self._is_first][group]

    def _unlike(self) -> Flags:
        """Those, in order of keys, whose content is not that of the commit that stands for their key."""
        content = np.zeros(len(self._order), np.uint64)
        for at, rows in enumerate(self.logs):
            own = self._number == at
            content[own] = rows.content[self._commit[own]]
        return content[self._order] != content[self._winners()]

    def _look_again(self, suspect: Flags) -> None:
        both = np.concatenate([self._order[suspect], self._winners()[suspect]])
        for at, rows in enumerate(self.logs):
            commits = np.zeros(len(rows.keys), np.bool_)
            commits[self._commit[both[self._number[both] == at]]] = True
            if commits.any():
                rows.meanings(commits)

    def _keys_of(self, chosen: Flags, number: int) -> KeySet:
        own = self._order[chosen]
        return KeySet(array("Q", self._keys[own[self._number[own] == number]].tobytes()))

    def pairs(self, most: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """The first conflicts: the log and the row of the one that would stay, and of the other."""
        losers, winners = self._order[self._open], self._winners()[self._open]
        first = np.argsort(losers)[:most]
        both = zip(winners[first].tolist(), losers[first].tolist(), strict=True)
        return [(self._place(winner), self._place(loser)) for winner, loser in both]

    def _place(self, at: int) -> tuple[int, int]:
        number = int(self._number[at])
        return number, int(self.logs[number].starts[self._commit[at]])

    def blocks(self) -> Iterator[bytes]:
        """The rows that stay, raw, log by log."""
        pairs = zip(self.logs, self.keep, strict=True)
        return chain.from_iterable(blocks_of(rows.log, keep) for rows, keep in pairs)

    def counts(self) -> dict[str, int]:
        """The rows that stay by outcome."""
        counts: dict[str, int] = {}
        for rows, keep in zip(self.logs, self.keep, strict=True):
            for name, count in rows.table.counts(keep).items():
                counts[name] = counts.get(name, 0) + count
        return {name: count for name, count in counts.items() if count}

    @property
    def present(self) -> int:
        """How many commits stay."""
        return int(np.sum(self._is_first))
