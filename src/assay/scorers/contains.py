"""Containment of one of the accepted answers."""

from typing import Any, Literal

from assay.scorers._parameters import Compared, reads_answer
from assay.sdk import Item, Response, Score, scorer
from assay.text.normalise import Stemming, normaliser


@scorer(reads="ground_truth", params=Compared, version=1)
@reads_answer
def contains(
    item: Item,
    response: Response,
    *,
    stemming: Stemming = False,
    require: Literal["any", "all"] = "any",
    **texts: Any,
) -> Score:
    """The answer contains one of the accepted answers.

    Score: the share of the accepted answers that norm(answer) contains with `require: all`, which passes at 1;
    otherwise 1 if there is one, else 0. An expectation that is empty (as such, or after normalising) is refused,
    because every answer would contain it.

    Parameters:
    expected_content: the text itself, for all items
    require: whether one of the accepted answers is enough
    """
    compared = Compared(**texts)
    comparable = normaliser(compared.normalize, compared.case_sensitive, False, stemming)
    wanted = [comparable(answer) for answer in compared.references(item)]
    if "" in wanted:
        raise ValueError("the expected text is empty, so every answer would contain it")
    given = comparable(compared.answer(response))
    hits = sum(text in given for text in wanted)
    score = hits / len(wanted) if require == "all" else float(hits > 0)
    return Score(passed=score == 1.0, score=score)
