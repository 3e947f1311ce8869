"""What the row formats share: reading JSON as others write it, and the errors for rows that cannot be read."""

import json
from typing import Any

import msgspec

from assay.errors import UserError

_strict = msgspec.json.Decoder().decode


def bad_row(what: str, place: str) -> UserError:
    return UserError(f"a dataset row cannot be read: {what}", where=place, fix="mend or remove this row")


def checked(row: Any, place: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise bad_row(f"expected an object, found {type(row).__name__}", place)
    return row


def decoded(text: bytes, place: str) -> Any:
    """A JSON value; NaN and Infinity, which others write, are taken too."""
    try:
        return _strict(text)
    except (ValueError, RecursionError) as error:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise bad_row(f"not JSON: {error}", place) from None
