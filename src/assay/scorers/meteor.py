"""How many words an answer shares with a reference, by themselves and by their stems, and how well in order."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from assay.scorers._parameters import MeasuredTexts, reads_answer
from assay.sdk import Item, Response, Score, scorer
from assay.text.stem import nltk_stem

_WORD = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Words and punctuation marks, in lower case."""
    return _WORD.findall(text.lower())


def meteor_of(
    words: Sequence[str], reference: Sequence[str], *, alpha: float, beta: float, gamma: float
) -> float:
    """(1 − penalty) · F, where F weighs recall by alpha and the penalty is gamma · (chunks / matches)^beta."""
    pairs = _alignment(words, reference)
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(words), len(pairs) / len(reference)
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    chunks = 1 + sum(second != (first[0] + 1, first[1] + 1) for first, second in pairwise(pairs))
    return (1 - gamma * (chunks / len(pairs)) ** beta) * mean


def _alignment(words: Sequence[str], reference: Sequence[str]) -> list[tuple[int, int]]:
    """(place in the text, place in the reference) of words that match: first equal ones, then equal stems."""
    ours, theirs = list(range(len(words))), list(range(len(reference)))
    pairs: list[tuple[int, int]] = []
    same: Callable[[str], str] = str
    for key in (same, nltk_stem):
        free: dict[str, list[int]] = {}
        for place in theirs:
            free.setdefault(key(reference[place]), []).append(place)
        found = [
            (place, places.pop())
            for place in reversed(ours)
            if (places := free.get(key(words[place])))
        ]
        pairs += found
        taken, used = {pair[0] for pair in found}, {pair[1] for pair in found}
        ours = [place for place in ours if place not in taken]
        theirs = [place for place in theirs if place not in used]
    return sorted(pairs)


@scorer(reads="ground_truth", params=MeasuredTexts, verdicts="threshold", version=1)
@reads_answer
def meteor(
    item: Item,
    response: Response,
    *,
    alpha: float = 0.9,
    beta: float = 3.0,
    gamma: float = 0.5,
    **texts: Any,
) -> Score:
    """Word overlap by METEOR, of equal words and equal stems, the best over the accepted answers. English.

    Score: (1 − γ · (chunks / m)^β) · P·R / (α·P + (1 − α)·R), where m words match, P = m / words of the answer, R = m /
    words of the accepted answer, and chunks are the runs of matches in the same order. Lavie and Agarwal 2007, matched
    as NLTK does. METEOR's third way to match, synonyms, is left out: it needs the WordNet database, which would have to
    be downloaded. So a score is at most that of a METEOR with synonyms, and equal where no synonym matches: compare it
    only with scores from here.

    Parameters:
    alpha: how much more recall weighs than precision
    beta: how fast the penalty grows with the number of chunks
    gamma: the greatest penalty
    """
    measured = MeasuredTexts(**texts)
    pair = measured.pair(item, response)
    wanted, answer = map(words, pair.references), words(pair.answer)
    return measured.scored(
        max(meteor_of(answer, one, alpha=alpha, beta=beta, gamma=gamma) for one in wanted)
    )
