"""Longest common subsequences of words, many columns of the table at a time: Hyyrö (2004), "Bit-parallel LCS-length
computation revisited". Python's integers are the bit vectors, as in `distance.py`: nothing to install, and a few
operations per word instead of one per pair of words.
"""

from collections.abc import Sequence


def common_length(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest sequence of words that both have in order."""
    if len(first) > len(second):
        first, second = second, first
    places = _places(first)
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
    places = _places(other)
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
        if (rows[row] & before).bit_count() < (rows[row - 1] & before).bit_count():  # this row's word is needed
            column -= 1
        else:
            row -= 1
    return found[::-1]


def _places(words: Sequence[str]) -> dict[str, int]:
    """For each word a bit for every place where it stands."""
    places: dict[str, int] = {}
    for place, word in enumerate(words):
        places[word] = places.get(word, 0) | 1 << place
    return places
