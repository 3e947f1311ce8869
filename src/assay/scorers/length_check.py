"""Bounds on how long an answer is."""

from typing import Literal

from assay.scorers._parameters import Texts, verdict
from assay.sdk import Item, Response, Score, scorer
from assay.text.answers import without_reasoning


@scorer(reads="ground_truth", params=Texts, version=1)
def length_check(
    item: Item,
    response: Response,
    *,
    min_length: int | None = None,
    max_length: int | None = None,
    expected_length: int | None = None,
    unit: Literal["characters", "words", "lines"] = "characters",
    strip_reasoning: bool = True,
) -> Score:
    """The answer is neither too short nor too long.

    Score: 1 if min_length ≤ length ≤ max_length, and length = expected_length where it is given; else 0. The length
    is in `detailed_results`. Words are what whitespace separates; an empty answer has no line.

    Parameters:
    min_length: the least length
    max_length: the greatest length
    expected_length: the exact length
    unit: what is counted
    """
    if min_length is None and max_length is None and expected_length is None:
        raise LookupError("length_check needs `min_length`, `max_length` or `expected_length`")
    text = without_reasoning(response.response) if strip_reasoning else response.response
    length = len(
        text if unit == "characters" else text.split() if unit == "words" else text.splitlines()
    )
    passed = (
        (min_length is None or length >= min_length)
        and (max_length is None or length <= max_length)
        and (expected_length is None or length == expected_length)
    )
    return verdict(passed, length=length)
