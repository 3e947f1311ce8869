"""Parquet, read by duckdb. Nested values become lists and objects, times and binary data text."""

from collections.abc import Iterator
from pathlib import Path

from assay.datasets._files import bad_row, json_value, open_file, row_of
from assay.sdk import JsonObject, UserError, dataset, install_command

_AT_ONCE = 256


@dataset
def parquet(path: Path) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a `.parquet` file, streamed."""
    try:
        import duckdb
    except ModuleNotFoundError:
        fix = install_command("parquet")
        raise UserError("reading parquet files needs duckdb", where=str(path), fix=fix) from None
    with open_file(path):  # for what is not a file
        number = 0
    with duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False}) as connection:
        try:
            # A name that no column has: `to_json(t)` would be the column `t` of a table that has one.
            query = 'SELECT to_json("the whole row") FROM read_parquet(?) AS "the whole row"'
            result = connection.execute(query, [str(path).replace("[", "[[]")])
            while rows := result.fetchmany(_AT_ONCE):
                for (text,) in rows:
                    number += 1
                    place = f"{path} row {number}"
                    yield place, row_of(json_value(text.encode(), place), place)
        except duckdb.Error as error:
            place = f"{path}, after row {number}" if number else str(path)
            raise bad_row(str(error).splitlines()[0], place) from None
