"""How few letters must change to make the answer an accepted one."""

from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Any, Literal

from assay.scorers._parameters import Compared, reads_answer
from assay.sdk import Item, Response, Score, scorer
from assay.text.error_rate import distance
from assay.text.normalise import normaliser

MOST_PAIRS = 10**7


def ratio(first: str, second: str) -> float:
    """Likeness by common blocks (Ratcliff and Obershelp 1988), as difflib has it: 2·m / (length + length) for m letters
    in common blocks; 1 for two empty texts. Not symmetric. ValueError where it would take too long."""
    return 1.0 if first == second else _Counted(first, second).ratio()


class _Counted(SequenceMatcher[str]):
    """Counts the pairs of equal letters that it looks at."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(None, first, second)
        self.lengths = len(first), len(second)
        self.looks = 0
        places: dict[str, list[int]] = vars(self)["b2j"]
        # up to each letter
        self.pairs = [0, *accumulate(1 + len(places.get(letter, ())) for letter in first)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        self.looks += self.pairs[ahi if ahi is not None else -1] - self.pairs[alo]
        if self.looks > MOST_PAIRS:
            raise _too_long(*self.lengths)
        return super().find_longest_match(alo, ahi, blo, bhi)


def _too_long(first: int, second: int) -> ValueError:
    return ValueError(
        f"texts of {first:,} and {second:,} letters are too long to compare letter by letter"
    )


def similarity(first: str, second: str) -> float:
    """1 − distance / length of the longer text; 1 for two empty texts."""
    longer = max(len(first), len(second))
    return 1.0 - distance(first, second) / longer if longer else 1.0


@scorer(reads="ground_truth", params=Compared, version=1)
@reads_answer
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
    difflib). Two empty texts: 1. Passes from `threshold` on. Texts that would take longer than some seconds (two of
    more than 90,000 letters; with `blocks`, of many equal blocks) are an error.

    Parameters:
    method: which measure
    threshold: the least score that passes
    """
    compared = Compared(**texts)
    pair = compared.pair(item, response)
    comparable = normaliser(compared.normalize, compared.case_sensitive, strip_whitespace)
    text = comparable(pair.answer)
    alike = similarity if method == "levenshtein" else ratio
    best = max(alike(comparable(answer), text) for answer in pair.references)
    return Score(passed=best >= threshold, score=best)
