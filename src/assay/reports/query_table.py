"""The answer to a query as a table."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from assay.reports.look import one_line, plain_table
from assay.text.plain import plain

LONGEST = 200


def query_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A line for each row; long texts are shortened, and nothing in them reaches the terminal as a command."""
    table = plain_table()
    for name in columns:
        table.add_column(Text(plain(name)), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: Any) -> Text:
    if value is None:
        return Text("–", style="dim")
    text = f"{value:.6g}" if isinstance(value, float) else one_line(str(value))
    right = isinstance(value, (int, float)) and not isinstance(value, bool)
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return Text(shown, justify="right" if right else "left")
