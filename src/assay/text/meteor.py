"""METEOR (Lavie and Agarwal 2007) by equal words and equal stems.

Of METEOR's three ways to match words the third, synonyms, needs the WordNet database, which is a download and English
only; it is left out, so scores lie at or below those with it. Words are matched as NLTK does: from the last one to the
first, to the last free place in the reference.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from assay.text.stem import nltk_stem

_WORD = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Words and punctuation marks, in lower case."""
    return _WORD.findall(text.lower())


def meteor(given: Sequence[str], reference: Sequence[str], *, alpha: float, beta: float, gamma: float) -> float:
    """(1 − penalty) · F, where F weighs recall by alpha and the penalty is gamma · (chunks / matches)^beta."""
    pairs = _aligned(given, reference)
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(given), len(pairs) / len(reference)
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    chunks = 1 + sum(second != (first[0] + 1, first[1] + 1) for first, second in pairwise(pairs))
    return (1 - gamma * (chunks / len(pairs)) ** beta) * mean


def _aligned(given: Sequence[str], reference: Sequence[str]) -> list[tuple[int, int]]:
    """(place in the text, place in the reference) of words that match: first equal ones, then equal stems."""
    ours, theirs = list(range(len(given))), list(range(len(reference)))
    pairs: list[tuple[int, int]] = []
    same: Callable[[str], str] = str
    for key in (same, nltk_stem):
        free: dict[str, list[int]] = {}
        for place in theirs:
            free.setdefault(key(reference[place]), []).append(place)
        found = [(place, places.pop()) for place in reversed(ours) if (places := free.get(key(given[place])))]
        pairs += found
        taken, used = {pair[0] for pair in found}, {pair[1] for pair in found}
        ours = [place for place in ours if place not in taken]
        theirs = [place for place in theirs if place not in used]
    return sorted(pairs)
