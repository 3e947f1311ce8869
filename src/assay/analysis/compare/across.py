"""Several sides under several labels: one table, where a best value is marked only if it is one.

A side is the best under a label if it differs from every other side, by the paired test of `compare`, whatever its
missing rows are, corrected by Holm's method for all pairs under all labels of the table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from assay.analysis.compare.compare import CompareOptions, Comparing, Comparison, valid_options
from assay.analysis.compare.matching import match_items
from assay.analysis.compare.paired import Side, common_labels, find_sides
from assay.sdk import UserError, check_name
from assay.shown import Shown
from assay.stats.student import holm


class AcrossValue(msgspec.Struct, kw_only=True):
    """A side's value under a label; `failed` counts the rows that errored, could not be parsed or were refused."""

    value: float
    ci_low: float | None
    ci_high: float | None
    items: int
    failed: int
    best: bool = False
    partial: str = ""


class Across(Shown, kw_only=True):
    """`sides` in the order in which they were named, each with its cells by label as far as there is
    a value. `lower`: labels where less is better. `tests` is how many pairs were tested."""

    metric: str
    level: float
    labels: list[str]
    lower: list[str]
    tests: int
    sides: dict[str, dict[str, AcrossValue]]
    notes: list[str]


def across(
    paths: Sequence[str | Path],
    *,
    facet: str = "",
    values: Sequence[Any] = (),
    labels: Sequence[str] = (),
    lower: Sequence[str] = (),
    **options: Any,
) -> Across:
    """The sides that `compare` would find, under these labels or all that they have in common."""
    options["flips"] = 0
    chosen = valid_options(CompareOptions(**options))
    sides, notes = match_items(find_sides(paths, facet, values, chosen.where, lower))
    shared = common_labels(sides)
    for label in labels:
        check_name(label, shared, "not every side has the label", "--label")
    comparing = Comparing(sides, chosen, every_pair=bool(values) or not facet)
    comparisons = _comparisons(comparing, list(labels) or shared, notes)
    if not comparisons:
        raise UserError("no label can be compared", fix="; ".join(notes))
    table = Across(
        metric=chosen.metric,
        level=chosen.level,
        labels=[comparison.label for comparison in comparisons],
        lower=[comparison.label for comparison in comparisons if comparison.lower_is_better],
        tests=sum(len(comparison.pairs) for comparison in comparisons),
        sides=_cells(sides, comparisons),
        notes=[
            *notes,
            *dict.fromkeys(note for comparison in comparisons for note in comparison.notes),
        ],
    )
    _mark(table, comparisons)
    return table


def _comparisons(comparing: Comparing, labels: Sequence[str], notes: list[str]) -> list[Comparison]:
    """Return the comparisons under labels, and note why there is none."""
    found: list[Comparison] = []
    for label in labels:
        try:
            found.append(comparing.under(label))
        except UserError as error:
            notes.append(f"{label} is left out: {error.what}")
    return found


def _cells(
    sides: Sequence[Side], comparisons: Sequence[Comparison]
) -> dict[str, dict[str, AcrossValue]]:
    cells: dict[str, dict[str, AcrossValue]] = {side.name: {} for side in sides}
    for comparison in comparisons:
        for standing in comparison.standings:
            cell = msgspec.convert(standing, AcrossValue, from_attributes=True)
            cells[standing.name][comparison.label] = cell
    return cells


def _mark(table: Across, comparisons: Sequence[Comparison]) -> None:
    pairs = [(comparison.label, pair) for comparison in comparisons for pair in comparison.pairs]
    wins: dict[tuple[str, str], int] = {}
    for (label, pair), p in zip(pairs, holm([pair.p_missing for _, pair in pairs]), strict=True):
        if p < 1 - table.level and pair.verdict != "incomplete":
            rose = (pair.difference > 0) is not (label in table.lower)
            winner = pair.candidate if rose else pair.baseline
            wins[label, winner] = wins.get((label, winner), 0) + 1
    for (label, name), count in wins.items():
        table.sides[name][label].best = count == len(table.sides) - 1
