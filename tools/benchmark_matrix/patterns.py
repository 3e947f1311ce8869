"""A text that a regular expression matches."""

import re._constants as sre
import re._parser as parser
from typing import Any


def sample(pattern: str) -> str:
    try:
        return "".join(map(_text, parser.parse(pattern)))
    except Exception:  # what cannot be parsed is the task's affair
        return ""


def _text(part: tuple[Any, Any]) -> str:
    kind, value = part
    if kind in (sre.LITERAL,):
        return chr(value)
    if kind == sre.NOT_LITERAL:
        return "x" if value != ord("x") else "y"
    if kind == sre.ANY:
        return "x"
    if kind == sre.IN:
        return _of_class(value)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return "".join(map(_text, value[2])) * max(1, value[0])
    if kind == sre.SUBPATTERN:
        return "".join(map(_text, value[-1]))
    if kind == sre.ATOMIC_GROUP:
        return "".join(map(_text, value))
    if kind == sre.BRANCH:
        return "".join(map(_text, value[1][0]))
    if kind == sre.ASSERT:
        return "".join(map(_text, value[1]))
    return ""


def _of_class(parts: list[tuple[Any, Any]]) -> str:
    if parts[0][0] == sre.NEGATE:
        return "x"
    kind, value = parts[0]
    if kind == sre.LITERAL:
        return chr(value)
    if kind == sre.RANGE:
        return chr(value[0])
    return {sre.CATEGORY_DIGIT: "7", sre.CATEGORY_SPACE: " "}.get(value, "x")
