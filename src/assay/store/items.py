"""Dataset rows of any shape ⇄ items. The stored row gives the same item again.

A row with `data` is an item already; any other row is flat, and all its fields are the data. Where no
ground truth is given, the data serve as one: a scorer finds `ground_truth["answer"]` in either shape.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from assay.errors import UserError
from assay.records import Item, JsonMapping, JsonObject, decode_json
from assay.store import keys
from assay.store.keyset import Seen

_OWN = frozenset({"id", "data", "ground_truth", "metadata"})
_FORMS = {
    ("id", "data", *more)
    for more in ((), ("ground_truth",), ("metadata",), ("ground_truth", "metadata"))
}
_NO_METADATA: JsonObject = {}
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def normalise(row: JsonMapping, place: str = "") -> Item:
    """The item of one row; without an id it gets its content hash. `place` (file and row) is for errors."""
    if type(row) is not dict and not isinstance(row, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(
            f"a dataset row must be an object, got {_short(row)}",
            where=place,
            fix='write {"question": …} per row',
        )
    identity = _id_text(row["id"], place) if has_own_id(row) else _content_id(row, place)
    metadata = row.get("metadata")
    own_metadata = type(metadata) is dict or (
        metadata is not None and isinstance(metadata, Mapping)
    )
    if "data" in row:
        data = row["data"]
        extra = {key: value for key, value in row.items() if key not in _OWN}
        if "metadata" in row and not own_metadata:
            extra["metadata"] = metadata
    else:
        left_out = _OWN if own_metadata else _OWN - {"metadata"}
        data = {key: value for key, value in row.items() if key not in left_out}
        extra = {}
    return Item(
        id=identity,
        data=data,
        ground_truth=row["ground_truth"] if "ground_truth" in row else _default_truth(data),
        metadata=dict(metadata) if own_metadata and metadata is not None else {},
        extra=extra,
    )


def normalise_all(rows: Iterable[JsonMapping | Item], source: str = "dataset") -> Iterator[Item]:
    """The items of all rows."""
    placed = ((f"{source}, row {number}", row) for number, row in enumerate(rows, 1))
    return (item for _, item in normalise_placed(placed))


def normalise_placed(
    rows: Iterable[tuple[str, JsonMapping | Item]],
) -> Iterator[tuple[str, Item]]:
    """The items of rows that come with their places, with these. Equal rows without ids are told apart by an
    occurrence number: `…`, `…-2`, `…-3`."""
    seen = Seen()
    repeats: dict[str, int] = {}
    for place, row in rows:
        if isinstance(row, Item):
            yield place, row
            continue
        item = normalise(row, place)
        if not has_own_id(row) and not seen.add(int(item.id, 16)):
            repeats[item.id] = repeats.get(item.id, 1) + 1
            item.id = f"{item.id}-{repeats[item.id]}"
        yield place, item


def has_own_id(row: JsonMapping) -> bool:
    """Null and empty text identify nothing: a table with an unfilled id column has no ids."""
    return row.get("id") not in (None, "")


def encode_item(item: Item, place: str = "") -> bytes:
    """The stored row, without a line feed. What JSON lacks (NaN, tuples) becomes null, or a list."""
    row: JsonObject = {"id": item.id, "data": item.data}
    if item.ground_truth is not _default_truth(item.data):
        row["ground_truth"] = item.ground_truth
    if item.metadata:
        row["metadata"] = item.metadata
    try:
        return _encode({**row, **item.extra, **row})
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(error, place or f"item {_short(item.id)}") from None


def stored_item(row: JsonMapping, place: str = "") -> tuple[str, bytes]:
    """A row's id and its stored row; most rows are in that form already."""
    id, data, metadata = row["id"], row.get("data"), row.get("metadata", _NO_METADATA)
    if (
        tuple(row) in _FORMS
        and type(id) is str
        and id
        and type(data) is dict
        and type(metadata) is dict
    ):
        if not metadata and metadata is not _NO_METADATA:
            row = {name: value for name, value in row.items() if name != "metadata"}
        return id, _encode(row)
    item = normalise(_decode(_encode(row)), place)
    return item.id, encode_item(item, place)


def decode_item(line: bytes, place: str = "") -> Item:
    """The item of a stored row."""
    try:
        row = _decode(line)
    except (ValueError, RecursionError) as error:
        try:  # NaN and the like, in a file that others wrote
            row = decode_json(line)
        except ValueError:
            raise UserError(
                f"a dataset row is not JSON: {error}", where=place, fix="correct this line"
            ) from None
    if type(row) is dict and tuple(row) in _FORMS and row["id"] and type(row["id"]) is str:
        # most rows: a million are read several times
        data, metadata = (row["data"], row.get("metadata", {}))
        if type(metadata) is dict:
            truth = (
                row["ground_truth"]
                if "ground_truth" in row
                else data
                if type(data) is dict
                else None
            )
            return Item(id=row["id"], data=data, ground_truth=truth, metadata=metadata)
    return normalise(row, place)


def _default_truth(data: Any) -> Any:
    return data if isinstance(data, Mapping) else None


def _id_text(value: Any, place: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise UserError(
        f"an id must be text or a number, got {_short(value)}", where=place, fix="give a plain `id`"
    )


def _content_id(row: JsonMapping, place: str) -> str:
    try:
        return keys.digest("item", keys.canonical(row)).hex()[:16]
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(error, place) from None


def _not_json(error: Exception, place: str) -> UserError:
    return UserError(
        f"a dataset row cannot be written as JSON: {error}",
        where=place,
        fix="use text, numbers, booleans, null, lists and objects",
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
