"""Containment of one of the accepted answers."""

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.expected import accepted, comparable


@scorer(reads="ground_truth", version=1)
def contains(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    case_sensitive: bool = True,
) -> Score:
    """The answer contains one of the accepted answers; an empty expectation is refused, since it passes everything."""
    answers = [expected_content] if expected_content is not None else accepted(item.ground_truth, expected)
    if "" in answers:
        raise ValueError("the expected text is empty, so every answer would contain it")
    given = comparable(response.response, case_sensitive, False)
    passed = any(comparable(answer, case_sensitive, False) in given for answer in answers)
    return Score(passed=passed, score=1.0 if passed else 0.0)
