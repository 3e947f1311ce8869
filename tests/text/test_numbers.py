"""Numbers as people and models write them."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from assay.text.numbers import answer_number, find_numbers, whole_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,000", 1000),
        ("12,345,678.5", Fraction(24691357, 2)),
        ("1e3", 1000),
        ("-2.5E-1", Fraction(-1, 4)),
        ("1.5 × 10^3", 1500),
        (r"1.5 \times 10^{-3}", Fraction(3, 2000)),
        ("2×10³", 2000),
        ("3/4", Fraction(3, 4)),
        ("3 / 4", Fraction(3, 4)),
        ("-1/2", Fraction(-1, 2)),
        ("1 3/4", Fraction(7, 4)),
        ("½", Fraction(1, 2)),
        ("1½", Fraction(3, 2)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"-\dfrac{1}{2}", Fraction(-1, 2)),
        (r"2\frac{1}{2}", Fraction(5, 2)),
        (r"\frac34", Fraction(3, 4)),
        ("1{,}000", 1000),
        (r"1\,000", 1000),
        ("1\u202f000", 1000),
        ("$1.2 million", 1_200_000),
        ("-$5", -5),
        ("$-5", -5),
        ("€3.50", Fraction(7, 2)),
        ("5 km", 5),
        ("5km/h", 5),
        ("−7", -7),
        (".5", Fraction(1, 2)),
        ("12345678901234567891", 12345678901234567891),
        ("7.", 7),
    ],
)
def test_one_number(text: str, value: Fraction | int) -> None:
    found = whole_number(text)
    assert found is not None
    assert found.value == value


def test_a_percent_sign_leaves_two_readings() -> None:
    (found,) = find_numbers("about 50 % of them")
    assert found.readings() == (50, Fraction(1, 2))


@pytest.mark.parametrize("text", ["", "none", "A1", "v1.2.3", "1/0", "1e99999", "9" * 500, "ten"])
def test_no_number(text: str) -> None:
    assert [*find_numbers(text)] == []


def test_a_minus_between_numbers_is_no_sign() -> None:
    assert [number.value for number in find_numbers("10 - 3, 10-3, x=-3")] == [10, 3, 10, 3, -3]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("There are 3 boxes of 4, so 12.", 12),
        (r"3 + 4, hence \boxed{7}. (See page 12.)", 7),
        (r"\boxed{\frac{1}{2}}", Fraction(1, 2)),
        ("The answer is 42, not 17.", 42),
        ("The answer is **42**. I checked 3 times.", 42),
        ("Answer: 2 + 3 = 5", 5),
        ("5 + 13 = 18\n#### 18", 18),
        ("The answer is clear. It is 9", 9),
        (r"\boxed{none}, so 3", 3),
    ],
)
def test_the_number_that_an_answer_gives(text: str, value: Fraction | int) -> None:
    found = answer_number(text)
    assert found is not None
    assert found.value == value


def test_the_first_number_can_be_asked_for() -> None:
    assert [
        getattr(answer_number("1 2 3", position), "value", None) for position in ("first", "last")
    ] == [1, 3]


@given(st.integers(-(10**15), 10**15))
def test_whole_numbers_come_back_in_every_style(value: int) -> None:
    for text in (str(value), f"{value:,}", f"{value}.0", f"${value:,}", rf"\boxed{{{value}}}"):
        found = answer_number(text)
        assert found is not None
        assert found.value == value


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300))
def test_floats_come_back_exactly(value: float) -> None:
    found = whole_number(repr(value))
    assert found is not None
    assert found.value == Fraction(repr(value))


@given(st.text(st.sampled_from("0123456789.,/eE-+% x×^{}()\\$frac½")))
def test_any_text_is_read_without_a_failure(text: str) -> None:
    list(find_numbers(text))
