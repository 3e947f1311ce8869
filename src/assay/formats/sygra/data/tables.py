"""Tables: types for the columns of a CSV file, and records as CSV and Parquet files.

A CSV file has only text. A column of numbers holds numbers, and so on, by the rules of pandas, with which task folders
were written, but for two that lose data: a gap does not turn whole numbers into fractions, and texts such as `NA` or
`None` are gaps among numbers only. A gap is null. Columns to write are the fields of all records, so the records are
read twice.
"""

import csv
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.sygra.data.transform import Record, as_text
from assay.store.files import store_error, write_file

Rows = Callable[[], Iterator[dict[str, Any]]]
Convert = Callable[[str], Any]

# Longer numbers stay text: neither JSON nor a fraction holds them exactly.
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,19}\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]{1,19}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?\s*", re.ASCII)
_BOOLEAN = re.compile(r"True|TRUE|true|False|FALSE|false")
_GAPS = frozenset(
    {"", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan"}
    | {"NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)


def typed(rows: Rows) -> Iterator[dict[str, Any]]:
    """The rows with typed values; they are read twice, because a column's type is known at its end."""
    convert = _conversions(rows())
    for row in rows():
        yield {name: convert[name](text) for name, text in row.items()}


def _conversions(rows: Iterator[dict[str, Any]]) -> dict[str, Convert]:
    kinds: list[tuple[re.Pattern[str], Convert]] = [(_WHOLE, int), (_NUMBER, float), (_BOOLEAN, _boolean)]
    open_kinds: dict[str, list[tuple[re.Pattern[str], Convert]]] = {}
    undecided: set[str] = set()
    for row in rows:
        if not open_kinds:
            open_kinds = dict.fromkeys(row, kinds)
            undecided = set(row)
        for name in tuple(undecided):
            text = row[name]
            if text in _GAPS:
                continue
            left = [kind for kind in open_kinds[name] if kind[0].fullmatch(text)]
            if len(left) < len(open_kinds[name]):
                open_kinds[name] = left
            if not left:
                undecided.discard(name)
    return {name: _or_gap(left[0][1]) if left else _text for name, left in open_kinds.items()}


def _or_gap(convert: Convert) -> Convert:
    return lambda text: None if text in _GAPS else convert(text)


def _boolean(text: str) -> bool:
    return text in ("True", "TRUE", "true")


def _text(text: str) -> str | None:
    return text or None


Open = Callable[[], Iterator[Record]]
_BATCH = 256
_OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 16384"  # a row group is held in memory
_encode = msgspec.json.Encoder(enc_hook=as_text).encode


def write_csv(path: Path, records: Open, encoded: Callable[[Iterable[str]], Iterator[bytes]]) -> None:
    """A header and a line for each record; nested values are JSON text, null is empty. Texts stay as they are, even
    those that a spreadsheet takes for formulas: this is data to be read again."""
    columns = list(dict.fromkeys(name for record in records() for name in record))
    cells = ((record.get(name) for name in columns) for record in records())
    rows = ([_encode(cell).decode() if isinstance(cell, list | dict) else cell for cell in row] for row in cells)
    write_file(path, encoded(_lines(columns, rows)))


class _Lines(list[str]):
    """What a CSV writer takes for a file."""

    def write(self, line: str) -> None:
        self.append(line)


def _lines(columns: list[str], rows: Iterator[list[Any]]) -> Iterator[str]:
    lines = _Lines()
    write = csv.writer(lines).writerows
    write([columns])
    while batch := list(islice(rows, _BATCH)):
        write(batch)
        yield "".join(lines)
        lines.clear()
    yield "".join(lines)


def write_parquet(path: Path, records: Open, where: str) -> None:
    """Numbers and texts with their types, nested and mixed values as JSON; written by duckdb."""
    try:
        import duckdb
    except ModuleNotFoundError:
        fix = "pip install 'assay[parquet]'"
        raise UserError("writing parquet files needs duckdb", where=where, fix=fix) from None
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(prefix="assay-", suffix=".jsonl") as rows:
            columns = _spooled(rows, records())
            with duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False}) as connection:
                shown = ", ".join(f"{_quoted(name)}: {_quoted(type or 'JSON')}" for name, type in columns.items())
                source = f"read_json({_quoted(rows.name)}, format = 'newline_delimited', columns = {{{shown}}})"
                connection.execute(f"COPY (FROM {source}) TO {_quoted(str(temporary.absolute()))} ({_OPTIONS})")
        os.replace(temporary, path)
    except OSError as error:
        raise store_error(error, path) from error
    except duckdb.Error as error:
        raise UserError(f"the file cannot be written: {str(error).splitlines()[0]}", where=str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _spooled(file: Any, records: Iterator[Record]) -> dict[str, str | None]:
    """Write the records as lines; name and SQL type of every column."""
    columns: dict[str, str | None] = {}
    for record in records:
        for name, value in record.items():
            columns[name] = _wider(columns.get(name), value)
        file.write(_encode(record) + b"\n")
    file.flush()
    return columns


def _wider(before: str | None, value: Any) -> str | None:
    """The type that holds this value too; None while only null was seen."""
    if value is None:
        return before
    if isinstance(value, bool):
        kind = "BOOLEAN"
    elif isinstance(value, int):
        kind = "BIGINT" if -(2**63) <= value < 2**63 else "JSON"
    else:
        kind = "DOUBLE" if isinstance(value, float) else "VARCHAR" if isinstance(value, str) else "JSON"
    if before in (None, kind):
        return kind
    return "DOUBLE" if {before, kind} == {"BIGINT", "DOUBLE"} else "JSON"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
