"""Parquet, written by duckdb: numbers and texts with their types, nested values as JSON."""

import os
from contextlib import suppress
from tempfile import NamedTemporaryFile

from assay.analysis.look.export import SAMPLES, Export
from assay.analysis.look.sql import connect, read_rows, text
from assay.sdk import UserError, make_folder, store_error, temporary_of, writer
from assay.store.files import new_file
from assay.store.ledger import check_replaceable, replace_file

_OPTIONS = "FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 16384, USE_TMP_FILE false"  # a row group is held in memory


@writer
def parquet(export: Export) -> None:
    """Apache Parquet, compressed with zstd; it needs a file."""
    if export.path is None:
        raise UserError("parquet cannot be written to standard output", fix="name a file with -o")
    check_replaceable(export.path, force=export.force)
    temporary = temporary_of(export.path)
    try:
        make_folder(export.path.parent)
        os.close(new_file(temporary, export.path))
        place = text(str(temporary.absolute()))
        if export.table == SAMPLES:
            _copy_samples(export, place)
        else:
            with connect([export.tables]) as connection:
                connection.execute(f"COPY {export.table} TO {place} ({_OPTIONS})")
        replace_file(temporary, export.path)
    except OSError as error:
        raise store_error(error, export.path) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _copy_samples(export: Export, place: str) -> None:
    """The joined rows on their way into duckdb."""
    with NamedTemporaryFile(prefix="assay-", suffix=".jsonl") as file:
        file.writelines(line + b"\n" for line in export.lines())
        file.flush()
        with connect([]) as connection:
            connection.execute(
                f"COPY ({read_rows([file.name], export.columns())}) TO {place} ({_OPTIONS})"
            )
