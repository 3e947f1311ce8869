"""Containment of one of the accepted answers."""

from typing import Literal

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._parameters import Texts
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted
from assay.text.normalise import Normalisation, Stemming, normaliser


@scorer(reads="ground_truth", params=Texts, version=1)
def contains(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    response_field: str | None = None,
    normalize: Normalisation = "none",
    case_sensitive: bool = True,
    stemming: Stemming = False,
    require: Literal["any", "all"] = "any",
    strip_reasoning: bool = False,
) -> Score:
    """The answer contains one of the accepted answers.

    Score: the share of the accepted answers that norm(answer) contains with `require: all`, which passes at 1;
    otherwise 1 if there is one, else 0. An expectation that is empty (as such, or after normalising) is refused,
    because every answer would contain it.

    Parameters:
    expected_content: the text itself, for all items
    require: whether one of the accepted answers is enough
    """
    answers = [expected_content] if expected_content is not None else accepted(item.ground_truth, expected)
    comparable = normaliser(normalize, case_sensitive, False, stemming)
    wanted = [comparable(answer) for answer in answers]
    if "" in wanted:
        raise ValueError("the expected text is empty, so every answer would contain it")
    try:
        given = comparable(answer_of(response, response_field, strip_reasoning))
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    hits = sum(text in given for text in wanted)
    score = hits / len(wanted) if require == "all" else float(hits > 0)
    return Score(passed=score == 1.0, score=score)
