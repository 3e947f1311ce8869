"""Levenshtein distance: Myers' bit-parallel algorithm (J. ACM 46(3), 1999) in the form of Hyyrö (2003).

Python's integers are the bit vectors, so one column of the table costs a few operations on long numbers: within a small
factor of a compiled library for the lengths of answers, and the same result with nothing to install.
"""


def distance(first: str, second: str) -> int:
    """The least number of letters to insert, delete or replace to make one text of the other."""
    if first == second:
        return 0
    if len(first) > len(second):
        first, second = second, first
    start = _common(first, second)
    first, second = first[start:], second[start:]
    end = _common(first[::-1], second[::-1])
    if end:
        first, second = first[:-end], second[:-end]
    if not first:
        return len(second)
    places: dict[str, int] = {}
    for place, letter in enumerate(first):
        places[letter] = places.get(letter, 0) | 1 << place
    every = (1 << len(first)) - 1
    last = 1 << (len(first) - 1)
    rising, falling, found = every, 0, len(first)
    for letter in second:
        match = places.get(letter, 0)
        diagonal = (((match & rising) + rising) ^ rising) | match | falling
        up = falling | ~(diagonal | rising) & every
        down = rising & diagonal
        found += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        rising = (down << 1 | ~(diagonal | up)) & every
        falling = diagonal & up & every
    return found


def similarity(first: str, second: str) -> float:
    """1 − distance / length of the longer text; 1 for two empty texts."""
    longer = max(len(first), len(second))
    return 1.0 - distance(first, second) / longer if longer else 1.0


def _common(first: str, second: str) -> int:
    """How many letters the two texts begin with in common."""
    if first[:1] != second[:1]:
        return 0
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))
