"""Likeness by common blocks (Ratcliff and Obershelp 1988), with the numbers of Python's difflib.

Not symmetric, and quick only for texts of up to some thousand letters; Levenshtein's distance (`distance.py`) has
neither fault.
"""

from difflib import SequenceMatcher
from typing import NamedTuple


class Difference(NamedTuple):
    """What to do with a part of the first text (`replace`, `delete`, `insert`) to get that of the second."""

    operation: str
    first: str
    second: str


def ratio(first: str, second: str) -> float:
    """2·m / (length + length) for m letters in common blocks; 1 for two empty texts."""
    return 1.0 if first == second else SequenceMatcher(None, first, second).ratio()


def differences(first: str, second: str) -> list[Difference]:
    steps = SequenceMatcher(None, first, second).get_opcodes()
    return [Difference(step, first[a:b], second[c:d]) for step, a, b, c, d in steps if step != "equal"]
