"""Ways to decode evaluation rows narrowly, the fastest that fits first.

The first knows the texts that occurred so far (labels, scorers, facet values): they decode to the same few objects, and
what never varies need not be looked at. The second takes any text, the third facet values of any type.
"""

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Literal, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.records import EvaluationOutcome
from assay.store.table.facets import Narrow, first_of, narrow

_MOST_KNOWN = 1 << 11
_MOST_TEXTS = 32
_MOST_TRIES = 16
_TEXTS = ("label", "scorer", "outcome")
_BASE: dict[str, tuple[Any, Any]] = {  # in the order of the rows, which decodes fastest
    "item_id": (str, ...),
    "sample_index": (int, 0),
    "label": (str, ""),
    "passed": (bool | None, None),
    "score": (float | None, None),
    "scorer": (str, ""),
    "outcome": (EvaluationOutcome, ...),
}


def layouts(facets: Sequence[str]) -> list["Layout"]:
    """Empty where these facets need whole rows."""
    made: list[Layout] = []
    for leaf, raw in ((str | None, False), (msgspec.Raw, True)):
        if (
            found := narrow(facets, _BASE, lambda place, leaf=leaf: leaf, before="score")
        ) is not None:
            made.append(Layout(facets, found, raw=raw))
    return made


class Layout:
    """One struct type. Rows that are equal but for their item are known by one number, as long as there are few such
    numbers: a table then has their combination, sample and score. With many different scores the numbers are only
    combinations. `constant`: fields that the type itself pins to one value; None for types that pin nothing."""

    def __init__(
        self,
        facets: Sequence[str],
        found: Narrow,
        *,
        raw: bool,
        constant: Sequence[str] | None = None,
    ) -> None:
        self.decode_lines = cast(
            "Callable[[bytes], list[Any]]", msgspec.json.Decoder(found.type).decode_lines
        )
        self.known: dict[Any, int] = {}
        self.few = True
        self.table = _table([])
        self._rows: list[tuple[int, int, float]] = []
        self._facets = facets
        self._raw = raw
        self._special = constant is not None
        self._places = [[attrgetter(place) for place in places] for places in found.places]
        top = ["label", "scorer", "outcome", "passed", *found.fields]
        base = {place for places in found.places for place in places if place in _BASE}
        self._names = [
            name for name in [*top, *sorted(base - set(top))] if name not in (constant or ())
        ]
        self._texts: dict[str, set[Any]] = {
            place: set()
            for place in (*_TEXTS, *(place for places in found.places for place in places))
        }
        self._tries = 0
        self._learnt = False
        self.key = self._getter(*self._names, "sample_index", "score")

    def learn(self, rows: list[Any], code: Callable[[Any, tuple[Any, ...]], int]) -> None:
        """Take up the rows that are not known yet; `code` gives the combination of a row and its facet values."""
        if self.few and len(self.known) > _MOST_KNOWN:
            self.few, self.known = False, {}
            self.key = self._getter(*self._names)
        for row in rows:
            key = self.key(row)
            if key in self.known:
                continue
            combination = code(row, self._values(row))
            if self.few:
                score = math.nan if row.score is None else row.score + 0.0  # -0.0 is 0.0
                self.known[key] = len(self._rows)
                self._rows.append((combination, row.sample_index, score))
            else:
                self.known[key] = combination
            if not self._raw and not self._special:
                for place, texts in self._texts.items():
                    texts.add(attrgetter(place)(row))
                self._learnt = True
        self.table = _table(self._rows)

    def improved(self, present: list["Layout"]) -> list["Layout"]:
        """The layouts to continue with: if this one has met new texts, the first is made anew for them."""
        if not self._learnt:
            return present
        self._learnt = False
        self._tries += 1
        others = [layout for layout in present if not layout._special]
        if self._tries > _MOST_TRIES or any(
            len(texts) > _MOST_TEXTS for texts in self._texts.values()
        ):
            return others
        return [self._specialised(), *others]

    def _specialised(self) -> "Layout":
        constant = [name for name in _TEXTS if len(self._texts[name]) == 1]
        absent = [
            place for place, texts in self._texts.items() if texts == {UNSET} and "." not in place
        ]
        base = dict(_BASE)
        for name in _TEXTS:
            base[name] = (
                Literal[tuple(self._texts[name])],
                ... if name in constant else _BASE[name][1],
            )
        found = narrow(self._facets, base, self._literal, before="score")
        assert found is not None
        return Layout(self._facets, found, raw=False, constant=[*constant, *absent])

    def _literal(self, place: str) -> Any:
        texts = tuple(text for text in self._texts[place] if isinstance(text, str))
        # a text that never comes: then any is news, and the next layout's
        known: Any = Literal[texts or ("\0",)]
        return known | None if None in self._texts[place] else known

    def _getter(self, *names: str) -> Callable[[Any], Any]:
        get = attrgetter(*names)
        if not self._raw:
            return get
        places = [place for places in self._places for place in places]

        def key(row: Any) -> tuple[Any, ...]:
            values = (place(row) for place in places)
            plain = (row.label, row.scorer, row.outcome, row.passed)
            joint = (row.sample_index, row.score) if self.few else ()
            return (
                *plain,
                *joint,
                *(bytes(v) if isinstance(v, msgspec.Raw) else v for v in values),
            )

        return key

    def _values(self, row: Any) -> tuple[Any, ...]:
        found = (first_of(place(row) for place in places) for places in self._places)
        return tuple(
            msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
            for value in found
        )


def _table(rows: list[tuple[int, int, float]]) -> tuple[npt.NDArray[Any], ...]:
    combinations, samples, scores = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        np.array(combinations, np.int32),
        np.array(samples, np.int32),
        np.array(scores, np.float64),
    )
