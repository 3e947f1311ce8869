"""Parquet with the table `samples`, read by duckdb."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.analysis.look.sql import connect, text
from assay.foreign import Foreign, head_of
from assay.readers._samples import samples_below
from assay.sdk import UserError, reader

_BATCH = 1000


@reader
def parquet(path: Path) -> list[Foreign]:
    """Files with a row for each response, as `assay convert` writes them."""
    return samples_below(path, "parquet", _columns, _rows)


def _columns(file: Path) -> Sequence[str]:
    if not head_of(file).startswith(b"PAR1"):
        return []
    try:
        with connect([]) as connection:
            described = connection.execute(f"DESCRIBE {_table(file)}").fetchall()
    except UserError:
        return []
    return [str(column[0]) for column in described]


def _rows(file: Path) -> Iterator[Sequence[Any]]:
    with connect([]) as connection:
        connection.execute(_table(file))
        while batch := connection.fetchmany(_BATCH):
            yield from batch


def _table(file: Path) -> str:
    return f"SELECT * FROM read_parquet({text(str(file.absolute()))})"
