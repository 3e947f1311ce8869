"""MixEval's scores as tables: one model by benchmark, several models in order."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.formats.mixeval.metric import OVERALL, Cell, ModelScores
from assay.reports.look import fits, plain_table
from assay.text.plain import plain

_FAILURES = ("guessed", "unparsed", "refused", "errored", "missing")


def scores_view(title: str, scores: Sequence[ModelScores], console: Console, *, level: float = 0.95) -> RenderableType:
    """One model by benchmark; several in order, the best first, then each benchmark side by side if that fits."""
    by_model: dict[str, list[ModelScores]] = {}
    for one in scores:
        by_model.setdefault(one.model, []).append(one)
    shape = _Shape(list(dict.fromkeys(one.label for one in scores)), f"{level:.0%} interval", console)
    if len(by_model) == 1:
        rows = {name: [one.cells[name] for one in scores] for name in scores[0].cells}
        return Group(*_scores_tables(f"{title}: {plain(scores[0].model)}", "benchmark", rows, shape))
    ranked = sorted(by_model.values(), key=lambda own: (-(own[-1].cells[OVERALL].value or 0), own[0].model))
    overall = {own[0].model: [one.cells[OVERALL] for one in own] for own in ranked}
    side_by_side = _side_by_side(ranked)
    shown = [side_by_side] if fits(side_by_side, console, folded=False) else []
    return Group(*_scores_tables(title, "model", overall, shape), *shown)


class _Shape(NamedTuple):
    labels: list[str]
    interval: str
    console: Console


def _scores_tables(title: str, first: str, rows: Mapping[str, Sequence[Cell]], shape: _Shape) -> list[Table]:
    """The parsers beside one another where that fits, else a table for each."""
    table = _scores_table(title, first, rows, shape)
    if len(shape.labels) == 1 or fits(table, shape.console, folded=False):
        return [table]
    return [
        _scores_table(
            title, first, {name: [cells[number]] for name, cells in rows.items()}, shape._replace(labels=[label])
        )
        for number, label in enumerate(shape.labels)
    ]


def _scores_table(title: str, first: str, rows: Mapping[str, Sequence[Cell]], shape: _Shape) -> Table:
    """A row for each benchmark or model; of the failures only those kinds that there are."""
    table = _table(title, first)
    failures: list[list[str]] = []
    for number, label in enumerate(shape.labels):
        failures.append([name for name in _FAILURES if any(getattr(cells[number], name) for cells in rows.values())])
        for name in (label, shape.interval, *failures[-1]):
            table.add_column(Text(plain(name)), justify="right", no_wrap=True)
    for name in ("entries", "unique"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, cells in rows.items():
        shown: list[str] = []
        for cell, kinds in zip(cells, failures, strict=True):
            shown += [_value(cell), _interval(cell), *(f"{getattr(cell, kind):,}" for kind in kinds)]
        table.add_row(Text(plain(name)), *shown, f"{cells[0].entries:,}", f"{cells[0].unique:,}")
    return table


def _side_by_side(ranked: Sequence[Sequence[ModelScores]]) -> Table:
    """Several models: a row for each benchmark, by the last parser."""
    table = _table(f"by {plain(ranked[0][-1].label)}", "benchmark")
    for labels in ranked:
        table.add_column(Text(plain(labels[0].model)), justify="right")
    names = dict.fromkeys(name for labels in ranked for name in labels[-1].cells)
    for name in names:
        cells = [labels[-1].cells.get(name) for labels in ranked]
        table.add_row(Text(plain(name)), *("–" if cell is None else _value(cell) for cell in cells))
    return table


def _table(title: str, first: str) -> Table:
    table = plain_table(title=Text(title), title_justify="left")
    table.add_column(first, overflow="fold")
    return table


def _value(cell: Cell) -> str:
    return "–" if cell.value is None else f"{cell.value:.3f}"


def _interval(cell: Cell) -> str:
    return "–" if cell.low is None or cell.high is None else f"{cell.low:.3f}–{cell.high:.3f}"
