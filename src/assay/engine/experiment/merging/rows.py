"""Which rows of several logs become the rows of one: each key once; and where the logs disagree.

Rows of one key are equal if their content is, whatever the time at which a scorer was called. A failure that the next
run would try again yields to every other row. About 100 bytes a row are held while logs are compared, and no row.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

from assay.engine.run.existing import (
    COLUMNS,
    TRANSIENT,
    Commits,
    ExistingRow,
    Flags,
    blocks_of,
    columns_of,
)
from assay.sdk import IntArray, JsonObject, Log, canonical
from assay.store.keyset import KeySet
from assay.store.table.decode import decode_row, row_decoder
from assay.store.table.join import group_rows

Prefer = Literal["first", "newest"]
# of a scorer's call, which may be made again and says the same
_TIMES = ("timestamp", "evaluation_time")
_TORN = (0, 2)
_MOST_NAMED = 10
_ROW = [
    *COLUMNS,
    ("position", "i8"),
    ("content", "u8"),
    ("time", "f8"),
    ("behind", "?"),
    ("dropped", "?"),
]
_COMMIT = [
    ("key", "u8"),
    ("content", "u8"),
    ("time", "f8"),
    ("behind", "?"),
    ("transient", "?"),
    ("log", "i4"),
    ("number", "i4"),
]


class MergedRow(ExistingRow):
    """What decides which row stands for a key."""

    timestamp: float | None = None
    responses: list[str] | None = None


Asked = Callable[[MergedRow], bool]


def never(row: MergedRow) -> bool:
    return False


class RowsByCommit:
    """The rows of one log by commit: all labels of a scorer's call, or one row. Rows that `dropped` says are left out,
    those that are `behind` yield to all others."""

    def __init__(self, log: Log, dropped: Asked = never, behind: Asked = never) -> None:
        self.log = log
        self._rows: Any = np.fromiter(self._columns(dropped, behind), _ROW)
        self.table = Commits(self._rows)
        self.starts = np.flatnonzero(np.diff(self.table.commit, prepend=-1))

    def _columns(self, dropped: Asked, behind: Asked) -> Iterator[tuple[Any, ...]]:
        decode = row_decoder(MergedRow)
        for position, line in self.log.scan():
            if not line.strip():
                continue
            content = xxh3_64_intdigest(line)
            try:
                row = decode(line)
            except (ValueError, RecursionError):
                row = MergedRow("", part=_TORN)
            # rows of others may have none: then equal ones are one
            row.key = row.key or f"{content:016x}"
            time = row.timestamp or 0.0
            yield *columns_of(row), position, content, time, behind(row), dropped(row)

    def commits(self, log: int) -> Any:
        """Return the commits that count; `log` is this one's number."""
        first = self._rows[self.starts]
        found = np.empty(len(first), _COMMIT)
        for name in ("key", "time", "behind"):
            found[name] = first[name]
        if len(first):
            found["content"] = np.add.reduceat(self._rows["content"], self.starts)
        found["transient"] = self.table.commits_with(TRANSIENT)[self.starts]
        found["log"], found["number"] = log, np.arange(len(first))
        return found[self.table.complete[self.starts] & ~first["dropped"]]

    def meaning(self, commit: int) -> int:
        """Return a hash of the values of a commit's rows, where `content` is one of their bytes."""
        stop = self.starts[commit + 1] if commit + 1 < len(self.starts) else None
        places = self._rows["position"][self.starts[commit] : stop].tolist()
        return sum(_meaning(self.log.read(place)) for place in places) % 2**64

    def row(self, at: int) -> JsonObject:
        return decode_row(self.log.read(int(self._rows["position"][at])))


def _meaning(line: bytes) -> int:
    try:
        row: Any = msgspec.json.decode(line)
    except ValueError:
        return xxh3_64_intdigest(line)
    if isinstance(row, dict) and "scorer" in row:
        for name in _TIMES:
            row.pop(name, None)
    return xxh3_64_intdigest(canonical(row))


def _commits(logs: Sequence[RowsByCommit], prefer: Prefer | None) -> Any:
    """Return those of all logs by key, and which of them yields to others; equal ones in the order of the logs."""
    commits = np.concatenate([rows.commits(at) for at, rows in enumerate(logs)])
    age = -commits["time"] if prefer == "newest" else np.zeros(len(commits))
    yields = commits["behind"] | commits["transient"]
    return commits[np.lexsort((age, yields, commits["key"]))]


Place = tuple[int, int]


class Choice:
    """`keep` are flags of the rows of each log, `lost` the keys that another log's row of other content stands for.
    `conflicts` counts those about which a person has to decide, `repeated` the equal ones; `pairs` are the places of
    the first conflicts (a log's number, and a row's there): of the row that would stay, and of the other. `present`
    counts the commits that stay, `counts` their rows by outcome."""

    def __init__(self, logs: Sequence[RowsByCommit], prefer: Prefer | None = None) -> None:
        self.logs = logs
        commits = _commits(logs, prefer)
        groups = group_rows(commits["key"])
        winner = groups.first[groups.of_row]  # the first of each key stands for it
        is_first = winner == np.arange(len(winner))
        self._compare_meanings(commits, winner)
        unlike: Flags = commits["content"] != commits["content"][winner]
        self.present = len(groups)
        self.repeated = int(np.sum(~is_first & ~unlike))
        conflicts = np.flatnonzero(unlike & ~commits["transient"])
        self.conflicts = len(conflicts)
        order = np.lexsort((commits["number"][conflicts], commits["log"][conflicts]))
        self.pairs: list[tuple[Place, Place]] = [
            (self._place(commits[winner[at]]), self._place(commits[at]))
            for at in conflicts[order[:_MOST_NAMED]]
        ]
        self.lost: list[KeySet] = []
        self.keep: list[Flags] = []
        counts: Counter[str] = Counter()
        for at, rows in enumerate(logs):
            own = commits["log"] == at
            self.lost.append(KeySet(commits["key"][own & unlike].tolist()))
            self.keep.append(np.isin(rows.table.commit, commits["number"][own & is_first]))
            counts.update(rows.table.counts(self.keep[at]))
        self.counts = dict(+counts)

    def _compare_meanings(self, commits: Any, winner: IntArray) -> None:
        """Have values in place of bytes as the content of those that differ from the one that stands for their key."""
        content = commits["content"]
        suspect = np.flatnonzero((content != content[winner]) & ~commits["transient"])
        for at in {*suspect.tolist(), *winner[suspect].tolist()}:
            content[at] = self.logs[commits["log"][at]].meaning(commits["number"][at])

    def _place(self, commit: Any) -> Place:
        number = int(commit["log"])
        return number, int(self.logs[number].starts[commit["number"]])

    def blocks(self) -> Iterator[bytes]:
        """The rows that stay, raw, log by log."""
        pairs = zip(self.logs, self.keep, strict=True)
        return chain.from_iterable(blocks_of(rows.log, keep) for rows, keep in pairs)
