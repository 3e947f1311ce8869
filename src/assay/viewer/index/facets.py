"""Facets of rows as columns of text: scalars of a mapping that every row has, whatever their
names are."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal

import msgspec

from assay.sdk import Codes, JsonObject, as_object
from assay.store.table.facets import text_of
from assay.viewer.index.packed import codes_of, known_codes

MOST_VALUES = 1000  # of a facet
_MOST_NAMES = 64
_SCALAR = str | int | float | bool | None
_SCALARS = (str, int, float, bool)
_DECODED: JsonObject = {"scalar": _SCALAR, "nested": msgspec.Raw, "any": Any}


class Facets(msgspec.Struct):
    """`kinds` is what is decoded of each name, `values` which there are, numbered. `full` have
    too many. `more`: there are names that are left out."""

    kinds: dict[str, Literal["scalar", "nested", "any"]] = {}
    values: dict[str, dict[str, int]] = {}
    full: set[str] = set()
    more: bool = False

    def learn(self, mapping: Any) -> bool:
        """Take up the names of a mapping; return whether another type is needed to decode it."""
        before = self.more, dict(self.kinds)
        for name, value in as_object(mapping).items():
            kind = "scalar" if value is None or isinstance(value, _SCALARS) else "nested"
            if name in self.kinds:
                self.kinds[name] = kind if value is None or self.kinds[name] == kind else "any"
            elif len(self.kinds) < _MOST_NAMES and _is_field(name):
                self.kinds[name] = kind
            else:
                self.more = True
        return before != (self.more, self.kinds)

    def type(self) -> type[msgspec.Struct]:
        """Return what a mapping is decoded to, which refuses names that are not known."""
        fields = [
            (place, _DECODED[kind], msgspec.field(name=name, default=None))
            for place, (name, kind) in zip(self._places(), self.kinds.items(), strict=True)
        ]
        return msgspec.defstruct("Metadata", fields, forbid_unknown_fields=not self.more, gc=False)

    def struct(self, kind: Any, mapping: Any) -> Any:
        """Return a mapping of any origin as it would have been decoded."""
        given = as_object(mapping)
        named = zip(self._places(), self.kinds, strict=True)
        return kind(**{place: given.get(name) for place, name in named})

    def _places(self) -> list[str]:
        return [f"f{number}" for number in range(len(self.kinds))]

    def codes(self, structs: Sequence[Any]) -> dict[str, Codes]:
        """Return the numbers of the values of rows, by names."""
        found: dict[str, Codes] = {}
        for place, (name, kind) in zip(self._places(), self.kinds.items(), strict=True):
            if kind == "nested" or name in self.full:
                continue
            values = list(map(attrgetter(place), structs))
            known = self.values.get(name, {})
            try:
                codes = known_codes(values, known)
            except (KeyError, TypeError):  # others than before, or others than texts
                codes = codes_of(list(map(_text, values)), known)
            if len(known) > MOST_VALUES:
                self.full.add(name)
                self.values.pop(name, None)
            elif known:
                self.values[name] = known
                found[name] = codes
        return found


def _is_field(name: str) -> bool:
    return name.isprintable() and '"' not in name and "\\" not in name


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return clean(text_of(value)) if isinstance(value, _SCALARS) else None


def clean(text: str) -> str:
    """Return a text without halves of characters, which no other program takes."""
    return text.encode("utf-8", "replace").decode()
