"""What the row formats share: the errors for rows that cannot be read."""

from typing import Any

from assay.errors import UserError


def bad_row(what: str, place: str) -> UserError:
    return UserError(f"a dataset row cannot be read: {what}", where=place, fix="mend or remove this row")


def checked(row: Any, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise bad_row(f"expected an object, found {type(row).__name__}", place)
    return row
