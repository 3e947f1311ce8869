"""`assay export`: the tables of an experiment as rows for writers, and what a config writes after a run."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import UnsetType

from assay.analysis.look.joining import SamplesTable, wider
from assay.config import Config
from assay.engine.experiment.bind import bind_outputs
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.sources import Source
from assay.engine.run.evidence import NOUNS
from assay.reading import is_remote
from assay.registry import check_name, check_params, writer
from assay.sdk import Evaluation, JsonMapping, JsonObject, Kind, Response, UserError, write_file
from assay.store.ledger import write_named
from assay.store.log import FileLog
from assay.store.sealed import seal_folder
from assay.store.shared.mirror import local, writing
from assay.store.stores import is_repository
from assay.store.table.decode import decode_row
from assay.text.plain import plain_json
from assay.usercode import failing, marks_of

SUFFIXES = {".md": "markdown", ".ndjson": "jsonl"}
_CALLED = {"html": "report"}  # a file of this kind is the whole report
TABLES: dict[str, Kind] = {noun: kind for kind, noun in NOUNS.items()}
SAMPLES = "samples"  # a table that is not stored but joined from the others
# what a format holds that keeps all
WHOLE_ROWS = dict.fromkeys(("items", "responses", "evaluations"))
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


_SQL_TYPES: dict[Any, str] = {
    str: "VARCHAR",
    int: "BIGINT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    list[str]: "VARCHAR[]",
    tuple[int, int]: "BIGINT[]",
}


def _sql_type(kind: Any) -> str:
    """Return the type of a field's column; None beside one type makes no difference."""
    if get_origin(kind) is Literal:
        return "VARCHAR"
    types = [each for each in get_args(kind) if each not in (NoneType, UnsetType)]
    if len(types) == 1 < len(get_args(kind)):
        return _sql_type(types[0])
    return _SQL_TYPES.get(kind, "JSON")


def _struct_columns(kind: type[msgspec.Struct]) -> dict[str, str]:
    return {field.encode_name: _sql_type(field.type) for field in msgspec.structs.fields(kind)}


KNOWN: dict[str, dict[str, str]] = {
    "items": {"id": "VARCHAR", "data": "JSON", "ground_truth": "JSON", "metadata": "JSON"},
    "responses": _struct_columns(Response),
    "evaluations": _struct_columns(Evaluation),
    "metrics": {
        "metric_name": "VARCHAR",
        "metric_type": "VARCHAR",
        "facets": "VARCHAR[]",
        "label": "VARCHAR",
        "value": "DOUBLE",
    },
}


def check_table(name: str, *more: str) -> str:
    """The name of a stored table, or one of `more`."""
    check_name(name, (*TABLES, *more), "there is no table")
    return name


class Tables:
    """The tables of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __contains__(self, table: str) -> bool:
        return self.source.has_rows(TABLES[table])

    def log(self, table: str) -> FileLog:
        """The table's rows; a table without any is refused."""
        check_table(table)
        there = ", ".join(name for name in TABLES if name in self) or "none"
        return self.source.log(TABLES[table], f"tables with rows: {there}")

    def logs(self, table: str) -> list[FileLog]:
        """Like `log`, with the rows of further runs where evaluations were made from several."""
        self.log(table)
        return self.source.logs(TABLES[table])

    def files(self, table: str, folder: Path) -> list[str]:
        """Return the files with a table's rows; of a log that has rows which do not count, a copy
        without them in a folder."""
        files: list[Path] = []
        for log in self.logs(table):
            if log.hidden:
                copy = folder / f"{len(os.listdir(folder))}.jsonl"
                write_file(copy, log.blocks())
                files.append(copy)
            else:
                files += [log.path.parent / part.name for part in log.segments() if part.size]
        return [str(file.absolute()) for file in files]

    def partial(self) -> list[str]:
        """Return what is present of unfinished tables."""
        kinds: list[Kind] = [kind for kind in ("run", "evaluation") if kind in self.source.files]
        texts = {NOUNS[kind]: self.source.evidence(kind).partial for kind in kinds}
        return [f"{noun} are partial: {text}" for noun, text in texts.items() if text]

    def lines(self, table: str) -> Iterator[tuple[str, bytes]]:
        """(place, line) of every row, as it stands on disk."""
        for log in self.logs(table):
            for number, (_, line) in enumerate(log.scan(), 1):
                if line and not line.isspace():
                    yield f"{log.path}, line {number}", line

    def rows(self, table: str) -> Iterator[JsonObject]:
        """Every row; fields that Assay does not know are kept."""
        for place, line in self.lines(table):
            yield decode_row(line, place)

    def columns(self, table: str, most: int | None = None) -> dict[str, str]:
        """Name and SQL type of every field in the first `most` rows, or in all: ours first, in our
        order."""
        known = KNOWN[table]
        seen: set[str] = set()
        others: dict[str, str | None] = {}
        for place, line in islice(self.lines(table), most):
            try:
                row = _decode(line)
            except (ValueError, RecursionError):
                whole = decode_row(line, place)
                row = {name: msgspec.json.encode(value) for name, value in whole.items()}
            seen.update(row)
            if not row.keys() <= known.keys():
                for name in [name for name in row if name not in known]:
                    others[name] = wider(others.get(name), bytes(row[name]))
        columns = {name: type for name, type in known.items() if name in seen}
        return columns | {name: type or "JSON" for name, type in others.items()}


