"""MixEval's score as a metric: exact with counts and intervals, and as the original's `score.json` has it.

A repeated entry is a weight, not further evidence: intervals treat equal entries as one cluster. Letters that the
protocol draws at random are drawn here, in the order of the rows of a response file, and counted as guessed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from assay.formats.mixeval.compat import Guesses, letters
from assay.formats.mixeval.evaluation_prompts import FREE_FORM, MULTIPLE_CHOICE
from assay.reports.sheet import Column, Sheet, Table
from assay.sdk import FloatArray, Group, IntArray, JsonMapping, Mask, Values, metric
from assay.stats.correction import weighted_interval

SCORE = "mixeval.score"
OVERALL = "overall"
_KIND, _BENCHMARK, _CONTENT = (
    f"item.metadata.{name}" for name in ("problem_type", "benchmark_name", "content")
)
_OPTIONS, _TARGET = "item.data.options", "item.ground_truth"
Numbers = IntArray


class ScoreCell(msgspec.Struct, kw_only=True):
    """One score: of a benchmark, or overall. `entries` have a verdict, `unique` of them differ; the rest is why not.
    `missing` is what the metric cannot know: entries without any verdict."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    entries: int = 0
    unique: int = 0
    free_form: int = 0
    multiple_choice: int = 0
    unparsed: int = 0
    refused: int = 0
    errored: int = 0
    missing: int = 0
    guessed: int = 0


