"""Exact arithmetic from text: `2 + 3 * (4 - 1)`, `12 plus 30`, `15% of 80`, `the sum of 3 and 5`.

Written as a parser rather than `eval`: the text comes from strangers, so names, attributes and huge powers
have no way in.
"""

import re
from fractions import Fraction
from typing import NamedTuple

from assay.text.numbers import NUMBER_WORDS

Number = int | Fraction

_OPERATORS = """
% × · ∙ ÷ − ** x plus minus times over power divide divided multiply multiplied sum product difference add
subtract squared cubed half twice double remainder percent mod modulo"""
_NUMBER = r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_WORD_NUMBER = re.compile(rf"\b({'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b", re.I)
_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), to)
    for pattern, to in (
        (r"\b(?:the )?sum of (\S+) and (\S+?)(?=[\s?.!,;]|$)", r"(\1 + \2)"),
        (r"\b(?:the )?product of (\S+) and (\S+?)(?=[\s?.!,;]|$)", r"(\1 * \2)"),
        (r"\b(?:the )?difference (?:between|of) (\S+) and (\S+?)(?=[\s?.!,;]|$)", r"(\1 - \2)"),
        (r"\badd (\S+) (?:and|to) (\S+?)(?=[\s?.!,;]|$)", r"(\1 + \2)"),
        (r"\bsubtract (\S+) from (\S+?)(?=[\s?.!,;]|$)", r"(\2 - \1)"),
        (r"\bmultiply (\S+) (?:by|and|with) (\S+?)(?=[\s?.!,;]|$)", r"(\1 * \2)"),
        (r"\bdivide (\S+) by (\S+?)(?=[\s?.!,;]|$)", r"(\1 / \2)"),
        (r"\bremainder (?:when|of|if) (\S+) (?:is )?divided by", r"\1 mod"),
        (rf"({_NUMBER})\s*(?:%|percent) of", r"\1 / 100 *"),
        (r"\bhalf of", "1 / 2 *"),
        (r"\b(?:twice|double)\b", "2 *"),
        (r"\bmultiplied by\b|\btimes\b", "*"),
        (r"\bdivided by\b|\bover\b", "/"),
        (r"\bplus\b", "+"),
        (r"\bminus\b", "-"),
        (r"\bto the power of\b|\*\*", "^"),
        (r"\bsquared\b", "^ 2"),
        (r"\bcubed\b", "^ 3"),
        (r"(?<=\d) ?[x×·∙](?= ?\d)", "*"),
        (r"÷", "/"),
        (r"−", "-"),
        (r"\bmod(?:ulo)?\b|%(?= ?\d)", "%"),
    )
)
_WORD = re.compile(r"[a-z]+|[%×·∙÷−]|\*\*")
_TRIGGERS = {*_OPERATORS.split(), *NUMBER_WORDS}
_GAP = r"[-(\s]{0,12}"
_EXPRESSION = re.compile(
    rf"{_GAP}(?:{_NUMBER})(?:[\s)]{{0,12}}[-+*/^%]{_GAP}(?:{_NUMBER}))+[\s)]{{0,12}}"
)
_TOKEN = re.compile(rf"\s*({_NUMBER}|[-+*/^%()])")
_LARGEST = 10**60
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 4}


class ArithmeticResult(NamedTuple):
    """`steps` counts operations and `digits` is the longest operand: together they say how hard it was."""

    value: Number
    steps: int
    digits: int
    expression: str


def number(text: str) -> Number:
    """The number that a literal such as `1,250` or `2.50` stands for."""
    plain = text.replace(",", "")
    return _normal(Fraction(plain)) if "." in plain else int(plain)


def show(value: Number) -> str:
    """A number as people write it: whole numbers plainly, others with at most four decimals."""
    if isinstance(value, int):
        return str(value)
    return f"{float(value):.4f}".rstrip("0").rstrip(".")


def spell_out(text: str) -> str:
    """The text with number words as digits and word operators as signs."""
    if _TRIGGERS.isdisjoint(_WORD.findall(text.lower())):
        return text
    text = _WORD_NUMBER.sub(lambda match: str(NUMBER_WORDS[match[1].lower()]), text)
    for pattern, to in _REWRITES:
        text = pattern.sub(to, text)
    return text


def evaluate(text: str) -> ArithmeticResult | None:
    """The value of the last arithmetic expression in the text, or None where there is none."""
    found: list[str] = _EXPRESSION.findall(spell_out(text))
    if not found:
        return None
    expression = _without_outer_brackets(found[-1].strip())
    tokens: list[str] = _TOKEN.findall(expression)
    operands = [token for token in tokens if token[0].isdigit()]
    digits = max(map(len, operands))
    if len(tokens) > 100 or digits > 30:
        return None
    try:
        value, rest = _climb(tokens, 0, 0)
    except (ZeroDivisionError, ValueError, IndexError):
        return None
    if rest != len(tokens) or abs(value) >= _LARGEST:
        return None
    return ArithmeticResult(value, len(operands) - 1, digits, expression)


def _without_outer_brackets(expression: str) -> str:
    """Without the brackets that belong to the sentence around it."""
    while expression.count("(") > expression.count(")") and expression[0] == "(":
        expression = expression[1:].lstrip()
    while expression.count(")") > expression.count("(") and expression[-1] == ")":
        expression = expression[:-1].rstrip()
    return expression


def _climb(tokens: list[str], at: int, floor: int) -> tuple[Number, int]:
    """Precedence climbing: the value from token `at` on, over operators that bind tighter than `floor`."""
    token = tokens[at]
    if token == "(":
        left, at = _climb(tokens, at + 1, 0)
        if tokens[at] != ")":
            raise ValueError("unbalanced brackets")
        at += 1
    elif token == "-":
        left, at = _climb(tokens, at + 1, 3)
        left = -left
    elif token in _PRECEDENCE or token == ")":
        raise ValueError("an operand is missing")
    else:
        left, at = number(token), at + 1
    while at < len(tokens) and (power := _PRECEDENCE.get(tokens[at], 0)) > floor:
        operator = tokens[at]
        right, at = _climb(tokens, at + 1, power - 1 if operator == "^" else power)
        left = _apply(operator, left, right)
    return left, at


def _apply(operator: str, left: Number, right: Number) -> Number:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if operator == "/":
        return _normal(Fraction(left) / Fraction(right))
    if operator == "%":
        return left % right
    if not isinstance(right, int) or not 0 <= right <= 64 or abs(left) > 10**12:
        raise ValueError("a power beyond what is worked out here")
    return left**right


def _normal(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value
