"""Dates as people write them."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.formats.mixeval.freeform.dates import Date, find_dates, has_two_readings, whole_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("July 4, 1776", Date(1776, 7, 4)),
        ("4 July 1776", Date(1776, 7, 4)),
        ("the 4th of July, 1776", Date(1776, 7, 4)),
        ("Jul. 4 1776", Date(1776, 7, 4)),
        ("1776-07-04", Date(1776, 7, 4)),
        ("1776/07/04", Date(1776, 7, 4)),
        ("14/7/1789", Date(1789, 7, 14)),
        ("7/14/1789", Date(1789, 7, 14)),
        ("14.07.1789", Date(1789, 7, 14)),
        ("July 1776", Date(1776, 7, None)),
        ("July 4", Date(None, 7, 4)),
        ("3rd March", Date(None, 3, 3)),
    ],
)
def test_spellings(text: str, expected: Date) -> None:
    assert find_dates(f"It was on {text}, they say.") == [expected]


@pytest.mark.parametrize(
    "text", ["July 44, 1776", "1776-13-04", "4/7/1776", "maybe 4", "1776", "July", "12.5.3"]
)
def test_no_dates(text: str) -> None:
    assert find_dates(text) == []


def test_a_date_that_can_be_read_in_two_ways() -> None:
    assert has_two_readings("on 4/7/1776")
    assert not has_two_readings("on 14/7/1776")


def test_a_text_that_is_one_date() -> None:
    assert whole_date("Thursday, July 4, 1776.") == Date(1776, 7, 4)
    assert whole_date("on July 4, 1776") is None


def test_a_part_of_a_date() -> None:
    assert Date(1776, 7, None).is_part_of(Date(1776, 7, 4))
    assert not Date(1776, 7, 4).is_part_of(Date(1776, 7, None))


@given(
    st.dates(),
    st.sampled_from(["{0:%B} {0.day}, {0.year:04d}", "{0.day} {0:%b} {0.year:04d}", "{0}"]),
)
@settings(deadline=None)
def test_every_day_is_found(day: date, spelling: str) -> None:
    assert find_dates(spelling.format(day)) == [Date(day.year, day.month, day.day)]
