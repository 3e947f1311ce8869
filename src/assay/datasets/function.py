"""A user's function as a dataset."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from assay.datasets._files import bad_row, row_of
from assay.sdk import JsonObject, UserError, dataset


@dataset
def function(
    source: Callable[..., Any], *, params: JsonObject | None = None
) -> Iterator[tuple[str, JsonObject]]:
    """Rows that a function returns or yields: a list, any iterable, or a dict of id → row."""
    name = getattr(source, "__name__", "function")
    try:
        rows = source(**(params or {}))
        if isinstance(rows, dict):
            rows = [{"id": key, **row_of(row, f"{name}() {key!r}")} for key, row in rows.items()]
        if not isinstance(rows, Iterable):
            raise bad_row(
                f"expected rows, the function returned {type(rows).__name__}", f"{name}()"
            )
        for number, row in enumerate(rows):
            place = f"{name}() row {number}"
            yield place, row_of(row, place)
    except UserError:
        raise
    except Exception as error:
        what = f"the dataset function failed: {type(error).__name__}: {error}"
        raise UserError(
            what, where=f"{name}()", fix="run it by hand to see its traceback"
        ) from error