class Export:
    """What a writer is given: the tables, the chosen one, and where to write (`path` None: standard output; `force`
    replaces files of others)."""

    def __init__(
        self,
        tables: Tables,
        table: str,
        path: Path | None,
        *,
        whole: bool = False,
        force: bool = False,
    ) -> None:
        self.tables = tables
        self.table = check_table(table, SAMPLES)
        self.path = path
        self.force = force
        if not whole:  # a writer that writes more than one table looks for them itself
            tables.log("responses" if table == SAMPLES else table)

    def rows(self) -> Iterator[JsonObject]:
        return self._samples.rows() if self.table == SAMPLES else self.tables.rows(self.table)

    def cells(self) -> Iterator[list[Any]]:
        """The rows as lists, in the order of the columns."""
        if self.table == SAMPLES:
            return self._samples.cells()
        columns = list(self.columns())
        return ([row.get(name) for name in columns] for row in self.rows())

    def columns(self) -> dict[str, str]:
        return self._samples.columns() if self.table == SAMPLES else self.tables.columns(self.table)

    def left_out(self) -> dict[str, int]:
        """Count the rows of each table that the table of samples has no row or cell for."""
        return self._samples.left_out() if self.table == SAMPLES else {}

    @cached_property
    def _samples(self) -> SamplesTable:
        return SamplesTable(self.tables)

    def lines(self) -> Iterator[bytes]:
        """The rows as JSON, without line feeds; those of a stored table as they stand on disk."""
        if self.table == SAMPLES:
            return map(msgspec.json.Encoder().encode, self.rows())
        return (line for _, line in self.tables.lines(self.table))

    def write(self, chunks: Iterable[bytes]) -> None:
        """Write them as they come; a file takes the place of an older one only when it is whole."""
        if self.path is not None:
            write_named(self.path, chunks, force=self.force)
            return
        seen = sys.stdout.isatty()
        for chunk in chunks:
            sys.stdout.buffer.write(
                plain_json(chunk.decode("utf-8", "replace")).encode() if seen else chunk
            )
        sys.stdout.buffer.flush()


def write_outputs(config: Config, folder: str | Path) -> list[str]:
    """Write a config's outputs from the rows in the folder; what there is to know about them."""
    notes: list[str] = []
    for output in bind_outputs(config):
        with writing(output.path) as path:
            export = Export(Tables(find_source(folder)), output.table, path)
            notes += output.write(export, **output.params) or ()
        notes.append(f"written to {output.path}")
    if not is_remote(folder):
        seal_folder(Path(folder))
    return notes


def _exported_source(path: str | Path, marks: JsonMapping) -> Source:
    """Return the experiment at a path, or the whole repository for a format that holds one."""
    place = local(path)
    if marks.get("repositories") and is_repository(place):
        return Source(path=place, name=place.name, files={}, folder=place)
    return find_source(path, foreign=not marks.get("whole"))


def export(
    path: str | Path,
    format: str = "",
    *,
    table: str = "responses",
    output: str | Path | None = None,
    params: JsonMapping | None = None,
    force: bool = False,
) -> list[str]:
    """Write a table of an experiment in another format (by default what the suffix of `output`
    says) to a file, a folder or standard output; returns what there is to know about it. `force`
    replaces files of others."""
    suffix = Path(output).suffix if output else ""
    name = format or SUFFIXES.get(suffix) or suffix.removeprefix(".")
    name = _CALLED.get(name, name)
    if name.replace("-", "_") in writer.names():
        name = name.replace("-", "_")
    if not name:
        raise UserError("name a format", fix=f"--format, one of {', '.join(writer.names())}")
    write = writer.get(name, base=Path.cwd(), where="--format")
    marks = marks_of(write)
    source, whole = _exported_source(path, marks), "whole" in marks
    chosen = check_params(write, params or {}, where="--set")
    with writing(output, force=force) if output else nullcontext() as file:
        rows = Export(Tables(source), table, file, whole=whole, force=force)
        with failing(write, f"the format {name!r}", "--format"):
            notes = list(write(rows, **chosen) or ())
    return [*rows.tables.partial(), *notes]
