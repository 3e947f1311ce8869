"""How much an operation of a template would make, found before it does: from its operands."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from assay.text.template import LETTERS

BITS = 100_000  # of a whole number
_LETTERS_AN_ENTRY = 8
_DIGITS = re.compile(r"\d+")
_FIELD = re.compile(
    r"%(?:\([^()]*\))?[-+ #0-9.*]*|\{[^{}]*\{?"
)  # of `%` or `format`, up to the field within its width
_LONGEST_NUMBER = 12  # digits of a width that are looked at


class Exceeded(RuntimeError):
    """The template asks for more than a bound allows."""


def fits(size: int) -> None:
    if size > LETTERS:
        raise Exceeded(f"it makes more than {LETTERS:,} letters or entries")


def size_of(value: Any) -> int:
    """About how many letters a value has when it is written out, at least; what is held twice counts twice."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return _size_within(cast("Collection[Any]", value), {})
    return value.bit_length() // 3 if isinstance(value, int) else 1


def _size_within(value: Collection[Any], sizes: dict[int, int]) -> int:
    size = sizes.get(id(value))
    if size is None:
        if type(value) is list and {*map(type, value)} == {str}:
            return _LETTERS_AN_ENTRY * len(value) + sum(map(len, value))
        # a list that holds itself ends here
        sizes[id(value)] = size = _LETTERS_AN_ENTRY * len(value)
        parts: Iterable[Any] = (*value, *value.values()) if isinstance(value, Mapping) else value
        for part in parts:
            nested = isinstance(part, (list, tuple, dict, set, frozenset))
            size += _size_within(cast("Collection[Any]", part), sizes) if nested else size_of(part)
        sizes[id(value)] = size
    return size


def _number(values: Iterable[Any]) -> int:
    """The largest whole number among some arguments."""
    return max((abs(value) for value in values if isinstance(value, int)), default=0)


def _times(value: Any, args: list[Any]) -> int:
    repeated, times = (args[0], value) if isinstance(value, int) else (value, args[0])
    if not isinstance(times, int):
        return 0
    if isinstance(repeated, int):
        return _bits(repeated.bit_length() + times.bit_length())
    return (
        max(1, size_of(repeated)) * times if isinstance(repeated, (str, bytes, list, tuple)) else 0
    )


def _power(value: Any, args: list[Any]) -> int:
    return (
        _bits(value.bit_length() * args[0])
        if isinstance(value, int) and isinstance(args[0], int)
        else 0
    )


def _bits(count: int) -> int:
    if count > BITS:
        raise Exceeded(f"it makes a whole number of more than {BITS:,} bits")
    return 0


def _plus(value: Any, args: list[Any]) -> int:
    return 0 if isinstance(value, (int, float)) else size_of(value) + size_of(args[0])


def _format(value: Any, args: list[Any]) -> int:
    """Each field is at most as wide as the widest says, or as the largest number that is given for a width."""
    if not isinstance(value, str):
        return 0
    fields = _FIELD.findall(value)
    values = [entry for arg in args for entry in (arg if isinstance(arg, tuple) else [arg])]
    widths = [width for field in fields for width in _DIGITS.findall(field)]
    if any("*" in field or (":" in field and field.endswith("{")) for field in fields):
        widths += [
            width for entry in values for width in _DIGITS.findall(str(entry)[:_LONGEST_NUMBER])
        ]
    return len(value) + len(fields) * (
        max((int(width[:_LONGEST_NUMBER]) for width in widths), default=0) + size_of(values)
    )


def _replace(value: Any, args: list[Any]) -> int:
    text, old, new = str(value), str(args[0]), str(args[1]) if len(args) > 1 else ""
    return len(text) + (text.count(old) if old else len(text) + 1) * len(new)


def _join(value: Any, args: list[Any]) -> int:
    between = (
        value
        if isinstance(value, str) and args and not isinstance(args[0], str)
        else next(iter(args), "")
    )
    parts = args[0] if between is value else value
    return size_of(parts) + len(parts) * size_of(between) if hasattr(parts, "__len__") else 0


def _indent(value: Any, args: list[Any]) -> int:
    width = len(args[0]) if args and isinstance(args[0], str) else _number(args) or 4
    return len(str(value)) + (str(value).count("\n") + 1) * width


def _sum(value: Any, args: list[Any]) -> int:
    """Adding lists copies what is there so far with each of them."""
    return (
        len(value) * size_of(value)
        if any(isinstance(arg, (list, tuple, str)) for arg in args)
        else 0
    )


def _wide(value: Any, args: list[Any]) -> int:
    return size_of(value) + _number(args)


GROWTH: dict[str, Callable[[Any, list[Any]], int]] = {
    "*": _times, "**": _power, "+": _plus, "%": _format, "format": _format, "format_map": _format, "replace": _replace,
    "join": _join, "indent": _indent, "sum": _sum,
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "batch", "slice", "to_bytes"), _wide),
    "expandtabs": lambda value, args: len(value) * max(8, _number(args)),
    "translate": lambda value, args: len(value) * max(1, size_of(args)),
    "tojson": lambda value, args: size_of(value) * (1 + 16 * _number(args)),
    "round": lambda value, args: 10_000 * _number(args),
    **dict.fromkeys(("string", "pprint", "urlencode"), lambda value, args: size_of(value)),
}  # fmt: skip
