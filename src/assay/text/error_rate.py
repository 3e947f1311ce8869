"""Word and character error rates: the fewest insertions, deletions and replacements, divided by the reference's length.

Edits and lengths add up: the rate of a corpus is the sum of the edits divided by the sum of the lengths.
"""

import re
from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple
from unicodedata import category

MOST_CELLS = 10**10  # of the table of two texts, some thousand of which are one step
_PARTS_A_STEP = 8_000
_MARK = re.compile(r"(?<=\w)['’.,-](?=\w)|([^\w\s])")

Unit = Literal["word", "character"]


class Rate(NamedTuple):
    """How many edits make one text the other, which has `length` words or characters."""

    edits: int
    length: int

    def share(self) -> float:
        """Of an empty reference it is the number of edits."""
        return self.edits / max(1, self.length)


def error_rate(text: str, reference: str, unit: Unit) -> Rate:
    """Of two texts whose runs of whitespace are one space each; ValueError where it would take too long."""
    words, wanted = text.split(), reference.split()
    if unit == "word":
        return Rate(distance(words, wanted, "words"), len(wanted))
    letters, wanted_letters = " ".join(words), " ".join(wanted)
    return Rate(distance(letters, wanted_letters), len(wanted_letters))


def without_punctuation(text: str) -> str:
    """Punctuation becomes a space; inside a word or a number (don't, 1,000) it stays."""
    return _MARK.sub(lambda mark: " " if mark[1] and category(mark[1])[0] == "P" else mark[0], text)


def distance(first: Sequence[Hashable], second: Sequence[Hashable], parts: str = "letters") -> int:
    """Return Levenshtein's distance: the least number of parts to insert, delete or replace to make
    one of the other. ValueError where it would take too long.

    rapidfuzz: on 10,000 pairs the same numbers as a distance in Python by bits of long integers, in
    a fourteenth of its time for words and a fortieth for characters."""
    from rapidfuzz.distance import Levenshtein  # start-up does without it

    if _is_large(first, second):
        start = _common(first, second)
        first, second = first[start:], second[start:]
        end = _common(first[::-1], second[::-1])
        first, second = first[: len(first) - end], second[: len(second) - end]
        if _is_large(first, second):
            less, more = sorted((len(first), len(second)))
            part = parts.removesuffix("s")
            sizes = f"texts of {less:,} and {more:,} {parts}"
            raise ValueError(f"{sizes} are too long to compare {part} by {part}")
    return Levenshtein.distance(first, second)


def _is_large(first: Sequence[Hashable], second: Sequence[Hashable]) -> bool:
    less, more = sorted((len(first), len(second)))
    return more * (less + _PARTS_A_STEP) > MOST_CELLS


def places_of(parts: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return for each part a bit for every place where it stands."""
    places: dict[Hashable, int] = {}
    for place, part in enumerate(parts):
        places[part] = places.get(part, 0) | 1 << place
    return places


def _common(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return how many parts the two begin with in common."""
    if first[:1] != second[:1]:
        return 0
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))
