"""Facets: how a name in a config finds a value in a row, and how such values are told apart and
ordered.

At each level a key that contains the dots wins over a path. An evaluation row is searched first,
then inside its `metadata`; what it lacks comes from its response (the same two places), then
from its item (fields, data, metadata). Values keep their JSON types: 0, 0.0, false and null are
four different groups, and nothing is joined into strings.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from assay.errors import UserError
from assay.records import JsonMapping, JsonObject, find as find, find_in_row as find_in_row
from assay.registry import nearest

_encode = msgspec.json.Encoder(order="sorted").encode
_NOT_A_FIELD = re.compile(r'[\\"\x00-\x1f]')  # names that msgspec takes for no field
_RANKS: dict[type, int] = {type(None): 0, bool: 1, int: 2, float: 2, str: 3, list: 4, dict: 5}


def find_in_item(row: JsonMapping, facet: str) -> Any:
    """In an item: its fields, then inside `data`, then inside `metadata`."""
    for part in (row, row.get("data"), row.get("metadata")):
        found = find(part, facet)
        if found is not UNSET:
            return found
    return UNSET


def typed(value: Any) -> bytes:
    """Equal for equal values of equal types only; mappings are equal in any order of their keys."""
    return _encode(value)


def text_of(value: Any) -> str:
    """A facet's value as one writes it on a command line."""
    return value if isinstance(value, str) else typed(value).decode()


def order(value: Any) -> tuple[int, Any, str]:
    """A sort key over values of all JSON types: null, false, true, numbers, text, lists,
    mappings."""
    rank = _RANKS[type(value)]
    comparable = 0 if value is None else typed(value) if rank > 3 else value
    return rank, comparable, type(value).__name__


def unknown(facet: str, rows: Iterable[JsonMapping], where: str = "") -> UserError:
    """The error for a facet that exists in no row; `rows` are examples of what does exist."""
    names = {name for row in rows for name in _names(row)}
    return UserError(
        f"the facet {facet!r} exists in no row", where=where, fix=nearest(facet, names)
    )


def _names(row: JsonMapping) -> Iterator[str]:
    for key, value in row.items():
        if key in ("metadata", "data") and isinstance(value, dict):
            inner = cast("JsonObject", value)
            yield from (f"metadata.{name}" if key == "metadata" else name for name in inner)
        else:
            yield key


# ---- narrow decoding: only the facets leave the JSON text


class Narrow(msgspec.Struct):
    """A struct type that decodes only what the facets may need.

    `fields` are its top-level attributes beside those of `base`; `places` has, for each facet,
    the attribute paths that may hold it, first choice first.
    """

    type: type[msgspec.Struct]
    fields: list[str]
    places: list[list[str]]


def narrow(
    facets: Iterable[str],
    base: Mapping[str, tuple[Any, Any]],
    leaf: Any,
    before: str = "",
    *,
    item: bool = False,
) -> Narrow | None:
    """`base`: fields that are decoded anyway, name → (type, default or ...); `leaf` gives the type
    of a value at an attribute path. None: these facets need whole rows.

    `before`: the field that the facets mostly follow; decoding is fastest in the order of the
    text. `item`: they are looked for where items have them.
    """
    tree: JsonObject = {}
    places: list[list[str]] = []
    for facet in facets:
        if facet.count(".") > 3 or _NOT_A_FIELD.search(facet):
            return None
        own = list(_splits(facet))
        inside = (
            ("data", "metadata") if item else () if facet.startswith("metadata.") else ("metadata",)
        )
        paths = own + [(part, *path) for part in inside for path in own]
        found: list[str] = []
        for path in paths:
            if path[0] in base:
                found += [path[0]] if len(path) == 1 else []
            elif (place := _plant(tree, path)) is None:
                return None
            else:
                found.append(place)
        places.append(found)
    fields: list[Any] = [
        (name, *described) if described[1] is not ... else (name, described[0])
        for name, described in base.items()
    ]
    place = 1 + next((at for at, field in enumerate(fields) if field[0] == before), len(fields))
    fields[place:place] = _fields(tree, leaf)
    made = msgspec.defstruct("Narrow", fields, frozen=True, gc=False, kw_only=True)
    return Narrow(made, [f"f{number}" for number in range(len(tree))], places)


def _splits(facet: str) -> Iterator[tuple[str, ...]]:
    yield (facet,)
    head = facet.rpartition(".")[0]
    while head:
        yield from ((head, *rest) for rest in _splits(facet[len(head) + 1 :]))
        head = head.rpartition(".")[0]


def _plant(tree: JsonObject, path: tuple[str, ...]) -> str | None:
    """Put a path into the tree; its attribute path, or None where it runs through or ends at
    another one."""
    place: list[str] = []
    for depth, key in enumerate(path):
        last = depth == len(path) - 1
        node = tree.setdefault(key, None if last else {})
        if (node is None) != last:
            return None
        place.append(f"f{list(tree).index(key)}")
        tree = cast("JsonObject", node)
    return ".".join(place)


def _fields(
    tree: JsonMapping, leaf: Callable[[str], Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    for number, (key, node) in enumerate(tree.items()):
        place = f"{above}f{number}"
        if node is None:
            yield (
                f"f{number}",
                leaf(place) | msgspec.UnsetType,
                msgspec.field(name=key, default=UNSET),
            )
        else:
            inner = msgspec.defstruct(
                "Inner", list(_fields(node, leaf, f"{place}.")), frozen=True, gc=False
            )
            yield (f"f{number}", inner, msgspec.field(name=key, default=inner()))


def first_of(values: Iterable[Any]) -> Any:
    """The first value that is not UNSET."""
    return next((value for value in values if value is not UNSET), UNSET)