class ModelScores(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One model under one parser. `compatible` is the original's score.json, from means rounded before weighting;
    `errors` is why rows failed, which then are in neither."""

    model: str
    label: str
    cells: dict[str, ScoreCell]
    compatible: dict[str, float]
    errors: list[str] = []


def _columns(params: JsonMapping) -> list[str]:
    names = ["item", "outcome", _KIND, _BENCHMARK, _CONTENT]
    names += ["scorer", "part"] if params.get("free_form") else []
    names += ["response"] if params.get("order") == "responses" else []
    return names + ([_OPTIONS, _TARGET] if params.get("draw") else [])


@metric(name=SCORE, columns=_columns, ordered=False, scale=(0, 1), version=2)
def score(
    group: Group,
    *,
    free_form: str = "",
    multiple_choice: str = "",
    draw: bool = False,
    order: Literal["entries", "responses"] = "entries",
) -> Values:
    """The share of right answers over all entries; unparsed and refused ones are wrong, errors are left out, unless the
    policy says otherwise. `cells` has the score and the counts of each benchmark, `compatible` what the original's
    `score.json` has.

    Parameters:
    free_form: the scorer whose verdicts count for free-form entries, where two scorers share the entries
    multiple_choice: the scorer whose verdicts count for multiple-choice entries
    draw: draw a letter for each multiple-choice answer that names none, as the protocol does
    order: in which order letters are drawn and scores are added up, that of the data or that of the responses
    """
    rows = _VerdictRows(group, {FREE_FORM: free_form, MULTIPLE_CHOICE: multiple_choice})
    if draw:
        rows.draw_letters()
    masks = {OVERALL: np.ones(len(rows), np.bool_)}
    masks |= {name: np.array(rows.benchmark) == name for name in sorted(set(rows.benchmark))}
    measured = {name: rows.cell(mask, group.level) for name, mask in masks.items()}
    rounded = {name: rows.compatible(mask) for name, mask in masks.items()}
    whole, method = measured[OVERALL]
    found = Values(value=whole.value, rows=rows.places)
    found.fields = {
        "cells": {name: cell for name, (cell, _) in measured.items()},
        "compatible": {name: value for name, value in rounded.items() if value is not None},
    }
    if whole.low is None or whole.high is None:
        found.reason = method.removeprefix("none: ")
    else:
        found.interval = (whole.low, whole.high, method)
    return found


class _VerdictRows:
    """The verdicts of a group in the order of the data, as columns; `order` is that in which they are added up.

    Those that the policy leaves out are not `counted`; `places` are those of the others.
    """

    def __init__(self, group: Group, scorers: Mapping[str, str]) -> None:
        left_out, size = group.left_out_columns, len(group.item)
        columns = {name: [*own, *left_out.get(name, ())] for name, own in group.columns.items()}
        chosen = _rows_of_scorers(columns, scorers)
        self._columns = {name: [values[at] for at in chosen] for name, values in columns.items()}
        self.benchmark = [str(name) for name in self._columns[_BENCHMARK]]
        kinds = self._columns[_KIND]
        self.multiple: Mask = np.array([kind == MULTIPLE_CHOICE for kind in kinds], np.bool_)
        self.outcome = np.array(self._columns["outcome"], np.str_)
        self.content = np.array([int(text, 16) for text in self._columns[_CONTENT]], np.uint64)
        self.counted: Mask = np.array(chosen, np.int64) < size
        self.places = [at for at in chosen if at < size]
        self.values: FloatArray = np.zeros(len(chosen))
        self.values[self.counted] = group.score[self.places]
        self.guessed: Mask = np.zeros(len(chosen), np.bool_)
        self.order: Numbers = np.arange(len(chosen))
        if "response" in columns:
            places = [-1 if place is None else place for place in self._columns["response"]]
            self.order = np.argsort(np.array(places, np.int64), kind="stable")

    def __len__(self) -> int:
        return len(self.values)

    def draw_letters(self) -> None:
        """For each multiple-choice answer that names no letter, in the order of the rows."""
        chance = Guesses()
        self.guessed = self.counted & self.multiple & (self.outcome == "unparsed")
        options, targets = self._columns[_OPTIONS], self._columns[_TARGET]
        for at in self.order[self.guessed[self.order]].tolist():
            self.values[at] = chance.draw(len(options[at])) == letters(26)[targets[at][0]]

    def cell(self, mask: Mask, level: float) -> tuple[ScoreCell, str]:
        """The score of the rows of a mask, and how its interval was made."""
        counted, guessed = self.counted & mask, int((self.guessed & mask).sum())
        failures = {
            name: int((mask & (self.outcome == name)).sum())
            for name in ("unparsed", "refused", "errored")
        }
        failures["unparsed"] -= guessed
        cell = ScoreCell(
            entries=int(counted.sum()),
            unique=len(np.unique(self.content[counted])),
            free_form=int((counted & ~self.multiple).sum()),
            multiple_choice=int((counted & self.multiple).sum()),
            guessed=guessed,
            **failures,
        )
        if not cell.entries:
            return cell, "no entry has a verdict"
        values, alike = self.values[counted], np.ones(cell.entries)
        cell.value = float(values.mean())
        interval = weighted_interval(self.content[counted], values, alike, level)
        cell.low, cell.high = interval.low, interval.high
        return cell, interval.method

    def compatible(self, mask: Mask) -> float | None:
        """The mean of each kind rounded to three places, then weighted by its share of the entries."""
        parts = [self.counted & mask & ~self.multiple, self.counted & mask & self.multiple]
        means = [(round(self._mean(part), 3), int(part.sum())) for part in parts if part.any()]
        total = sum(count for _, count in means)
        return sum(mean * (count / total) for mean, count in means) if means else None

    def _mean(self, part: Mask) -> float:
        """Added up one by one in the order of the rows: the last bit decides how a mean such as 0.5375 is rounded."""
        added = self.values[self.order[part[self.order]]]
        return float(np.cumsum(added)[-1]) / len(added)


def _rows_of_scorers(columns: Mapping[str, list[Any]], scorers: Mapping[str, str]) -> list[int]:
    """Return the rows of each kind's scorer in the order of the data; entries that are gone have
    no kind."""
    kinds = columns[_KIND]
    chosen = [at for at, kind in enumerate(kinds) if kind is not None]
    if "scorer" in columns:
        own = columns["scorer"]
        parts = columns["part"]  # a user's scorer may give several labels of one call
        chosen = [
            at
            for at in chosen
            if own[at] == scorers.get(kinds[at]) and not (parts[at] and parts[at][0])
        ]
    return sorted(chosen, key=columns["item"].__getitem__)


_FAILURES = ("guessed", "unparsed", "refused", "errored", "missing")
Rows = Mapping[str, Sequence[ScoreCell]]


def scores_view(title: str, scores: Sequence[ModelScores], *, level: float = 0.95) -> Sheet:
    """One model by benchmark; several in order, the best first, then each benchmark side by side if that fits."""
    by_model: dict[str, list[ModelScores]] = {}
    for one in scores:
        by_model.setdefault(one.model, []).append(one)
    labels = list(dict.fromkeys(one.label for one in scores))
    if len(by_model) == 1:
        rows = {name: [one.cells[name] for one in scores] for name in scores[0].cells}
        return Sheet(
            [_scores_table(f"{title}: {scores[0].model}", "benchmark", rows, labels, level)]
        )
    ranked = sorted(
        by_model.values(), key=lambda own: (-(own[-1].cells[OVERALL].value or 0), own[0].model)
    )
    overall = {own[0].model: [one.cells[OVERALL] for one in own] for own in ranked}
    return Sheet([_scores_table(title, "model", overall, labels, level), _side_by_side(ranked)])


def _scores_table(title: str, first: str, rows: Rows, labels: Sequence[str], level: float) -> Table:
    """A row for each benchmark or model, the parsers beside one another, or a table for each if need be; of
    the failures only those kinds that there are."""
    columns = [Column(first, text=True)]
    shown: dict[str, list[str]] = {name: [name] for name in rows}
    for number, label in enumerate(labels):
        failures = _failures(rows, number)
        columns += [Column(name) for name in (label, f"{level:.0%} interval", *failures)]
        for name, cells in rows.items():
            cell = cells[number]
            shown[name] += [_value(cell), _interval(cell)]
            shown[name] += [f"{getattr(cell, kind):,}" for kind in failures]
    for name, cells in rows.items():
        shown[name] += [f"{cells[0].entries:,}", f"{cells[0].unique:,}"]
    columns += [Column("entries", spare=True), Column("unique", spare=True)]
    instead: list[Table] = []
    for number, label in enumerate(labels) if len(labels) > 1 else ():
        part = {name: [cells[number]] for name, cells in rows.items()}
        instead.append(_scores_table(title, first, part, [label], level))
    return Table(columns, list(shown.values()), title=title, instead=instead)


def _failures(rows: Rows, number: int) -> list[str]:
    """Return the kinds of failures that a parser's cells have."""
    cells = [cells[number] for cells in rows.values()]
    return [name for name in _FAILURES if any(getattr(cell, name) for cell in cells)]


def _side_by_side(ranked: Sequence[Sequence[ModelScores]]) -> Table:
    """Several models: a row for each benchmark, by the last parser."""
    names = dict.fromkeys(name for labels in ranked for name in labels[-1].cells)
    cells = {name: [labels[-1].cells.get(name) for labels in ranked] for name in names}
    return Table(
        [Column("benchmark", text=True), *(Column(labels[0].model) for labels in ranked)],
        [
            [name, *("–" if cell is None else _value(cell) for cell in row)]
            for name, row in cells.items()
        ],
        title=f"by {ranked[0][-1].label}",
        extra=True,
    )


def _value(cell: ScoreCell) -> str:
    return "–" if cell.value is None else f"{cell.value:.3f}"


def _interval(cell: ScoreCell) -> str:
    return "–" if cell.low is None or cell.high is None else f"{cell.low:.3f}–{cell.high:.3f}"
