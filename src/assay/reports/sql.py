"""The answer to a query: a line for each row, long texts shortened."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from assay.analysis.look.sql import QueryAnswer
from assay.reports.sheet import Cell, Column, Sheet, Table, shortened

LONGEST = 200


def view(answer: QueryAnswer, most: int | None = None) -> Sheet:
    """The first `most` rows, or all; those that follow are still to be read from the answer."""
    rows: list[tuple[Any, ...]] = list(islice(answer.tuples(), most))
    columns = [Column(name, text=not _are_numbers([row[at] for row in rows])) for at, name in enumerate(answer.columns)]
    shown = [[_cell(value) for value in row] for row in rows]
    return Sheet(parts=[Table(columns=columns, rows=shown, data=(answer.columns, rows))])


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column has numbers and nothing else but null."""
    kinds = {type(value) for value in values} - {type(None)}
    return bool(kinds) and all(issubclass(kind, (int, float)) and kind is not bool for kind in kinds)


def _cell(value: Any) -> str | Cell:
    if value is None:
        return Cell("–", "quiet")
    return f"{value:.6g}" if isinstance(value, float) else shortened(str(value), LONGEST)
