"""SQL over the rows of experiments, read only; and a table as a data frame."""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from assay.analysis.look.export import TABLES, Tables, check_table
from assay.engine.experiment.resolve import find_source, find_sources
from assay.reading import Paths, each_of
from assay.sdk import JsonObject, UserError, check_name, install_command, nearest
from assay.store.table.decode import decode_row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LOOKED_AT = 1000  # rows that tell the columns, where a query need not know all of them
BATCH = 1000
_MOST_FILES = 100  # in one SELECT: the list of their experiments is looked at with each of them
_SOURCE, _FILE = "source", "assay file"
_NUMBERS = {"BIGINT", "DOUBLE"}
_GLOB = re.compile(r"([*?\[])")
_LOCKS = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
    "BEGIN TRANSACTION READ ONLY",
)


class QueryAnswer:
    """The result of a query, read as it is asked for; `notes` say which tables are partial."""

    def __init__(self, connection: "DuckDBPyConnection", notes: Sequence[str]) -> None:
        self.notes = notes
        self._connection = connection
        described = connection.description or []
        self.columns = _different([str(column[0]) for column in described])
        self._json = [at for at, column in enumerate(described) if str(column[1]) == "JSON"]
        self._values = self._fetch()

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """The rows that are still to be read, their nested values as JSON text."""
        return self._values

    def _fetch(self) -> Iterator[tuple[Any, ...]]:
        while batch := self._connection.fetchmany(BATCH):
            yield from batch

    def rows(self) -> Iterator[JsonObject]:
        """Nested values as what they are."""
        for values in self.tuples():
            row = list(values)
            for at in self._json:
                if row[at] is not None:
                    row[at] = _json_value(row[at])
            yield dict(zip(self.columns, row, strict=True))


def sql(paths: Paths, query: str) -> list[JsonObject]:
    """The rows that a SELECT over items, responses, evaluations and metrics finds; nothing can be written."""
    with ask(each_of(paths), query) as answer:
        return list(answer.rows())


@contextmanager
def ask(paths: Sequence[str | Path], sql: str) -> Generator[QueryAnswer]:
    """The answer to one SELECT over the tables of these experiments."""
    tables = [Tables(source) for source in find_sources(paths)]
    with connect(tables, most=LOOKED_AT, locked=True) as connection:
        _check(connection, sql)
        connection.execute(sql)
        notes = [f"{one.source.name}: {note}" for one in tables for note in one.partial()]
        yield QueryAnswer(connection, notes)


@contextmanager
def connect(
    tables: Sequence[Tables], *, most: int | None = None, locked: bool = False
) -> Generator["DuckDBPyConnection"]:
    """A connection with a view for each table; the columns are those of the first `most` rows, or of all. One that is
    `locked` reads no other file.

    What duckdb finds wrong inside the `with` block becomes a UserError.
    """
    try:
        import duckdb
    except ImportError:
        raise UserError(
            "this needs duckdb, which is not installed", fix=install_command("sql")
        ) from None
    with TemporaryDirectory(prefix="assay-sql-") as folder:
        connection, views = duckdb.connect(":memory:"), dict[str, list[_SelectedFiles]]()
        try:
            connection.execute(f"SET temp_directory = {text(folder)}")
            connection.execute("SET enable_progress_bar = false")  # it goes where the rows go
            for name in TABLES:
                if parts := _parts(tables, name, most, Path(folder)):
                    views[name] = parts
            for name, parts in views.items():
                selects = [part.select(several=len(tables) > 1) for part in parts]
                connection.execute(f"CREATE VIEW {name} AS {' UNION ALL BY NAME '.join(selects)}")
            if locked:
                _lock(connection, (file for part in chain(*views.values()) for file in part.files))
            yield connection
        except duckdb.PermissionException:
            fix = f"tables: {', '.join(TABLES)}"
            raise UserError(
                "a query reads the experiment's tables and no other file", fix=fix
            ) from None
        except duckdb.Error as error:
            raise _query_error(str(error), tables, [*views]) from None
        finally:
            connection.close()


def _lock(connection: "DuckDBPyConnection", files: Iterable[str]) -> None:
    allowed = sorted({name for file in files for name in (file, _pattern(file))})
    connection.execute(f"SET allowed_paths = {_list(allowed)}")
    for lock in _LOCKS:
        connection.execute(lock)


def _check(connection: "DuckDBPyConnection", sql: str) -> None:
    statements = connection.extract_statements(sql)
    kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
    if kinds != ["SELECT"]:
        statement_kinds = " and ".join(kinds) or "nothing"
        raise UserError(
            f"a query is one SELECT, got {statement_kinds}",
            fix="write `select …`, `from …`, `with … select …`, `describe …` or `summarize …`",
        )
    connection.execute(f"EXPLAIN SELECT * FROM query({text(sql)})").fetchall()


