"""Which rows of several logs become the rows of one: each key once; and where the logs disagree.

Rows of one key are equal if their content is, whatever the time at which a scorer was called. A failure that the next
run would try again yields to every other row. About 100 bytes a row are held while logs are compared, and no row.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

from assay.engine.run.existing import TRANSIENT, Commits, Flags, Keys, Row, blocks_of
from assay.interfaces import Codes, IntArray, Log
from assay.store.keys import canonical
from assay.store.keyset import KeySet
from assay.store.table.decode import row_decoder

Prefer = Literal["first", "newest"]
# of a scorer's call, which may be made again and says the same
_TIMES = ("timestamp", "evaluation_time")
_TORN = (0, 2)
_MOST_NAMED = 10


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
        self._content, self._times, self._behind, self._left = (
            array("Q"),
            array("d"),
            bytearray(),
            bytearray(),
        )
        self.table = Commits(self._rows(dropped, behind))
        starts = np.flatnonzero(np.diff(self.table.commit, prepend=-1))
        self.starts = starts
        self.keys: Keys = self.table.keys[starts]
        self.content: Keys = _sums(np.frombuffer(self._content, np.uint64), starts)
        self.times = np.frombuffer(self._times, np.float64)[starts]
        self.transient: Flags = self.table.commits_with(TRANSIENT)[starts]
        self.behind: Flags = np.frombuffer(bytes(self._behind), np.bool_)[starts]
        self.usable: Flags = (
            self.table.complete[starts] & ~np.frombuffer(bytes(self._left), np.bool_)[starts]
        )

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
            # rows of others may have none: then equal ones are one
            row.key = row.key or f"{content:016x}"
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

    def flags(self, commits: Codes) -> Flags:
        """The rows of some commits."""
        chosen = np.zeros(len(self.starts), np.bool_)
        chosen[commits] = True
        return chosen[self.table.commit] if len(chosen) else chosen


def _sums(content: Keys, starts: IntArray) -> Keys:
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


class _Commits:
    """Those of several logs, in the order of their keys; the first of each key stands for it."""

    def __init__(self, logs: Sequence[Rows], prefer: Prefer | None) -> None:
        self.logs = logs
        number = np.concatenate(
            [np.full(len(rows.keys), at, np.int32) for at, rows in enumerate(logs)]
        )
        commit = np.concatenate([np.arange(len(rows.keys), dtype=np.int32) for rows in logs])
        usable = np.concatenate([rows.usable for rows in logs])
        keys = np.concatenate([rows.keys for rows in logs])[usable]
        transient = np.concatenate([rows.transient for rows in logs])[usable]
        behind = np.concatenate([rows.behind for rows in logs])[usable]
        times = np.concatenate([rows.times for rows in logs])[usable]
        age = -times if prefer == "newest" else np.zeros(len(times), np.int8)
        # equal ones stay in the order of the logs
        order = np.lexsort((age, behind | transient, keys))
        self.number, self.commit = number[usable][order], commit[usable][order]
        self.keys, self.transient = keys[order], transient[order]
        self.is_first: Flags = np.append(True, self.keys[1:] != self.keys[:-1])[: len(order)]
        self.winner = np.flatnonzero(self.is_first)[np.cumsum(self.is_first) - 1]

    def unlike(self) -> Flags:
        """Those whose content is not that of the commit that stands for their key."""
        content = np.zeros(len(self.keys), np.uint64)
        for at, rows in enumerate(self.logs):
            own = self.number == at
            content[own] = rows.content[self.commit[own]]
        return content != content[self.winner]

    def look_again(self, suspect: Flags) -> None:
        """Compare these and those that would stand for them by their values instead of their bytes."""
        both = np.concatenate([np.flatnonzero(suspect), self.winner[suspect]])
        for at, rows in enumerate(self.logs):
            commits = np.zeros(len(rows.keys), np.bool_)
            commits[self.commit[both[self.number[both] == at]]] = True
            if commits.any():
                rows.meanings(commits)

    def place(self, at: int) -> tuple[int, int]:
        """The number of a commit's log, and of its first row there."""
        number = int(self.number[at])
        return number, int(self.logs[number].starts[self.commit[at]])


Place = tuple[int, int]


class Choice:
    """`keep` are flags of the rows of each log, `lost` the keys that another log's row of other content stands for.
    `conflicts` counts those about which a person has to decide, `repeated` the equal ones; `pairs` are the places of
    the first conflicts: of the row that would stay, and of the other. `present` counts the commits that stay, `counts`
    their rows by outcome."""

    def __init__(self, logs: Sequence[Rows], prefer: Prefer | None = None) -> None:
        commits = _Commits(logs, prefer)
        if (suspect := commits.unlike() & ~commits.transient).any():
            commits.look_again(suspect)
        unlike = commits.unlike()
        self.logs = [rows.log for rows in logs]
        self.sizes = [len(rows.table.keys) for rows in logs]
        self.present = int(np.sum(commits.is_first))
        self.repeated = int(np.sum(~commits.is_first & ~unlike))
        self.lost = [
            KeySet(array("Q", commits.keys[unlike & (commits.number == at)].tobytes()))
            for at in self._places
        ]
        undecided = np.flatnonzero(unlike & ~commits.transient)
        self.conflicts = len(undecided)
        order = np.lexsort((commits.commit[undecided], commits.number[undecided]))[:_MOST_NAMED]
        self.pairs: list[tuple[Place, Place]] = [
            (commits.place(int(commits.winner[at])), commits.place(int(at)))
            for at in undecided[order]
        ]
        own = [commits.commit[commits.is_first & (commits.number == at)] for at in self._places]
        self.keep = [rows.flags(chosen) for rows, chosen in zip(logs, own, strict=True)]
        counts: Counter[str] = Counter()
        for rows, keep in zip(logs, self.keep, strict=True):
            counts.update(rows.table.counts(keep))
        self.counts = {name: count for name, count in counts.items() if count}

    @property
    def _places(self) -> range:
        return range(len(self.logs))

    def blocks(self) -> Iterator[bytes]:
        """The rows that stay, raw, log by log."""
        pairs = zip(self.logs, self.keep, strict=True)
        return chain.from_iterable(blocks_of(log, keep) for log, keep in pairs)
