"""Equality with one of the accepted answers."""

from typing import Any

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._parameters import Compared
from assay.text.normalise import Stemming, normaliser


@scorer(reads="ground_truth", params=Compared, version=1)
def exact_match(
    item: Item,
    response: Response,
    *,
    strip_whitespace: bool = True,
    stemming: Stemming = False,
    **texts: Any,
) -> Score:
    """The answer equals one of the accepted answers.

    Score: 1 if norm(answer) = norm(a) for an accepted answer a, else 0. `squad` is the normalisation of Rajpurkar et
    al. 2016 (SQuAD): lower case, no ASCII punctuation, no articles, single spaces; `basic` folds case and whitespace
    and drops quotes, markdown and final punctuation around the text; `lower`, `spaces` and `lower_spaces` make small
    letters, single spaces, or both; `none` leaves both to the two flags.

    Parameters:
    normalize: how both sides are made comparable
    """
    compared = Compared(**texts)
    pair = compared.pair(item, response)
    if isinstance(pair, Score):
        return pair
    comparable = normaliser(compared.normalize, compared.case_sensitive, strip_whitespace, stemming)
    text = comparable(pair.answer)
    for answer in pair.references:
        if text == comparable(answer):
            return Score(passed=True, score=1.0)
    return Score(passed=False, score=0.0)
