"""How few letters must change to make the answer an accepted one."""

from typing import Literal

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.blocks import ratio
from assay.text.distance import similarity
from assay.text.expected import accepted
from assay.text.normalise import Normalisation, normaliser


@scorer(reads="ground_truth", version=1)
def edit_similarity(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    response_field: str | None = None,
    normalize: Normalisation = "none",
    case_sensitive: bool = True,
    strip_whitespace: bool = True,
    method: Literal["levenshtein", "blocks"] = "levenshtein",
    threshold: float = 0.8,
    strip_reasoning: bool = False,
) -> Score:
    """How similar the answer is to an accepted answer, letter by letter; the best over the accepted answers.

    Score: 1 − d / max(length, length), where d is the Levenshtein distance (1966): the least number of letters to
    insert, delete or replace. With `blocks` it is 2·m / (length + length), where m counts the letters in the longest
    common block and, left and right of it, in the longest ones there (Ratcliff and Obershelp 1988, as in Python's
    difflib). Two empty texts: 1. Passes from `threshold` on.

    Parameters:
    expected: the field of the ground truth that has the accepted answers
    expected_content: the answer itself, for all items
    response_field: compare this field (a dotted path) of the JSON in the answer
    normalize: how both sides are made comparable; see [exact_match](#exact_match)
    case_sensitive: with `none`, whether case counts
    strip_whitespace: with `none`, whether whitespace around the text is dropped
    method: which measure
    threshold: the least score that passes
    strip_reasoning: look only at what follows `</think>`
    """
    answers = [expected_content] if expected_content is not None else accepted(item.ground_truth, expected)
    comparable = normaliser(normalize, case_sensitive, strip_whitespace)
    try:
        given = comparable(answer_of(response, response_field, strip_reasoning))
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    alike = similarity if method == "levenshtein" else ratio
    best = max(alike(comparable(answer), given) for answer in answers)
    return Score(passed=best >= threshold, score=best)
