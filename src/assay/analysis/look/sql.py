"""SQL over the rows of experiments, read only; and a table as a data frame."""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from assay.analysis.look.export import TABLES, Tables, check_table, foreign_row
from assay.engine.experiment.resolve import find_source, find_sources
from assay.errors import UserError, install_command
from assay.registry import nearest

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LOOKED_AT = 1000  # rows that tell the columns, where a query need not know all of them
BATCH = 1000
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

    def rows(self) -> Iterator[dict[str, Any]]:
        """Nested values as what they are."""
        for values in self.tuples():
            row = list(values)
            for at in self._json:
                if row[at] is not None:
                    row[at] = _json_value(row[at])
            yield dict(zip(self.columns, row, strict=True))


def sql(paths: str | Path | Sequence[str | Path], query: str) -> list[dict[str, Any]]:
    """The rows that a SELECT over items, responses, evaluations and metrics finds; nothing can be written."""
    with ask([paths] if isinstance(paths, (str, Path)) else paths, query) as answer:
        return list(answer.rows())


@contextmanager
def ask(paths: Sequence[str | Path], sql: str) -> Generator[QueryAnswer]:
    """The answer to one SELECT over the tables of these experiments."""
    tables = [Tables(source) for source in find_sources(paths)]
    with connect(tables, most=LOOKED_AT) as connection:
        files = sorted(
            {path for one in tables for name in TABLES if name in one for path in one.files(name)}
        )
        allowed = dict.fromkeys(name for file in files for name in (file, _GLOB.sub(r"[\1]", file)))
        connection.execute(f"SET allowed_paths = [{', '.join(map(text, allowed))}]")
        for lock in _LOCKS:
            connection.execute(lock)
        _check(connection, sql)
        connection.execute(sql)
        yield QueryAnswer(
            connection, [f"{one.source.name}: {note}" for one in tables for note in one.partial()]
        )


@contextmanager
def connect(
    tables: Sequence[Tables], *, most: int | None = None
) -> Generator["DuckDBPyConnection"]:
    """A connection with a view for each table; the columns are those of the first `most` rows, or of all.

    What duckdb finds wrong inside the `with` block becomes a UserError.
    """
    try:
        import duckdb
    except ImportError:
        raise UserError(
            "this needs duckdb, which is not installed", fix=install_command("sql")
        ) from None
    with TemporaryDirectory(prefix="assay-sql-") as folder:
        connection = duckdb.connect(":memory:")
        try:
            connection.execute(f"SET temp_directory = {text(folder)}")
            for name in TABLES:
                parts = [
                    _select(source, name, most, len(tables) > 1)
                    for source in tables
                    if name in source
                ]
                if parts:
                    connection.execute(f"CREATE VIEW {name} AS {' UNION ALL BY NAME '.join(parts)}")
            yield connection
        except duckdb.PermissionException:
            fix = f"tables: {', '.join(TABLES)}"
            raise UserError(
                "a query reads the experiment's tables and no other file", fix=fix
            ) from None
        except duckdb.Error as error:
            raise _explained(str(error), tables) from None
        finally:
            connection.close()


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


def _select(tables: Tables, name: str, most: int | None, several: bool) -> str:
    columns = tables.columns(name, most if name != "metrics" else None)
    source = (
        f"{text(tables.source.name)} AS source, " if several and "source" not in columns else ""
    )
    return read_rows(tables.files(name), columns, source)


def read_rows(files: Iterable[str], columns: Mapping[str, str], more: str = "") -> str:
    """The query that reads files of rows with these columns."""
    different: dict[str, str] = {}
    for column, type in columns.items():
        # two that differ in case only are one to SQL
        if column.lower() not in map(str.lower, different):
            different[column] = type
    names = ", ".join(text(_GLOB.sub(r"[\1]", file)) for file in files)
    typed = ", ".join(f"{text(column)}: {text(type)}" for column, type in different.items())
    return f"SELECT {more}* FROM read_json([{names}], format = 'newline_delimited', columns = {{{typed}}})"


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _explained(message: str, tables: Sequence[Tables]) -> UserError:
    missing = re.search(r"Table with name (\S+) does not exist", message)
    there = [name for name in TABLES if any(name in source for source in tables)]
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
                    foreign_row(line, place)
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
    if library not in LIBRARIES:
        raise UserError(
            f"there is no library {library!r} for frames", fix=nearest(library, LIBRARIES)
        )
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
