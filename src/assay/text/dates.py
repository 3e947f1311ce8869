"""Dates as people write them: July 4, 1776 · 4 July 1776 · 1776-07-04 · July 1776. Parts that are not said are None."""

import re
from typing import NamedTuple

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = (
    "(?P<month{0}>" + "|".join(f"{name[:3]}(?:{name[3:]})?\\.?" if name != "may" else "may" for name in _MONTHS) + ")"
)
_DAY = r"(?P<day{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>\d{{4}})"
_DATE = re.compile(
    rf"\b(?:{_MONTH.format(1)}\s+{_DAY.format(1)},?\s+{_YEAR.format(1)}"
    rf"|{_DAY.format(2)}(?:\s+of)?\s+{_MONTH.format(2)},?(?:\s+{_YEAR.format(2)})?"
    rf"|{_YEAR.format(3)}-(?P<month3>\d{{2}})-(?P<day3>\d{{2}})"
    rf"|{_MONTH.format(4)},?\s+{_YEAR.format(4)}"
    rf"|{_MONTH.format(5)}\s+{_DAY.format(5)})\b(?![,.]?\d)",
    re.I,
)


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


def whole_date(text: str) -> Date | None:
    """The date that a text consists of."""
    found = _DATE.fullmatch(text.strip().rstrip("."))
    return _date(found) if found else None


def _date(found: re.Match[str]) -> Date | None:
    parts = {name.rstrip("12345"): value for name, value in found.groupdict().items() if value}
    month = parts["month"].lower().rstrip(".")
    number = int(month) if month.isdigit() else 1 + next(n for n, name in enumerate(_MONTHS) if name.startswith(month))
    day = int(parts["day"]) if "day" in parts else None
    if not 1 <= number <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    return Date(int(parts["year"]) if "year" in parts else None, number, day)
