"""Types for the columns of a CSV file, which has only text: a column of numbers holds numbers, and so on.

The rules are those of pandas, with which task folders were written, but for two that lose data: a gap does not turn
whole numbers into fractions, and texts such as `NA` or `None` are gaps among numbers only. A gap is null.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Rows = Callable[[], Iterator[dict[str, Any]]]
Convert = Callable[[str], Any]

# Longer numbers stay text: neither JSON nor a fraction holds them exactly.
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,19}\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]{1,19}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?\s*", re.ASCII)
_BOOLEAN = re.compile(r"True|TRUE|true|False|FALSE|false")
_GAPS = frozenset(
    {"", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A", "#N/A N/A", "NaN", "nan", "-NaN", "-nan"}
    | {"NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)


def typed(rows: Rows) -> Iterator[dict[str, Any]]:
    """The rows with typed values; they are read twice, because a column's type is known at its end."""
    convert = _conversions(rows())
    for row in rows():
        yield {name: convert[name](text) for name, text in row.items()}


def _conversions(rows: Iterator[dict[str, Any]]) -> dict[str, Convert]:
    kinds: list[tuple[re.Pattern[str], Convert]] = [(_WHOLE, int), (_NUMBER, float), (_BOOLEAN, _boolean)]
    open_kinds: dict[str, list[tuple[re.Pattern[str], Convert]]] = {}
    undecided: set[str] = set()
    for row in rows:
        if not open_kinds:
            open_kinds = dict.fromkeys(row, kinds)
            undecided = set(row)
        for name in tuple(undecided):
            text = row[name]
            if text in _GAPS:
                continue
            left = [kind for kind in open_kinds[name] if kind[0].fullmatch(text)]
            if len(left) < len(open_kinds[name]):
                open_kinds[name] = left
            if not left:
                undecided.discard(name)
    return {name: _or_gap(left[0][1]) if left else _text for name, left in open_kinds.items()}


def _or_gap(convert: Convert) -> Convert:
    return lambda text: None if text in _GAPS else convert(text)


def _boolean(text: str) -> bool:
    return text in ("True", "TRUE", "true")


def _text(text: str) -> str | None:
    return text or None
