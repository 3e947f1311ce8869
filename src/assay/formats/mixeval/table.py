"""MixEval's scores as tables: one model by benchmark, several models in order."""

from collections.abc import Mapping, Sequence

from assay.formats.mixeval.metric import OVERALL, Cell, ModelScores
from assay.reports.sheet import Column, Sheet, Table

_FAILURES = ("guessed", "unparsed", "refused", "errored", "missing")
Rows = Mapping[str, Sequence[Cell]]


def scores_view(title: str, scores: Sequence[ModelScores], *, level: float = 0.95) -> Sheet:
    """One model by benchmark; several in order, the best first, then each benchmark side by side if that fits."""
    by_model: dict[str, list[ModelScores]] = {}
    for one in scores:
        by_model.setdefault(one.model, []).append(one)
    labels = list(dict.fromkeys(one.label for one in scores))
    if len(by_model) == 1:
        rows = {name: [one.cells[name] for one in scores] for name in scores[0].cells}
        return Sheet([_scores_table(f"{title}: {scores[0].model}", "benchmark", rows, labels, level)])
    ranked = sorted(by_model.values(), key=lambda own: (-(own[-1].cells[OVERALL].value or 0), own[0].model))
    overall = {own[0].model: [one.cells[OVERALL] for one in own] for own in ranked}
    return Sheet([_scores_table(title, "model", overall, labels, level), _side_by_side(ranked)])


def _scores_table(title: str, first: str, rows: Rows, labels: Sequence[str], level: float) -> Table:
    """A row for each benchmark or model, the parsers beside one another, or a table for each if need be; of
    the failures only those kinds that there are."""
    columns = [Column(first, text=True)]
    shown: dict[str, list[str]] = {name: [name] for name in rows}
    for number, label in enumerate(labels):
        failures = [name for name in _FAILURES if any(getattr(cells[number], name) for cells in rows.values())]
        columns += [Column(name) for name in (label, f"{level:.0%} interval", *failures)]
        for name, cells in rows.items():
            cell = cells[number]
            shown[name] += [_value(cell), _interval(cell), *(f"{getattr(cell, kind):,}" for kind in failures)]
    for name, cells in rows.items():
        shown[name] += [f"{cells[0].entries:,}", f"{cells[0].unique:,}"]
    parts = [({name: [cells[number]] for name, cells in rows.items()}, [label]) for number, label in enumerate(labels)]
    return Table(
        [*columns, Column("entries", spare=True), Column("unique", spare=True)],
        list(shown.values()),
        title=title,
        instead=[_scores_table(title, first, *part, level) for part in parts] if len(labels) > 1 else (),
    )


def _side_by_side(ranked: Sequence[Sequence[ModelScores]]) -> Table:
    """Several models: a row for each benchmark, by the last parser."""
    names = dict.fromkeys(name for labels in ranked for name in labels[-1].cells)
    cells = {name: [labels[-1].cells.get(name) for labels in ranked] for name in names}
    return Table(
        [Column("benchmark", text=True), *(Column(labels[0].model) for labels in ranked)],
        [[name, *("–" if cell is None else _value(cell) for cell in row)] for name, row in cells.items()],
        title=f"by {ranked[0][-1].label}",
        extra=True,
    )


def _value(cell: Cell) -> str:
    return "–" if cell.value is None else f"{cell.value:.3f}"


def _interval(cell: Cell) -> str:
    return "–" if cell.low is None or cell.high is None else f"{cell.low:.3f}–{cell.high:.3f}"
