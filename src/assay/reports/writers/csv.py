"""CSV for spreadsheets, which take a text for a formula if it begins like one."""

import csv as standard
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import msgspec

from assay.analysis.look.export import Export
from assay.registry import writer
from assay.text.plain import plain_cell

_BATCH = 256


@writer
def csv(export: Export, *, keep_formulas: bool = False) -> None:
    """Comma-separated values with a header; nested values are JSON text, null is empty."""
    columns = list(export.columns())
    rows = ([row.get(name) for name in columns] for row in export.rows())
    export.write(csv_lines(columns, rows, keep_formulas=keep_formulas))


class _Lines(list[str]):
    """What a CSV writer takes for a file."""

    def write(self, line: str) -> None:
        self.append(line)


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, keep_formulas: bool = False) -> Iterator[bytes]:
    """The lines of a CSV file."""
    lines = _Lines()
    # Only a writer that ends its lines with both characters quotes each of them in a text.
    write = standard.writer(lines, lineterminator="\r\n").writerows
    made = ([_cell(value, keep_formulas) for value in row] for row in chain([columns], rows))
    while batch := list(islice(made, _BATCH)):
        write(batch)
        yield "".join(f"{line[:-2]}\n" for line in lines).encode("utf-8", "replace")
        lines.clear()


def _cell(value: Any, keep_formulas: bool) -> Any:
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None or kind is int or kind is float:
        return value
    text: str = value if kind is str else _json_text(value)
    return text if keep_formulas else plain_cell(text)


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, (list, dict, tuple)) else str(value)
