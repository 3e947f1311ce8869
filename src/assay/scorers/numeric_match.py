"""Equality of numbers, however they are written."""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from assay.scorers._parameters import Texts, reads_answer
from assay.scorers._regex_child import search
from assay.sdk import Item, Response, Score, as_list, is_number, scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import expectation
from assay.text.numbers import Number, answer_number, whole_number


@scorer(reads="ground_truth", params=Texts, version=2)
@reads_answer
def numeric_match(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_value: float | str | list[float | str] | None = None,
    tolerance: float = 1e-6,
    relative_tolerance: float = 0.0,
    zero_tolerance: float | None = None,
    extract_pattern: str | None = None,
    position: Literal["last", "first"] = "last",
    response_field: str | None = None,
) -> Score:
    r"""The number in the answer equals an expected one.

    Score: max(0, 1 − |x − y| / max(|y|, 1)) for the answer's number x and the expected y, the best over the expected;
    1 and passed if |x − y| ≤ max(tolerance, relative_tolerance · |y|). An answer without a number is unparsed.

    Numbers are exact: `1,000`, `1e3`, `1.5 × 10^3`, `3/4`, `1 3/4`, `½`, `\frac{3}{4}`, `50%` (50 or one half,
    whichever is expected), `$1.2 million`, `5 km`. Taken is what stands in `\boxed{}`, else after "the answer is" or
    `####`, else the last number. Reasoning before the answer is left out.

    Parameters:
    expected: the field of the ground truth that has the number; without it `expected_value` or a usual one
    expected_value: the number itself, for all items
    tolerance: the greatest absolute difference
    relative_tolerance: the greatest difference as a share of the expected number
    zero_tolerance: the greatest difference where 0 is expected, of which nothing is a share; `tolerance` if null
    extract_pattern: a regular expression whose first group (or whole match) holds the number
    position: which number counts if nothing in the answer says so
    """
    wanted = _expected_numbers(
        expected_value
        if expected_value is not None
        else expectation(item, expected, "expected_value")
    )
    given = _answer_number(response, response_field, extract_pattern, position)
    best, passed, value = 0.0, False, given.value
    for number in wanted:
        least = tolerance if number.value or zero_tolerance is None else zero_tolerance
        allowed = max(Fraction(least), Fraction(relative_tolerance) * abs(number.value))
        for x in given.readings():
            for y in number.readings():
                within = abs(x - y) <= allowed
                score = (
                    1.0
                    if within
                    else float(max(Fraction(0), 1 - abs(x - y) / max(abs(y), Fraction(1))))
                )
                if (within, score) > (passed, best):
                    best, passed, value = score, within, x
    return Score(passed=passed, score=best, details={"number": _plain_number(value)})


def _expected_numbers(value: Any) -> list[Number]:
    numbers = [_number(entry) for entry in as_list(value) if entry is not None]
    if not numbers:
        raise LookupError("the item has no expected number")
    return numbers


def _number(value: Any) -> Number:
    if is_number(value):
        return Number(Fraction(value) if isinstance(value, int) else Fraction(repr(value)), False)
    found = _text_number(value) if isinstance(value, str) else None
    if found is None:
        raise LookupError(f"the expected answer {str(value)[:80]!r} is not a number")
    return found


@lru_cache(4096)
def _text_number(text: str) -> Number | None:
    """A reference may be worked out before its number, as in GSM8K (`… #### 18`)."""
    return whole_number(text) or (
        answer_number(text) if "####" in text or "\\boxed" in text else None
    )


def _answer_number(
    response: Response, field: str | None, pattern: str | None, position: Literal["last", "first"]
) -> Number:
    text = answer_of(response, field, strip_reasoning=True)
    if pattern is not None:
        matched = search(re.compile(pattern), text, full=False, seconds=2.0)
        if matched is None:
            raise Unparsed("the answer does not match `extract_pattern`")
        whole, groups = matched
        text = groups[0] if groups and groups[0] is not None else whole
    found = answer_number(text, position)
    if found is None:
        raise Unparsed("the answer has no number")
    return found


def _plain_number(value: Fraction) -> float | int | str:
    if value.denominator == 1 and abs(value) < 2**53:
        return value.numerator
    try:
        return float(value)
    except OverflowError:
        return str(value)
