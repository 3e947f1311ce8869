"""A Markdown table, for a report or a pull request."""

from collections.abc import Iterator
from typing import Any

from assay.analysis.look.export import Export
from assay.reports.sheet import json_text
from assay.sdk import writer
from assay.text.plain import plain

_ESCAPES = str.maketrans(
    {
        "|": r"\|",
        "\\": r"\\",
        "`": r"\`",
        "*": r"\*",
        "_": r"\_",
        "[": r"\[",
        "<": "&lt;",
        "&": "&amp;",
        "\n": " ",
    }
)


@writer
def markdown(export: Export) -> None:
    """A table with a column for each field; what Markdown or HTML would obey in a text is escaped."""
    columns = list(export.columns())

    def lines() -> Iterator[bytes]:
        yield _line([_cell(name) for name in columns])
        yield _line(["---"] * len(columns))
        for row in export.rows():
            yield _line([_cell(row.get(name)) for name in columns])

    export.write(lines())


def _line(cells: list[str]) -> bytes:
    return f"| {' | '.join(cells)} |\n".encode("utf-8", "replace")


def _cell(value: Any) -> str:
    return "" if value is None else plain(json_text(value)).translate(_ESCAPES)
