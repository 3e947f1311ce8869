"""Whether rows can carry a number: what is present of what was planned, each once, whole, and as it was written.

Rows that a manifest sealed and that have not changed since were checked when they were written. All others are looked
at, row by row: what is damaged, repeated, torn or not a row is hidden and counted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from assay.engine.run.existing import COLUMNS, Commits, ExistingRow, columns_of
from assay.records import Damage, Kind, Manifest
from assay.sdk import StoreError, short
from assay.store.log import FileLog
from assay.store.seal import describe, is_damaged, is_unchanged
from assay.store.table.decode import read_blocks

# in a metric row and in an evaluation's inputs: what is present of what was planned
PARTIAL = "partial"
NOUNS: dict[Kind, str] = {
    "dataset": "items",
    "run": "responses",
    "evaluation": "evaluations",
    "aggregation": "metrics",
}
_FAULTS, _NO_KEY = "faults", short("")
_MOST_NAMED = 3


class DamagedError(StoreError):
    """Rows that were not examined before turned out, when all were read, not to be those that were sealed."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(describe(damage), fix="run again: the rows of this block are made anew")


class Evidence(msgspec.Struct):
    """The rows that count, and their manifest as these rows bear it out."""

    log: FileLog
    manifest: Manifest | None

    @property
    def partial(self) -> str:
        return partial_of([self.manifest])


def examine(log: FileLog, manifest: Manifest | None) -> Evidence:
    """Rows without a manifest come from elsewhere: nobody knows how many there should be."""
    if manifest is None or is_unchanged(manifest, log):
        return Evidence(log, manifest)
    damage = log.damage(manifest)
    if manifest.kind not in ("run", "evaluation"):
        return Evidence(
            log, _with_faults(manifest, [describe(each) for each in damage[:_MOST_NAMED]])
        )
    look = _Look(log, damage)
    log.hidden = look.hidden
    whole = manifest.complete and manifest.planned in (None, look.present)
    return Evidence(log, _with_faults(manifest, look.faults, complete=whole, present=look.present))


def _with_faults(manifest: Manifest, faults: list[str], **changes: Any) -> Manifest:
    return msgspec.structs.replace(
        manifest, metadata={**manifest.metadata, _FAULTS: faults}, **changes
    )


def partial_of(manifests: Iterable[Manifest | None]) -> str:
    """Return what is present of what was planned, and what is wrong with it; empty if the rows are
    whole."""
    parts: dict[str, None] = {}
    for manifest in manifests:
        if manifest is not None:
            behind = [entry[PARTIAL] for entry in manifest.inputs if entry.get(PARTIAL)]
            own = [] if manifest.complete else [_count_text(manifest)]
            parts |= dict.fromkeys([*behind, *own, *manifest.metadata.get(_FAULTS, [])])
    return "; ".join(parts)


def _count_text(manifest: Manifest) -> str:
    noun, present = NOUNS[manifest.kind], manifest.present or 0
    if manifest.planned is None:
        return f"{present:,} {noun}, unfinished"
    return f"{present:,} of {manifest.planned:,} {noun}"


class _Look:
    """One pass over the rows of a log."""

    def __init__(self, log: FileLog, damage: Sequence[Damage]) -> None:
        self.hidden: set[int] = set()
        self._unreadable = 0
        rows: Any = np.fromiter(self._rows(log, damage), [*COLUMNS, ("position", "i8")])
        table, keyed = Commits(rows), rows["key"] != _NO_KEY
        counted = ~keyed | table.first_commits(table.complete & keyed)
        self.hidden.update(rows["position"][~counted].tolist())
        self.present = int((counted & table.first).sum())
        self.faults = [describe(each) for each in damage[:_MOST_NAMED]]
        self._add(len(damage) - _MOST_NAMED, "further blocks are damaged")
        self._add(self._unreadable, "unreadable (left out)")
        self._add(int((table.complete & ~counted).sum()), "repeated (left out)")
        self._add(int((~table.complete & keyed).sum()), "of half-written calls (left out)")

    def _add(self, count: int, what: str) -> None:
        if count > 0:
            self.faults.append(f"{count:,} {what}")

    def _rows(self, log: FileLog, damage: Sequence[Damage]) -> Iterator[tuple[int, ...]]:
        def is_good(position: int) -> bool:
            return not damage or not is_damaged(position, len(log.read(position)), damage)

        for block in read_blocks(log, ExistingRow):
            lost = [line.position for line in block.unreadable]
            self._unreadable += sum(map(is_good, lost))
            self.hidden.update(lost)
            for position, row in zip(block.positions.tolist(), block.rows, strict=True):
                if is_good(position):
                    yield *columns_of(row), position
                else:
                    self.hidden.add(position)
