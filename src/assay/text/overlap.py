"""Words that two texts share, counted as often as both have them."""

from functools import lru_cache
from typing import NamedTuple


class Overlap(NamedTuple):
    f1: float
    precision: float
    recall: float


_LONGEST_REMEMBERED = 500  # letters: what is remembered stays within a few megabytes
_SAME = Overlap(1.0, 1.0, 1.0)
_NONE = Overlap(0.0, 0.0, 0.0)


def overlap(given: str, reference: str) -> Overlap:
    """F1, precision and recall of the words of `given` against those of `reference`, split at whitespace.

    Two texts without words are equal; one without any shares nothing with another.
    """
    if given == reference:
        return _SAME
    words = _short(given) if len(given) <= _LONGEST_REMEMBERED else _words(given)
    wanted = _short(reference) if len(reference) <= _LONGEST_REMEMBERED else _words(reference)
    shared = len(words & wanted)
    if not shared:
        return _NONE if words or wanted else _SAME
    size, full = len(words), len(wanted)
    return Overlap(2 * shared / (size + full), shared / size, shared / full)


def _words(text: str) -> frozenset[object]:
    """The words, each further occurrence of one as (word, number): what two such sets share is counted in one step."""
    words = text.split()
    found: set[object] = set(words)
    if len(found) == len(words):
        return frozenset(found)
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = number = counts.get(word, 0) + 1
        if number > 1:
            found.add((word, number))
    return frozenset(found)


_short = lru_cache(1 << 11)(_words)
