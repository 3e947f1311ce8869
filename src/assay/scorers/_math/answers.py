"""Answers: values, words, equations, and collections of them, each compared by its own rule.

A comparison says True, False, or None where it cannot decide.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from assay.scorers._math.expressions import LONGEST, NAMES, NotMath, Tree, number, read
from assay.scorers._math.forms import FormTooLarge, difference, form_of, is_decided, is_multiple
from assay.scorers._math.notation import plain, without_thousands, without_unit
from assay.scorers._math.numeric import differ, value_of, variables
from assay.text.numbers import NUMBER_WORDS

Verdict = bool | None
Symbolic = Callable[[Tree, Tree], Verdict]

_form = lru_cache(512)(form_of)  # references come back with every sample
_MOST_PARTS = 40
_SEPARATOR = re.compile(r",|;|\s(?:and|or)\s")
_RELATION = re.compile(r"[<>≤≥]")
_NAMES_A_VALUE = re.compile(
    r"\s*(?:[A-Za-z](?:_\{?\w+\}?)?|[A-Z]{2,3}|\\[a-z]+)(?:\([\w\s,]*\))?\s*"
)
_ROWS = re.compile(
    r"\\begin\{[pbvBV]?(?:small)?matrix\}(.*)\\end\{[pbvBV]?(?:small)?matrix\}", re.S
)
_CLOSES = {"(": ")]", "[": ")]", "\\{": "}", "{": "}"}
_WORDS = re.compile(r"[^\W\d_]+(?:(?:\s+|['-])[^\W\d_]+)*")
_TEXT = re.compile(r"(?=.*[^\W\d_]{4})\w+(?:[\s'-]+\w+)*")  # a date, a name with a number
_SHORT_WORDS = frozenset(("yes", "no", "odd", "red", "all", "any"))


class Value(NamedTuple):
    tree: Tree
    unit: tuple[str, int, Fraction] | None = None


class AnswerWords(NamedTuple):
    text: str


class Equation(NamedTuple):
    """`left` is a name, such as `x` or `f(x)`, or an expression."""

    left: str
    right: Any


class Collection(NamedTuple):
    """`order`: whether it counts; `ends` are the brackets, or what else tells kinds of collections apart."""

    parts: list[Any]
    order: bool = False
    ends: str = ""


Answer = Value | AnswerWords | Equation | Collection


def answer_in(text: str) -> Answer:
    """Return what a text says; NotMath if it cannot be read."""
    if len(text) > 4 * LONGEST:
        raise NotMath("it is too long")
    rows = _ROWS.search(text)
    if rows is not None:
        cells = [
            [answer_in(cell) for cell in row.split("&")]
            for row in rows[1].split("\\\\")
            if row.strip()
        ]
        return Collection([Collection(row, order=True) for row in cells], order=True, ends="matrix")
    text = plain(without_thousands(text.strip()))
    if text.lower() in NUMBER_WORDS:
        return Value(number(NUMBER_WORDS[text.lower()]))
    if _is_words(text) and not _SEPARATOR.search(text):
        return AnswerWords(_words_text(text))
    return _collection(text)


def _is_words(text: str) -> bool:
    """Letters that are no product of variables and no function."""
    words = re.split(r"[\s'-]+", text.lower())
    return _WORDS.fullmatch(text) is not None and (
        words[0] in _SHORT_WORDS
        or (any(len(word) > 3 for word in words) and not NAMES.intersection(words))
    )


def _collection(text: str) -> Answer:
    text = text.strip()
    for sign in ("∈", "\\to"):
        text = text.rpartition(sign)[2].strip() if sign in text else text
    unions = _split(text, re.compile("∪"))
    if len(unions) > 1:
        return Collection([_collection(part) for part in unions], ends="∪")
    if _RELATION.search(text):
        return _intervals(text)
    inner, ends = _inside_brackets(text)
    if ends:
        parts = _split(inner, _SEPARATOR)
        if ends[0] == "{" and not inner.strip():
            return Collection([], ends="{}")
        if len(parts) > 1 or ends[0] == "{":
            return Collection([_collection(part) for part in parts], order=ends != "{}", ends=ends)
    parts = [part for part in _split(text, _SEPARATOR) if part.strip()]
    if len(parts) > 1:
        return Collection([_collection(part) for part in parts])
    return _single(text)


def _single(text: str) -> Answer:
    if "=" in text:
        left, *_, right = (side.strip() for side in text.split("="))
        if not _NAMES_A_VALUE.fullmatch(left):
            read(left)
        return Equation(left, _single(right))
    bare, unit = without_unit(text)
    try:
        tree = read(bare)
    except NotMath:
        if _is_words(text) or _TEXT.fullmatch(text):
            return AnswerWords(_words_text(text))
        raise
    if tree[:2] == ("fn", "degree"):
        tree = tree[2]
    signs = [_with_sign(tree, sign) for sign in (1, -1)]
    return (
        Value(tree, unit)
        if signs[0] == signs[1]
        else Collection([Value(each, unit) for each in signs])
    )


def _with_sign(tree: Tree, sign: int) -> Tree:
    """The tree with each ± read as plus, or each as minus."""
    if tree[:2] in (("fn", "plus_minus"), ("fn", "minus_plus")):
        factor = sign if tree[1] == "plus_minus" else -sign
        return ("mul", number(factor), _with_sign(tree[2], sign))
    return tuple(_with_sign(part, sign) if isinstance(part, tuple) else part for part in tree)


def _intervals(text: str) -> Answer:
    if re.search(r"\sand\s", text):
        raise NotMath("it is an intersection")
    parts = [_interval(part) for part in _split(text, _SEPARATOR)]
    return parts[0] if len(parts) == 1 else Collection(parts, ends="∪")


def _interval(text: str) -> Answer:
    """`1 < x ≤ 2` as (1, 2], `x > 3` as (3, ∞)."""
    sides = [side.strip() for side in _RELATION.split(text)]
    signs = _RELATION.findall(text)
    if not signs or len({sign in "<≤" for sign in signs}) > 1 or len(sides) > 3:
        raise NotMath("it is not an interval")
    if signs[0] in ">≥":
        sides, signs = sides[::-1], [{">": "<", "≥": "≤"}[sign] for sign in reversed(signs)]
    if len(sides) == 2:
        middle = 0 if _NAMES_A_VALUE.fullmatch(sides[0]) else 1
        sides, signs = (
            (["-\\infty", *sides], ["<", *signs])
            if middle == 0
            else ([*sides, "\\infty"], [*signs, "<"])
        )
    if not _NAMES_A_VALUE.fullmatch(sides[1]):
        raise NotMath("it is not an interval")
    ends = ("(" if signs[0] == "<" else "[") + (")" if signs[1] == "<" else "]")
    return Collection([_single(sides[0]), _single(sides[2])], order=True, ends=ends)


def _inside_brackets(text: str) -> tuple[str, str]:
    """Return what stands in the brackets around a whole text, and these; no brackets if they do not
    belong together."""
    for opening, closings in _CLOSES.items():
        closing = text[-1:] if text[-1:] and text[-1:] in closings else ""
        end = len(text) - 2 if opening == "\\{" and text.endswith("\\}") else len(text) - 1
        if text.startswith(opening) and closing and _closes_at_end(text, opening):
            return text[len(opening) : end], opening[-1] + closing
    return text, ""


def _closes_at_end(text: str, opening: str) -> bool:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and place >= len(opening) - 1:
            return place == len(text) - 1
    return False


def _split(text: str, separator: re.Pattern[str]) -> list[str]:
    """The parts of a text between separators that stand outside brackets."""
    parts, start, depth, at = list[str](), 0, 0, 0
    for match in separator.finditer(text):
        depth += sum((letter in "([{") - (letter in ")]}") for letter in text[at : match.start()])
        at = match.start()
        if depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    if len(parts) >= _MOST_PARTS:
        raise NotMath("it has too many parts")
    return [*parts, text[start:]]


def _words_text(text: str) -> str:
    return " ".join(text.casefold().replace("-", " ").split())


# ---- comparing


def compare(wanted: Answer, actual: Answer, tolerance: float, symbolic: Symbolic) -> Verdict:
    """Return whether an answer is the expected one."""
    if isinstance(wanted, AnswerWords) or isinstance(actual, AnswerWords):
        if isinstance(wanted, AnswerWords):
            return isinstance(actual, AnswerWords) and wanted.text == actual.text
        return None
    if isinstance(wanted, Equation) and isinstance(actual, Equation):
        return _equations(wanted, actual, tolerance, symbolic)
    if isinstance(wanted, Equation) or isinstance(actual, Equation):
        sides = [_right(each) if isinstance(each, Equation) else each for each in (wanted, actual)]
        return None if None in sides else compare(sides[0], sides[1], tolerance, symbolic)  # type: ignore[arg-type]
    if isinstance(wanted, Value) and isinstance(actual, Value):
        return _values(wanted, actual, tolerance, symbolic)
    one, other = (
        each if isinstance(each, Collection) else Collection([each]) for each in (wanted, actual)
    )
    return _collections(one, other, tolerance, symbolic)


def _collections(
    wanted: Collection, actual: Collection, tolerance: float, symbolic: Symbolic
) -> Verdict:
    if len(wanted.parts) != len(actual.parts):
        return False
    if wanted.ends and actual.ends and wanted.ends != actual.ends:
        return False
    rest = list(actual.parts)
    verdicts: list[Verdict] = []
    for place, part in enumerate(wanted.parts):
        if wanted.order or actual.order:
            verdicts.append(compare(part, actual.parts[place], tolerance, symbolic))
            continue
        found = [compare(part, other, tolerance, symbolic) for other in rest]
        verdicts.append(True if True in found else None if None in found else False)
        if True in found:
            del rest[found.index(True)]
    return False if False in verdicts else None if None in verdicts else True


def _right(equation: Equation) -> Answer | None:
    """The value of `x = …`, whatever it is called."""
    return equation.right if _NAMES_A_VALUE.fullmatch(equation.left) else None


def _equations(wanted: Equation, actual: Equation, tolerance: float, symbolic: Symbolic) -> Verdict:
    names = _right(wanted) is not None and _right(actual) is not None
    if names and (wanted.left == actual.left or "(" in wanted.left + actual.left):
        return compare(wanted.right, actual.right, tolerance, symbolic)
    if not (isinstance(wanted.right, Value) and isinstance(actual.right, Value)):
        return None
    sides = [
        ("add", read(each.left), ("mul", number(-1), each.right.tree)) for each in (wanted, actual)
    ]
    try:
        return is_multiple(_form(sides[0]), _form(sides[1]))
    except (FormTooLarge, ZeroDivisionError):
        return None


def _values(wanted: Value, actual: Value, tolerance: float, symbolic: Symbolic) -> Verdict:
    factor = Fraction(1)
    if wanted.unit is not None and actual.unit is not None:
        if wanted.unit[:2] != actual.unit[:2]:
            return None if "?" in wanted.unit[0] + actual.unit[0] else False
        factor = actual.unit[2] / wanted.unit[2]
    one, other = wanted.tree, ("mul", number(factor), actual.tree) if factor != 1 else actual.tree
    pairs = [(one, other)]
    # 50% is 50 or one half
    if (_is_percent(one), _is_percent(other)) in ((True, False), (False, True)):
        pairs.append((one[2], other) if _is_percent(one) else (one, other[2]))
    verdicts = [same(*pair, tolerance, symbolic) for pair in pairs]
    return True if True in verdicts else None if None in verdicts else False


def _is_percent(tree: Tree) -> bool:
    return tree[:2] == ("fn", "percent")


def same(first: Tree, second: Tree, tolerance: float, symbolic: Symbolic) -> Verdict:
    """Return whether two expressions have the same value, variables being positive."""
    if first == second:
        return True
    if tolerance and not (variables(first) | variables(second)):
        try:
            one, other = value_of(first, {}), value_of(second, {})
            if abs(one - other) <= tolerance * max(1.0, abs(one)):
                return True
        except (ArithmeticError, ValueError, KeyError):
            pass
    infinite = [_is_infinite(tree) for tree in (first, second)]
    if any(infinite):
        return infinite[0] == infinite[1]
    try:
        rest = difference(_form(first), _form(second))
        if not rest:
            return True
        if is_decided(rest):
            return False
    except (FormTooLarge, ZeroDivisionError):
        pass
    return False if differ(first, second) else symbolic(first, second)


def _is_infinite(tree: Tree) -> Literal["", "+", "-"]:
    if tree == ("sym", "oo"):
        return "+"
    return "-" if tree == ("mul", number(-1), ("sym", "oo")) else ""
