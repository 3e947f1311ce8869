"""What two texts share: words, counted as often as both have them, and ROUGE (Lin 2004), n-grams and longest common
subsequences. ROUGE's words, stems and ties are those of the `rouge-score` package, whose numbers papers report.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from assay.text.error_rate import places_of
from assay.text.stem import nltk_stem

_LONGEST_COUNTED = 500  # letters: what is remembered stays within a few megabytes
_LONGEST_REMEMBERED = 2000


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
    words = _short_counted(given) if len(given) <= _LONGEST_COUNTED else _word_set(given)
    wanted = (
        _short_counted(reference) if len(reference) <= _LONGEST_COUNTED else _word_set(reference)
    )
    shared = len(words & wanted)
    if not shared:
        return _NONE if words or wanted else _SAME
    return _of(shared, len(words), len(wanted))


def _word_set(text: str) -> frozenset[object]:
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


_short_counted = lru_cache(1 << 11)(_word_set)


# ---- ROUGE


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest sequence of words that both have in order."""
    if len(first) > len(second):
        first, second = second, first
    places = places_of(first)
    free = every = (1 << len(first)) - 1
    for word in second:
        match = places.get(word)
        if match is not None:
            taken = free & match
            free = (free + taken | free - taken) & every
    return len(first) - free.bit_count()


def common_places(reference: Sequence[str], other: Sequence[str]) -> list[int]:
    """The places in `reference` of one longest common subsequence: from the end, equal last words belong to it, and
    where leaving out either last word keeps the length, the reference loses its own (as in ROUGE 1.5.5)."""
    places = places_of(other)
    free = every = (1 << len(other)) - 1
    rows = [free]
    for word in reference:
        taken = free & places.get(word, 0)
        free = (free + taken | free - taken) & every
        rows.append(free)
    found: list[int] = []
    row, column = len(reference), len(other)
    while row and column:
        if reference[row - 1] == other[column - 1]:
            row, column = row - 1, column - 1
            found.append(row)
            continue
        before = (1 << column) - 1
        if (rows[row] & before).bit_count() < (
            rows[row - 1] & before
        ).bit_count():  # this row's word is needed
            column -= 1
        else:
            row -= 1
    return found[::-1]


_WORD = re.compile(r"[a-z0-9]+")
_MOST_LINES = 2_000_000  # of the text times words of the reference
_MOST_CELLS = 10**9  # of the table of two lines
_SHORTEST_STEMMED = 4


def words(text: str, stemming: bool) -> tuple[str, ...]:
    """Runs of a to z and 0 to 9, in lower case; words of four letters and more as their stems."""
    return _short(text, stemming) if len(text) <= _LONGEST_REMEMBERED else _words(text, stemming)


def _words(text: str, stemming: bool) -> tuple[str, ...]:
    found = _WORD.findall(text.lower())
    if stemming:
        found = [nltk_stem(word) if len(word) >= _SHORTEST_STEMMED else word for word in found]
    return tuple(found)


_short = lru_cache(1 << 10)(_words)


def rouge_n(given: Sequence[str], reference: Sequence[str], n: int) -> Overlap:
    """n-grams, counted as often as both have them."""
    ours, theirs = _grams(given, n), _grams(reference, n)
    shared = sum(min(count, theirs[gram]) for gram, count in ours.items() if gram in theirs)
    return _of(shared, max(0, len(given) - n + 1), max(0, len(reference) - n + 1))


def rouge_l(given: Sequence[str], reference: Sequence[str]) -> Overlap:
    """The longest common subsequence."""
    return _of(common_length(given, reference), len(given), len(reference))


def rouge_l_sum(given: str, reference: str, stemming: bool) -> Overlap:
    """Line by line: for each line of the reference, the union of its common subsequences with all lines of the text.
    A word counts no more often than both texts have it."""
    ours, theirs = (
        [words(line, stemming) for line in text.split("\n")] for text in (given, reference)
    )
    left, wanted = (Counter(word for line in lines for word in line) for lines in (ours, theirs))
    size, full = left.total(), wanted.total()
    if len(ours) * full > _MOST_LINES or max(map(len, ours)) * max(map(len, theirs)) > _MOST_CELLS:
        raise ValueError(
            f"texts of {len(ours):,} and {len(theirs):,} lines are too long to compare line by line"
        )
    hits = 0
    for line in theirs:
        for place in sorted({place for other in ours for place in common_places(line, other)}):
            word = line[place]
            if left[word] > 0 and wanted[word] > 0:
                hits += 1
                left[word] -= 1
                wanted[word] -= 1
    return _of(hits, size, full)


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(n)), strict=False))


def _of(shared: int, size: int, full: int) -> Overlap:
    if not shared:
        return _NONE
    return Overlap(2 * shared / (size + full), shared / size, shared / full)