class _SelectedFiles:
    """Files of experiments that one SELECT reads, with the name of each one's experiment."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.columns: dict[str, str] = {}

    def add(self, name: str, files: Sequence[str], columns: Mapping[str, str]) -> bool:
        """Take in an experiment, unless a column would have two types or two spellings."""
        full = len(self.files) >= _MOST_FILES or not self.files.keys().isdisjoint(files)
        if self.files and (full or (_SOURCE in columns) != (_SOURCE in self.columns)):
            return False
        both = dict(self.columns)
        spelled = {column.lower(): column for column in both}
        for column, type in columns.items():
            types = {type, both.get(column, type)}
            one_type = len(types) == 1 or types == _NUMBERS
            if not one_type or spelled.get(column.lower(), column) != column:
                return False
            both[column] = type if len(types) == 1 else "DOUBLE"
        self.files |= dict.fromkeys(files, name)
        self.columns = both
        return True

    def select(self, *, several: bool) -> str:
        """Return the query for the rows, with the names of the experiments if there are several."""
        if not several or _SOURCE in self.columns:
            return read_rows(self.files, self.columns)
        names, code = (
            _list(self.files.values()),
            f'enum_code("{_FILE}"::ENUM({_list(self.files)[1:-1]}))',
        )
        source = f'{names}[{code} + 1] AS {_SOURCE}, * EXCLUDE ("{_FILE}")'
        return read_rows(self.files, self.columns, source, f", filename = '{_FILE}'")


def _parts(
    tables: Sequence[Tables], name: str, most: int | None, folder: Path
) -> list[_SelectedFiles]:
    """Return what holds the rows of a table, the experiments in their order as far as their columns agree."""
    parts: list[_SelectedFiles] = []
    for one in tables:
        if name in one:
            columns = _different_columns(one.columns(name, most if name != "metrics" else None))
            rows = one.source.name, one.files(name, folder), columns
            # where no line is a row there are no columns
            if columns and not any(part.add(*rows) for part in reversed(parts)):
                parts.append(_SelectedFiles())
                parts[-1].add(*rows)
    return parts


def _different_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Return them without those that differ from an earlier one in case only: they are one to SQL."""
    first: dict[str, str] = {}
    for column in columns:
        first.setdefault(column.lower(), column)
    return {column: columns[column] for column in first.values()}


def read_rows(
    files: Iterable[str], columns: Mapping[str, str], chosen: str = "*", options: str = ""
) -> str:
    """Return the query that reads files of rows with these columns."""
    different = _different_columns(columns).items()
    typed = ", ".join(f"{text(column)}: {text(type)}" for column, type in different)
    names = _list(map(_pattern, files))
    return f"SELECT {chosen} FROM read_json({names}, format = 'newline_delimited', columns = {{{typed}}}{options})"


def _pattern(file: str) -> str:
    """Return the pattern that this file alone has."""
    return _GLOB.sub(r"[\1]", file)


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(map(text, values))}]"


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _query_error(message: str, tables: Sequence[Tables], there: Sequence[str]) -> UserError:
    missing = re.search(r"Table with name (\S+) does not exist", message)
    if missing and missing[1] in TABLES:
        return UserError(
            f"there are no {missing[1]} here", fix=f"tables with rows: {', '.join(there) or 'none'}"
        )
    if missing:
        return UserError(f"there is no table {missing[1]!r}", fix=nearest(missing[1], there))
    if re.search(r"WITH clause containing an? [\w-]+ statement", message):
        return UserError(
            "a query only reads", where="the query", fix="leave out the clause that writes"
        )
    what = re.sub(r"^\w+( \w+)? Error: ", "", message).split("\nTry setting")[0].strip()
    if "Malformed JSON in file" in message:
        for (
            source
        ) in tables:  # duckdb counts lines by its buffers: find the line that a person would
            for name in TABLES:
                for place, line in source.lines(name) if name in source else ():
                    decode_row(line, place)
    if "JSON transform error" in message:
        return UserError(
            f"the rows of a table do not have one schema: {what}", fix="correct or remove that row"
        )
    return UserError(what, where="the query")


def _different(names: Iterable[str]) -> list[str]:
    different: list[str] = []
    for name in names:
        number, unused = 1, name
        while unused in different:
            number, unused = number + 1, f"{name}_{number + 1}"
        different.append(unused)
    return different


def _json_value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None if text == "NaN" else text


Library = Literal["pandas", "polars"]
LIBRARIES = ("pandas", "polars")


def frame(path: str | Path, table: str = "evaluations", *, library: Library = "pandas") -> Any:
    """The table as a `pandas.DataFrame` or a `polars.DataFrame`; nested values are JSON text."""
    check_name(library, LIBRARIES, "for frames there is no library")
    tables = Tables(find_source(path))
    tables.log(check_table(table))
    with connect([tables]) as connection:
        rows = connection.sql(f"SELECT * FROM {table}")
        try:
            return rows.df() if library == "pandas" else rows.pl()
        except ImportError as error:
            raise UserError(
                f"{error.name or library} is not installed", fix=install_command("sql,frames")
            ) from None
