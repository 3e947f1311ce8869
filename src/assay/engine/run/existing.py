"""The rows that an artefact already has, and how they are brought in line with a new plan.

Rows that the plan no longer contains are set aside under `superseded/`, from where they come back when a later plan
has them again. Failures that deserve another try are set aside too, so that no cell ever has two rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.engine.calls.progress import Note
from assay.sdk import Hashes, Kind, Log, Mask, Store, short
from assay.store.keyset import KeySet
from assay.store.table.decode import open_rows, row_decoder

Keys = Hashes
Flags = Mask

STATES = ("ok", "scored", "refused", "skipped", "unparsed", "errored", "transient")
_STATE = {name: number for number, name in enumerate(STATES)}
TRANSIENT, _ERRORED = _STATE["transient"], _STATE["errored"]


class ExistingRow(msgspec.Struct):
    """What is needed of a row to know which work it stands for."""

    item_id: str
    key: str = ""
    outcome: str = "ok"
    error_kind: str | None = None
    part: tuple[int, int] = (0, 1)


class Existing:
    """Holds 8 bytes a row, its key, while a step runs."""

    def __init__(self, store: Store, kind: Kind, id: str) -> None:
        self._log = store.log(kind, id)
        self._sealed = store.manifest(kind, id)
        self._superseded = store.log(kind, id, "superseded")
        self._rejected = store.log(kind, id, "rejected")
        self._keys = KeySet()
        self._counts: Counter[str] = Counter()
        self.total = 0

    def compare(
        self,
        planned: Iterable[tuple[bytes, bool]],
        *,
        retry_errors: bool | None = False,
        fresh: bool = False,
        repair: bool = False,
        note: Note = lambda text: None,
    ) -> "RowComparison | None":
        """Return how the rows compare with a plan; None if there are no rows at all, and then the plan
        is not looked at.

        `planned` yields every key of the plan and whether its cell is among those that run now:
        only there are failures tried again; with `retry_errors` None nowhere.
        """
        decode = row_decoder(ExistingRow)
        damage = [] if self._sealed is None else self._log.damage(self._sealed)
        found = open_rows(
            self._log, self._rejected if repair else None, decode, damage=damage, notice=note
        )
        rows = _commits(found)
        old = _commits(open_rows(self._superseded, self._rejected if repair else None, decode))
        if not len(rows.keys) and not len(old.keys):
            return None
        plan, runs_now = _plan(planned)
        keep = rows.first_commits(rows.complete & np.isin(rows.keys, plan)) & (not fresh)
        again = rows.commits_with(TRANSIENT)
        if retry_errors:
            again |= rows.commits_with(_ERRORED)
        retried = keep & again & np.isin(rows.keys, runs_now) & (retry_errors is not None)
        keep &= ~retried
        failed = old.commits_with(TRANSIENT) | old.commits_with(_ERRORED)
        back = (
            old.complete
            & ~failed
            & np.isin(old.keys, plan)
            & ~np.isin(old.keys, rows.keys[keep | retried])
        )
        back = old.first_commits(back) & (not fresh)
        return RowComparison(rows, old, keep, back, retried, runs_now)

    def settle(
        self,
        planned: Iterable[tuple[bytes, bool]],
        *,
        retry_errors: bool | None = False,
        fresh: bool = False,
        note: Note = lambda text: None,
    ) -> None:
        """Keep what is planned, set aside the rest, bring back what is planned again."""
        found = self.compare(
            planned, retry_errors=retry_errors, fresh=fresh, repair=True, note=note
        )
        if found is None:
            return
        if found.stale:
            note(f"{found.stale} rows are no longer in the plan: set aside in superseded/")
        if found.returning:
            note(
                f"{found.returning} rows that had been set aside are in the plan again: brought back"
            )
        self._rewrite(found.keep, found.back)
        self._count_kept(found.rows, found.keep)
        self._count_kept(found.old, found.back)
        self._keys = KeySet(found.kept_keys())

    def __contains__(self, key: bytes) -> bool:
        return key in self._keys

    def count(self, outcome: str, error_kind: str | None, first: bool = True) -> None:
        """A new row was written."""
        self._counts[outcome] += 1
        self._counts["transient"] += error_kind == "transient"
        self.total += first

    def counts(self) -> dict[str, int]:
        """Rows by outcome; `transient` are those of the errored that the next run tries again."""
        return {name: self._counts[name] for name in STATES if self._counts[name]}

    def _rewrite(self, keep: Flags, back: Flags) -> None:
        """First a copy of what goes, then the new file, then the superseded file without what came back: a crash
        between two of these leaves a row in both places, and the next time it is looked at once."""
        if keep.all() and not back.any():
            return
        gone = 0
        for block in blocks_of(self._log, ~keep):
            gone += block.count(b"\n")
            self._superseded.append(block)
        self._superseded.sync()

        def lines() -> Iterator[bytes]:
            yield from blocks_of(self._log, keep)
            yield from blocks_of(self._superseded, back)

        self._log.replace(lines())
        if back.any():
            self._superseded.replace(
                blocks_of(self._superseded, np.concatenate([~back, np.ones(gone, np.bool_)]))
            )

    def _count_kept(self, table: "Commits", chosen: Flags) -> None:
        self._counts.update(table.counts(chosen))
        self.total += int(np.sum(table.first & chosen))


@dataclass(eq=False)
class RowComparison:
    """Which rows stay, come back, or are tried again."""

    rows: "Commits"
    old: "Commits"
    keep: Flags
    back: Flags
    again: Flags
    runs_now: Keys

    def __post_init__(self) -> None:
        self.stale = int(np.sum(self.rows.first & ~self.keep & ~self.again))
        self.retried = int(np.sum(self.rows.first & self.again))
        self.returning = int(np.sum(self.old.first & self.back))

    def kept_keys(self) -> Keys:
        return np.concatenate([self.rows.keys[self.keep], self.old.keys[self.back]])

    def missing(self) -> int:
        """Cells among those that run now that have no row."""
        return int(np.sum(~np.isin(self.runs_now, self.kept_keys())))


COLUMNS = [("key", "u8"), ("state", "u1"), ("part", "i4"), ("size", "i4")]
_CELL = [("key", "u8"), ("now", "?")]


def columns_of(row: ExistingRow) -> tuple[int, int, int, int]:
    """Return what `Commits` keeps of a row, as `COLUMNS`."""
    transient = row.outcome == "errored" and row.error_kind == "transient"
    state = TRANSIENT if transient else _STATE.get(row.outcome, _ERRORED)
    return short(row.key), state, row.part[0], max(row.part[1], 1)


class Commits:
    """Rows as columns, in the order of the file. The labels of one scorer call are one commit: neighbours with one
    key, numbered from 0. A commit that was torn between two of its lines is not complete. `commit` numbers them.
    `rows` is an array that has the fields of `COLUMNS`."""

    def __init__(self, rows: Any) -> None:
        self.keys: Keys = rows["key"].copy()
        self.state: npt.NDArray[np.uint8] = rows["state"].copy()
        part = rows["part"]
        self.first: Flags = part == 0
        begins = self.first.copy()
        begins[:1] = True
        begins[1:] |= (self.keys[1:] != self.keys[:-1]) | (part[1:] != part[:-1] + 1)
        self.commit = np.cumsum(begins, dtype=np.int32) - 1
        self.complete: Flags = np.bincount(self.commit)[self.commit] == rows["size"]

    def counts(self, chosen: Flags) -> dict[str, int]:
        """The chosen rows by outcome; those that are `transient` are errored, too."""
        counts = {
            name: int(np.sum(self.state[chosen] == number)) for number, name in enumerate(STATES)
        }
        counts["errored"] += counts["transient"]
        return counts

    def commits_with(self, state: int) -> Flags:
        """The rows of commits that have a row of this state."""
        return np.isin(self.commit, self.commit[self.state == state])

    def first_commits(self, chosen: Flags) -> Flags:
        """Of the chosen rows those of the first commit of each key."""
        places = np.flatnonzero(chosen & self.first)
        earliest = places[np.unique(self.keys[places], return_index=True)[1]]
        return chosen & np.isin(self.commit, self.commit[earliest])


def _commits(rows: Iterable[tuple[bytes, ExistingRow]]) -> Commits:
    return Commits(np.fromiter((columns_of(row) for _, row in rows), COLUMNS))


def _plan(planned: Iterable[tuple[bytes, bool]]) -> tuple[Keys, Keys]:
    cells = np.fromiter(((short(key), now) for key, now in planned), _CELL)
    keys: Keys = cells["key"].copy()
    return keys, keys[cells["now"]]


def blocks_of(log: Log, chosen: Flags) -> Iterator[bytes]:
    """The chosen rows of a log, raw, about a megabyte at a time; rows beyond the flags are not chosen."""
    block: list[bytes] = []
    size = 0
    # a blank line is not a row and has no flag
    rows = (line for _, line in log.scan() if line.strip())
    for line, wanted in zip(rows, chosen, strict=False):
        if wanted:
            block += (line, b"\n")
            size += len(line)
            if size > 1 << 20:
                yield b"".join(block)
                block, size = [], 0
    if block:
        yield b"".join(block)
