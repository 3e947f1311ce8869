"""Dates as people write them: July 4, 1776 · 4 July 1776 · 1776-07-04 · 7/14/1776 · July 1776. Parts that are not said
are None; 4/7/1776, which is two dates, is none."""

import re
from typing import NamedTuple

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = (
    "(?P<month{0}>"
    + "|".join(f"{name[:3]}(?:{name[3:]})?\\.?" if name != "may" else "may" for name in _MONTHS)
    + ")"
)
_DAY = r"(?P<day{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>\d{{4}})"
_DATE = re.compile(
    rf"(?=[\djfmasond])\b(?:{_MONTH.format(1)}\s+{_DAY.format(1)},?\s+{_YEAR.format(1)}"
    rf"|{_DAY.format(2)}(?:\s+of)?\s+{_MONTH.format(2)},?(?:\s+{_YEAR.format(2)})?"
    rf"|{_YEAR.format(3)}[-/](?P<month3>\d{{2}})[-/](?P<day3>\d{{2}})"
    rf"|(?P<first6>\d{{1,2}})[/.](?P<second6>\d{{1,2}})[/.]{_YEAR.format(6)}"
    rf"|{_MONTH.format(4)},?\s+{_YEAR.format(4)}"
    rf"|{_MONTH.format(5)}\s+{_DAY.format(5)})\b(?![,.]?\d)",
    re.I,
)


_UNCLEAR = re.compile(r"\b(?:0?[1-9]|1[0-2])([/.])(?:0?[1-9]|1[0-2])\1\d{4}\b")
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+", re.I)


class Date(NamedTuple):
    year: int | None
    month: int
    day: int | None

    def is_part_of(self, other: "Date") -> bool:
        """Whether the other date says all that this one says."""
        return all(own is None or own == theirs for own, theirs in zip(self, other, strict=True))


def find_dates(text: str) -> list[Date]:
    """Every date of a text, in order; impossible ones are none."""
    dates = (_date(found) for found in _DATE.finditer(text))
    return [date for date in dates if date is not None]


def has_two_readings(text: str) -> bool:
    """Whether a text has a date such as 4/7/1776."""
    return _UNCLEAR.search(text) is not None


def whole_date(text: str) -> Date | None:
    """The date that a text consists of, with its weekday at most."""
    plain = text.strip().rstrip(".")
    weekday = _WEEKDAY.match(plain)
    found = _DATE.fullmatch(plain, weekday.end() if weekday else 0)
    return _date(found) if found else None


def _date(found: re.Match[str]) -> Date | None:
    parts = {name.rstrip("123456"): value for name, value in found.groupdict().items() if value}
    if "first" in parts:
        numbers = int(parts["first"]), int(parts["second"])
        if max(numbers) <= 12 and numbers[0] != numbers[1]:
            return None
        month, day = (numbers[1], numbers[0]) if numbers[0] > 12 else numbers
    else:
        month = _month(parts["month"].lower().rstrip("."))
        day = int(parts["day"]) if "day" in parts else None
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    return Date(int(parts["year"]) if "year" in parts else None, month, day)


def _month(name: str) -> int:
    return (
        int(name)
        if name.isdigit()
        else 1 + next(n for n, month in enumerate(_MONTHS) if month.startswith(name))
    )
