"""Records as a table: CSV and Parquet. Columns are the fields of all records, so the records are read twice."""

import csv
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.sygra.data.transform import Record
from assay.formats.sygra.data.values import as_text
from assay.store.files import store_error, write_file

Open = Callable[[], Iterator[Record]]
_BATCH = 256
_OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 16384"  # a row group is held in memory
_encode = msgspec.json.Encoder(enc_hook=as_text).encode


def write_csv(path: Path, records: Open, encoded: Callable[[Iterable[str]], Iterator[bytes]]) -> None:
    """A header and a line for each record; nested values are JSON text, null is empty. Texts stay as they are, even
    those that a spreadsheet takes for formulas: this is data to be read again."""
    columns = list(dict.fromkeys(name for record in records() for name in record))
    rows = ([_cell(record.get(name)) for name in columns] for record in records())
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


def _cell(value: Any) -> Any:
    return _encode(value).decode() if isinstance(value, list | dict) else value


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
        found = "BOOLEAN"
    elif isinstance(value, int):
        found = "BIGINT" if -(2**63) <= value < 2**63 else "JSON"
    else:
        found = "DOUBLE" if isinstance(value, float) else "VARCHAR" if isinstance(value, str) else "JSON"
    if before in (None, found):
        return found
    return "DOUBLE" if {before, found} == {"BIGINT", "DOUBLE"} else "JSON"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
