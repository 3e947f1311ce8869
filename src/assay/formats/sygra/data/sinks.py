"""`data_config.sink`: the output records once more, as a file or a dataset on the hub.

The suffix of `file_path` tells the format, else `type`. A file is a projection of the run: it is replaced as a whole,
never appended to, so the same command twice does not double its rows. With a list of sinks each gets the columns
`alias->column` of its alias, without the alias, and `__others__` those without one; a single sink gets all columns.
Columns of a table are the fields of all records, so the records are read twice.
"""

import codecs
import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

import msgspec

from assay.errors import AssayError, RunFailed, UserError, install_command
from assay.formats.sygra.data.joins import JOINER
from assay.formats.sygra.data.transform import Record, as_text, cleaned
from assay.registry import nearest
from assay.store.files import make_folder, new_file, store_error, temporary_of, write_file

TYPES = ("json", "jsonl", "csv", "parquet", "hf")
OTHERS = "__others__"
Open = Callable[[], Iterator[Record]]


def check_sinks(data_config: Mapping[str, Any] | None) -> None:
    """Refuse sinks that could not be written, before anything is spent."""
    sinks = _sinks(data_config)
    aliases = [sink.get("alias") for sink, _ in sinks]
    for sink, where in sinks:
        if len(sinks) > 1 and not sink.get("alias"):
            fix = f"add `alias:`, that of a source or `{OTHERS}`"
            raise UserError("a sink of a list needs 'alias'", where=where, fix=fix)
        if len(sinks) > 1 and aliases.count(sink.get("alias")) > 1:
            raise UserError(
                f"two sinks have the alias {sink['alias']!r}", where=where, fix="rename one"
            )
        kind = _kind(sink, where)
        if kind == "hf":
            _check_hub(sink, where)
        else:
            _codec(sink, where)


def write_sinks(data_config: Mapping[str, Any] | None, records: Open, *, base: Path) -> list[str]:
    """Write every sink, and say what was written. One that fails does not keep the others from being written."""
    check_sinks(data_config)
    notes: list[str] = []
    failed: list[tuple[str, AssayError]] = []
    sinks = _sinks(data_config)
    several = isinstance((data_config or {}).get("sink"), list)
    for sink, where in sinks:
        chosen = _of_alias(records, str(sink.get("alias") or OTHERS)) if several else records
        try:
            notes.append(_write(sink, chosen, base, where))
        except AssayError as error:
            failed.append((where, error))
    if failed:
        where, error = failed[0]
        what = f"{len(failed)} of {len(sinks)} sinks could not be written: {error.what}"
        raise RunFailed(
            what, where=error.where or where, fix=error.fix or "the output file has all records"
        )
    return notes


def _sinks(data_config: Mapping[str, Any] | None) -> list[tuple[Mapping[str, Any], str]]:
    sinks: Any = (data_config or {}).get("sink") or []
    where = "data_config.sink"
    if isinstance(sinks, Mapping):
        return [(sinks, where)]
    if not isinstance(sinks, list) or not all(isinstance(sink, Mapping) for sink in sinks):
        raise UserError(f"a sink must be a mapping or a list of them, got {sinks!r}", where=where)
    return [(sink, f"{where}[{number}]") for number, sink in enumerate(sinks)]


def _kind(sink: Mapping[str, Any], where: str) -> str:
    """What the sink is written as."""
    kind = sink.get("type")
    if kind == "servicenow":
        fix = "write a file with `type: jsonl` and load it from there"
        raise UserError("ServiceNow tables cannot be written", where=f"{where}.type", fix=fix)
    if kind not in (None, "disk", *TYPES):
        raise UserError(
            f"unknown sink type {kind!r}", where=f"{where}.type", fix=nearest(str(kind), TYPES)
        )
    if kind == "hf":
        return "hf"
    if not sink.get("file_path"):
        raise UserError("a sink needs 'file_path'", where=where, fix="add `file_path: out.jsonl`")
    suffix = Path(str(sink["file_path"])).suffix.lower().removeprefix(".")
    if suffix in TYPES:
        return suffix
    return "json" if kind in (None, "disk") else str(kind)


def _of_alias(records: Open, alias: str) -> Open:
    """The columns of one alias; records that have none of them are left out."""

    def chosen() -> Iterator[Record]:
        for record in records():
            row: Record = {}
            for name, value in record.items():
                before, joiner, after = name.partition(JOINER)
                if (before if joiner else OTHERS) == alias:
                    row[after if joiner else name] = value
            if row:
                yield row

    return chosen


def _write(sink: Mapping[str, Any], records: Open, base: Path, where: str) -> str:
    kind = _kind(sink, where)
    count = 0

    def written() -> Iterator[Record]:
        nonlocal count
        count = 0
        for record in records():
            count += 1
            yield cleaned(record)

    if kind == "hf":
        _push(sink, written, where)
        return f"{count} records pushed to the dataset {sink['repo_id']}"
    path = base / str(sink["file_path"])
    codec = _codec(sink, where)
    if kind == "json":
        write_file(path, _encoded(_json(written()), codec))
    elif kind == "jsonl":
        write_file(path, _encoded((f"{_dumped(record)}\n" for record in written()), codec))
    elif kind == "csv":
        write_csv(path, written, lambda lines: _encoded(lines, codec))
    else:
        write_parquet(path, written, where)
    return f"{count} records written to {sink['file_path']}"


