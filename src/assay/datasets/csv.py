"""Comma-separated values with a header row. Every field is text."""

import csv as standard
import io
from collections.abc import Iterator
from pathlib import Path

from assay.datasets._files import bad_row, open_file
from assay.sdk import JsonObject, dataset

LONGEST_FIELD = 1 << 30  # the library's own limit of 128 kB is shorter than many documents


def table(path: Path, delimiter: str, quotes: bool) -> Iterator[tuple[str, JsonObject]]:
    quoting = standard.QUOTE_MINIMAL if quotes else standard.QUOTE_NONE
    with (
        open_file(path) as binary,
        io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as file,
    ):
        rows = standard.DictReader(file, delimiter=delimiter, quoting=quoting, strict=True)
        standard.field_size_limit(LONGEST_FIELD)
        try:
            header = list(rows.fieldnames or [])
            repeated = next((name for name in header if header.count(name) > 1), None)
            if repeated is not None:
                raise bad_row(f"two columns are called {repeated!r}", f"{path}:1")
            for row in rows:
                place = f"{path}:{rows.line_num}"
                if None in row:
                    raise bad_row(f"{len(row[None])} more fields than the header has", place)
                if None in row.values():
                    raise bad_row("fewer fields than the header has", place)
                yield place, dict(row)
        except standard.Error as error:
            raise bad_row(str(error), f"{path}:{rows.line_num + 1}") from None
        except UnicodeDecodeError as error:  # text is decoded in blocks, ahead of the rows
            raise bad_row(str(error), f"{path}, after line {rows.line_num}") from None


@dataset
def csv(
    path: Path, *, delimiter: str = ",", quotes: bool = True
) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a `.csv` file, streamed; quoted fields may hold line feeds."""
    return table(path, delimiter, quotes)
