"""How few letters must change to make the answer an accepted one."""

from difflib import SequenceMatcher
from typing import Any, Literal

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._parameters import Compared
from assay.text.normalise import normaliser


def ratio(first: str, second: str) -> float:
    """Likeness by common blocks (Ratcliff and Obershelp 1988), as difflib has it: 2·m / (length + length) for m letters
    in common blocks; 1 for two empty texts. Not symmetric, and quick only for up to some thousand letters."""
    return 1.0 if first == second else SequenceMatcher(None, first, second).ratio()


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


@scorer(reads="ground_truth", params=Compared, version=1)
def edit_similarity(
    item: Item,
    response: Response,
    *,
    strip_whitespace: bool = True,
    method: Literal["levenshtein", "blocks"] = "levenshtein",
    threshold: float = 0.8,
    **texts: Any,
) -> Score:
    """How similar the answer is to an accepted answer, letter by letter; the best over the accepted answers.

    Score: 1 − d / max(length, length), where d is the Levenshtein distance (1966): the least number of letters to
    insert, delete or replace. With `blocks` it is 2·m / (length + length), where m counts the letters in the longest
    common block and, left and right of it, in the longest ones there (Ratcliff and Obershelp 1988, as in Python's
    difflib). Two empty texts: 1. Passes from `threshold` on.

    Parameters:
    method: which measure
    threshold: the least score that passes
    """
    compared = Compared(**texts)
    pair = compared.pair(item, response)
    if isinstance(pair, Score):
        return pair
    comparable = normaliser(compared.normalize, compared.case_sensitive, strip_whitespace)
    text = comparable(pair.answer)
    alike = similarity if method == "levenshtein" else ratio
    best = max(alike(comparable(answer), text) for answer in pair.references)
    return Score(passed=best >= threshold, score=best)
