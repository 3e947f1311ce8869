"""A table of an experiment as a data frame, for those who go on in pandas or polars."""

from pathlib import Path
from typing import Any, Literal

from assay.analysis.query import connect
from assay.analysis.tables import Tables, check_table
from assay.errors import UserError
from assay.registry import nearest
from assay.steps.sources import find_source

Library = Literal["pandas", "polars"]
LIBRARIES = ("pandas", "polars")


def frame(path: str | Path, table: str = "evaluations", *, library: Library = "pandas") -> Any:
    """The table as a `pandas.DataFrame` or a `polars.DataFrame`; nested values are JSON text."""
    if library not in LIBRARIES:
        raise UserError(f"there is no library {library!r} for frames", fix=nearest(library, LIBRARIES))
    tables = Tables(find_source(path))
    tables.log(check_table(table))
    with connect([tables]) as connection:
        found = connection.sql(f"SELECT * FROM {table}")
        try:
            return found.df() if library == "pandas" else found.pl()
        except ImportError as error:
            raise UserError(
                f"{error.name or library} is not installed", fix="pip install 'assay[sql,frames]'"
            ) from None
