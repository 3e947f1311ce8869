"""Words that two texts share, counted as often as both have them."""

from functools import lru_cache
from typing import NamedTuple


class Overlap(NamedTuple):
    f1: float
    precision: float
    recall: float


_SAME = Overlap(1.0, 1.0, 1.0)
_NONE = Overlap(0.0, 0.0, 0.0)


def overlap(given: str, reference: str) -> Overlap:
    """F1, precision and recall of the words of `given` against those of `reference`, split at whitespace.

    Two texts without words are equal; one without any shares nothing with another.
    """
    if given == reference:
        return _SAME
    words, wanted = _words(given), _words(reference)
    common = words.keys() & wanted.keys()
    if not common:
        return _NONE if words or wanted else _SAME
    shared = 0
    for word in common:
        count, other = words[word], wanted[word]
        shared += count if count < other else other
    size, full = sum(words.values()), sum(wanted.values())
    return Overlap(2 * shared / (size + full), shared / size, shared / full)


@lru_cache(1 << 12)
def _words(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts
