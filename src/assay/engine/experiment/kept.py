"""What another program's files have no field for, kept beside their fields: the fields of our rows that reading the
others would not give again."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from assay.errors import UserError

T = TypeVar("T", bound=msgspec.Struct)
_NOWHERE = object()  # equal to no value


def difference(row: Mapping[str, Any], plain: msgspec.Struct) -> dict[str, Any]:
    """The fields of a row as it stands on disk that are not those of `plain`, which is what a reader will make."""
    kept = {name: value for name, value in row.items() if getattr(plain, name, _NOWHERE) != value}
    if "part" in kept and kept["part"] == [*getattr(plain, "part", ())]:
        del kept["part"]  # a tuple of ours is a list in JSON
    return kept


def completed(plain: T, kept: Mapping[str, Any], place: str) -> T:
    """The row again; fields that we do not know go to its metadata."""
    fields = msgspec.to_builtins(plain)
    others = {name: value for name, value in kept.items() if name not in fields}
    fields |= {name: value for name, value in kept.items() if name in fields}
    if others:
        fields["metadata"] = {**fields["metadata"], **others}
    try:
        return msgspec.convert(fields, type(plain))
    except msgspec.ValidationError as error:
        fix = "remove the fields that Assay added to this row, or write the file again"
        raise UserError(f"what Assay kept beside a row cannot be read: {error}", where=place, fix=fix) from None
