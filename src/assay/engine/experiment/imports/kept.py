"""What another program's files have no field for, kept beside their fields: the fields of our rows that reading the
others would not give again."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec

from assay.foreign import evaluation_of, key_of
from assay.sdk import Evaluation, JsonMapping, JsonObject, Response, UserError, list_of

KEPT = "assay"  # the field of another program's rows that holds it

T = TypeVar("T", bound=msgspec.Struct)
_NOWHERE = object()  # equal to no value


def difference(row: JsonMapping, plain: msgspec.Struct) -> JsonObject:
    """The fields of a row as it stands on disk that are not those of `plain`, which is what a reader will make."""
    kept = {name: value for name, value in row.items() if getattr(plain, name, _NOWHERE) != value}
    if "part" in kept and kept["part"] == [*getattr(plain, "part", ())]:
        del kept["part"]  # a tuple of ours is a list in JSON
    return kept


def completed(plain: T, kept: JsonMapping, place: str) -> T:
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
        raise UserError(
            f"what Assay kept beside a row cannot be read: {error}", where=place, fix=fix
        ) from None


def labelled(format: str, response: Response, label: str) -> Evaluation:
    """An evaluation of a response of which nothing is known but its label."""
    return evaluation_of(
        response, label, metadata=response.metadata, key=key_of(format, response.key, label)
    )


def kept_of(
    format: str, response: JsonMapping, plain: Response, evaluations: Sequence[Any]
) -> JsonObject:
    """Return what must stand beside the fields of a response, which will be read as `plain`, so
    that it and its evaluations (rows as they stand on disk) are read again whole."""
    kept: JsonObject = {}
    if changed := difference(response, plain):
        kept["response"] = changed
        plain = completed(plain, changed, "")
    if evaluations:
        kept["evaluations"] = [
            {
                "label": row.get("label", ""),
                **difference(row, labelled(format, plain, str(row.get("label") or ""))),
            }
            for row in evaluations
        ]
    return kept


def restored(
    format: str, row: JsonMapping, plain: Response, place: str
) -> tuple[Response, list[Evaluation] | None]:
    """The response and its evaluations, by what `kept_of` kept in the row; None if nothing is kept in it."""
    kept = row.get(KEPT)
    if not isinstance(kept, dict):
        return plain, None
    fields = cast("JsonObject", kept)
    changed, evaluations = fields.get("response"), fields.get("evaluations")
    response = (
        completed(plain, cast("JsonObject", changed), place) if isinstance(changed, dict) else plain
    )
    entries = list_of(evaluations)
    made = [
        completed(
            labelled(format, response, str(entry.get("label") or "")),
            cast("JsonObject", entry),
            place,
        )
        for entry in entries
        if isinstance(entry, dict)
    ]
    return response, made