def _dumped(record: Record, indent: int | None = None) -> str:
    return json.dumps(record, indent=indent, ensure_ascii=False, default=as_text)


def _json(records: Iterator[Record]) -> Iterator[str]:
    """The text that `json.dump(list(records), indent=2)` would write."""
    start = "["
    for record in records:
        yield f"{start}\n  " + _dumped(record, indent=2).replace("\n", "\n  ")
        start = ","
    yield "[]" if start == "[" else "\n]"


def _codec(sink: Mapping[str, Any], where: str) -> codecs.CodecInfo:
    try:
        return codecs.lookup(str(sink.get("encoding") or "utf-8"))
    except LookupError:
        raise UserError(
            f"unknown encoding {sink['encoding']!r}", where=f"{where}.encoding"
        ) from None


def _encoded(texts: Iterable[str], codec: codecs.CodecInfo) -> Iterator[bytes]:
    assert codec.incrementalencoder is not None
    encode = codec.incrementalencoder("replace").encode  # the byte order mark comes once
    return map(encode, texts)


def _check_hub(sink: Mapping[str, Any], where: str) -> None:
    if not sink.get("repo_id"):
        raise UserError(
            "a sink of type hf needs 'repo_id'", where=where, fix="add `repo_id: owner/name`"
        )
    if find_spec("datasets") is None:
        what = "pushing to Hugging Face needs the package datasets"
        raise UserError(
            what, where=where, fix=f"{install_command('hf')}, or write a file with `type: jsonl`"
        )
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        what = f"the dataset {sink['repo_id']!r} cannot be pushed while HF_HUB_OFFLINE is set"
        raise UserError(what, where=where, fix="unset it, or write a file with `type: jsonl`")


def _push(sink: Mapping[str, Any], records: Open, where: str) -> None:
    import datasets

    token = sink.get("token") or os.environ.get("SYGRA_HF_TOKEN") or os.environ.get("HF_TOKEN")
    with TemporaryDirectory(prefix="assay-") as folder:
        rows = Path(folder) / "rows.jsonl"
        write_file(
            rows, (f"{_dumped(record)}\n".encode("utf-8", "replace") for record in records())
        )
        try:
            made: Any = datasets.Dataset.from_json(str(rows), cache_dir=folder)
            made.push_to_hub(
                sink["repo_id"],
                config_name=sink.get("config_name") or "default",
                split=sink.get("split") or "train",
                private=sink.get("private", True),
                token=token,
            )
        except Exception as error:  # the library raises what its many parts raise
            lines = str(error).splitlines() or [type(error).__name__]
            what = f"the dataset {sink['repo_id']!r} could not be pushed: {lines[0]}"
            raise RunFailed(
                what, where=where, fix="check the name, the token and the network"
            ) from error


_BATCH = 64  # lines of a CSV file that are held at a time
_OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 16384, USE_TMP_FILE false"  # a row group is held in memory
_encode = msgspec.json.Encoder(enc_hook=as_text).encode


def write_csv(
    path: Path, records: Open, encoded: Callable[[Iterable[str]], Iterator[bytes]]
) -> None:
    """A header and a line for each record; nested values are JSON text, null is empty. Texts stay as they are, even
    those that a spreadsheet takes for formulas: this is data to be read again."""
    columns = list(dict.fromkeys(name for record in records() for name in record))
    cells = ((record.get(name) for name in columns) for record in records())
    rows = (
        [_encode(cell).decode() if isinstance(cell, list | dict) else cell for cell in row]
        for row in cells
    )
    write_file(path, encoded(_lines(columns, rows)))


def _lines(columns: list[str], rows: Iterator[list[Any]]) -> Iterator[str]:
    text = io.StringIO(newline="")
    write = csv.writer(text).writerows
    write([columns])
    while batch := list(islice(rows, _BATCH)):
        write(batch)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def write_parquet(path: Path, records: Open, where: str) -> None:
    """Numbers and texts with their types, nested and mixed values as JSON; written by duckdb."""
    try:
        import duckdb
    except ModuleNotFoundError:
        fix = install_command("parquet")
        raise UserError("writing parquet files needs duckdb", where=where, fix=fix) from None
    temporary = temporary_of(path)
    try:
        make_folder(path.parent)
        os.close(new_file(temporary, path))
        with NamedTemporaryFile(prefix="assay-", suffix=".jsonl") as rows:
            columns = _spooled(rows, records())
            with duckdb.connect(
                config={"threads": 1, "autoinstall_known_extensions": False}
            ) as connection:
                shown = ", ".join(
                    f"{_quoted(name)}: {_quoted(type or 'JSON')}" for name, type in columns.items()
                )
                source = f"read_json({_quoted(rows.name)}, format = 'newline_delimited', columns = {{{shown}}})"
                connection.execute(
                    f"COPY (FROM {source}) TO {_quoted(str(temporary.absolute()))} ({_OPTIONS})"
                )
        os.replace(temporary, path)
    except OSError as error:
        raise store_error(error, path) from error
    except duckdb.Error as error:
        raise UserError(
            f"the file cannot be written: {str(error).splitlines()[0]}", where=str(path)
        ) from error
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
        kind = (
            "DOUBLE"
            if isinstance(value, float)
            else "VARCHAR"
            if isinstance(value, str)
            else "JSON"
        )
    if before in (None, kind):
        return kind
    return "DOUBLE" if {before, kind} == {"BIGINT", "DOUBLE"} else "JSON"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
