"""When two values are the same: to the last bit, or numbers within 1e-12 of each other."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")
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


class Verdict(msgspec.Struct):
    """What came of the rows of one scorer or metric; `reasons` counts why some cannot be verified."""

    stored: int = 0
    differ: int = 0
    unverified: int = 0
    reasons: Counter[str] = msgspec.field(default_factory=Counter)
    differences: list[Difference] = []

    def excuse(self, reason: str, rows: int = 1) -> None:
        """Count rows that cannot be verified."""
        self.unverified += rows
        self.reasons[reason] += rows

    def add(self, where: str, name: str, place: str, differences: Iterable[Differing]) -> None:
        """Count a row that differs."""
        self.differ += 1
        self.differences += [Difference(where, name, place, *each) for each in differences]


def pair_rows(
    stored: Iterable[T], computed: Iterable[T], place: Callable[[T], Hashable]
) -> Iterator[tuple[T | None, T | None]]:
    """Yield each stored row with the computed one of its place, and then those that are computed alone."""
    again = {place(row): row for row in computed}
    for row in stored:
        yield row, again.pop(place(row), None)
    for row in again.values():
        yield None, row


def differing(stored: Any, computed: Any, field: str) -> Iterator[Differing]:
    """(field, stored, computed) wherever two JSON values differ."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        first, second = cast("Mapping[str, Any]", stored), cast("Mapping[str, Any]", computed)
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
