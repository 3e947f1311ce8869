"""Equality with one of the accepted answers."""

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.expected import accepted, comparable


@scorer(reads="ground_truth", version=1)
def exact_match(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    case_sensitive: bool = True,
    strip_whitespace: bool = True,
) -> Score:
    """The answer equals one of the accepted answers.

    `expected` names the field of the ground truth, `expected_content` gives the answer itself.
    """
    answers = [expected_content] if expected_content is not None else accepted(item.ground_truth, expected)
    given = comparable(response.response, case_sensitive, strip_whitespace)
    for answer in answers:
        if given == comparable(answer, case_sensitive, strip_whitespace):
            return Score(passed=True, score=1.0)
    return Score(passed=False, score=0.0)
