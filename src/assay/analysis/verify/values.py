"""When two values are the same: to the last bit, or numbers within 1e-12 of each other."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from assay.records import JsonMapping

TOLERANCE = 1e-12
Differing = tuple[str, Any, Any]  # field, stored, computed


class Difference(msgspec.Struct):
    """A value that is stored and not what comes of the rows: `where` it is (labels, metrics, headlines), of what
    `name`, at which `place`, in which `field`."""

    where: str
    name: str
    place: str
    field: str
    stored: Any
    computed: Any


def differing(stored: Any, computed: Any, field: str) -> Iterator[Differing]:
    """(field, stored, computed) wherever two JSON values differ."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        first, second = cast("JsonMapping", stored), cast("JsonMapping", computed)
        for name in dict.fromkeys((*first, *second)):
            yield from differing(
                first.get(name), second.get(name), f"{field}.{name}" if field else name
            )
    elif isinstance(stored, (list, tuple)) and isinstance(computed, (list, tuple)):
        own, other = list(cast("list[Any]", stored)), list(cast("list[Any]", computed))
        if len(own) != len(other):
            yield field, own, other
            return
        for number, pair in enumerate(zip(own, other, strict=True)):
            yield from differing(*pair, f"{field}[{number}]")
    elif not _same(stored, computed):
        yield field, stored, computed


def _same(stored: Any, computed: Any) -> bool:
    if isinstance(stored, bool) or isinstance(computed, bool):
        return stored is computed
    if isinstance(stored, (int, float)) and isinstance(computed, (int, float)):
        return stored == computed or math.isclose(stored, computed, rel_tol=TOLERANCE, abs_tol=0.0)
    return bool(stored == computed)
