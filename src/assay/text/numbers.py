r"""Numbers as people write them: 1,000 · 1e3 · 1.5 × 10^3 · 3/4 · 1 3/4 · ½ · \frac{3}{4} · 50% · $1.2 million.

Values are exact fractions. A percent sign is kept beside the value, because "50%" may mean 50 or one half.
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Literal, NamedTuple

from assay.text.answers import last_box

_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety"""
_TO_NINETEEN, _TENS = _WORDS.split()[:20], _WORDS.split()[20:]
NUMBER_WORDS = {
    **{word: value for value, word in enumerate(_TO_NINETEEN)},
    **{ten: 20 + 10 * place for place, ten in enumerate(_TENS)},
    **{
        f"{ten}-{_TO_NINETEEN[n]}": 20 + 10 * place + n
        for place, ten in enumerate(_TENS)
        for n in range(1, 10)
    },
}
VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_VULGAR = {**VULGAR, "⅐": "1/7", "⅑": "1/9", "⅒": "1/10"}
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SCALES = {
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_REWRITES = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"\{,\}|(?<=\d)(?:\\[,;:! ]|[\u00a0\u2009\u202f])(?=\d{3})", ","),
        (r"(?<=\d)[_'’](?=\d{3})", ","),
        (r"(?<=\d)(?=\\[dtc]?frac)", " "),
        (r"\\[dtc]?frac\s*\{\s*([^{}]{1,60})\s*\}\s*\{\s*([^{}]{1,60})\s*\}", r"\1/\2 "),
        (r"\\[dtc]?frac\s*(\d)\s*(\d)", r"\1/\2 "),
        (r"\\times|\\cdot|[×·]", "×"),
        (r"\\(?:left|right|displaystyle|text|mathrm)|\\[$,;:! (){}\[\]]", " "),
        (r"\\%", "%"),
        (r"[−–‒﹣－]", "-"),
        (r"⁄", "/"),
    )
)
_VULGAR_SIGN = re.compile(f"(\\d?)[ ]?([{''.join(_VULGAR)}])")
_POWER_SIGN = re.compile(r"10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]{1,5})")
_PLAIN = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|\d+(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    r"(?=[-+$€£¥₹.\d])"  # most places are none: seen at once, not after all the options below
    rf"(?P<sign>(?<![\w.)%])[-+])?(?:[$€£¥₹]\s?(?P<late>-)?)?(?<![\w.])"
    rf"(?P<number>{_PLAIN})"
    r"(?:\s(?P<part>\d{1,9})\s?/\s?(?P<of>\d{1,9})(?![\d/])"
    r"|\s?/\s?(?P<below>-?\d+(?:\.\d+)?)(?![\d/])"
    r"|[eE](?P<exponent>[-+]?\d{1,9})(?![\w])"
    r"|\s?[×x*]\s?10\s?(?:\^|\*\*)\s?[{(]?\s?(?P<power>[-+]?\d{1,9})[})]?)?"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion)\b)?"
    r"(?P<percent>\s?(?:%|percent\b|per cent\b))?",
    re.I,
)
ANSWER_CUE = re.compile(
    r"####|(?:(?:final|correct)\s+)?(?:answer|result|solution)\b[*_`\s]*"
    r"(?:is|are|was|=|:|equals|would be|should be|to be)",
    re.I,
)
_DIGIT = re.compile(r"\d")
_LONGEST_SIGN = 4  # letters before the digits of a number that belong to it
_LARGEST_EXPONENT = 400
_LONGEST = 400  # digits of one number; beyond that it is not an answer


class Number(NamedTuple):
    """A number; `percent` if a percent sign followed, with the value as written."""

    value: Fraction
    percent: bool

    def readings(self) -> tuple[Fraction, ...]:
        """Return what it may mean: 50% is 50 or one half."""
        return (self.value, self.value / 100) if self.percent else (self.value,)


def find_numbers(text: str, position: Literal["first", "last"] = "first") -> Iterator[Number]:
    """The numbers of a text from its beginning, or from its end: what nobody asks for is not worked out."""
    plain = _rewritten(text)
    first = _DIGIT.search(plain)
    if first is None:
        return
    matches: Iterable[re.Match[str]] = _NUMBER.finditer(
        plain, max(0, first.start() - _LONGEST_SIGN)
    )
    for match in matches if position == "first" else reversed([*matches]):
        value = _value(match)
        if value is not None:
            yield Number(value, bool(match["percent"]))


def answer_number(text: str, position: Literal["first", "last"] = "last") -> Number | None:
    r"""The number that an answer gives: in `\boxed{}`, else after "the answer is" or `####`, else the first or last."""
    box = last_box(text)
    if box is not None and (inside := next(find_numbers(box, position), None)):
        return inside
    cues = list(ANSWER_CUE.finditer(text))
    if cues:
        after = text[cues[-1].end() :].lstrip().split("\n", 1)[0]
        equal = after.split(". ", 1)[0].rpartition("=")[2]
        if number := next(find_numbers(equal), None) or next(find_numbers(after), None):
            return number
    return next(find_numbers(text, position), None)


def whole_number(text: str) -> Number | None:
    """The number that a text consists of, with a unit or a currency at most; None if there are several or none."""
    numbers = [*islice(find_numbers(text), 2)]
    return numbers[0] if len(numbers) == 1 else None


def _rewritten(text: str) -> str:
    """The text with LaTeX, special signs and separators of its numbers in plain characters."""
    if not text.isascii():
        text = _VULGAR_SIGN.sub(lambda match: f"{match[1]} {_VULGAR[match[2]]}".lstrip(), text)
        text = _POWER_SIGN.sub(lambda match: f"10^{match[1].translate(SUPERSCRIPTS)}", text)
    elif "\\" not in text and "'" not in text and "_" not in text and "{" not in text:
        return text
    for pattern, to in _REWRITES:
        text = pattern.sub(to, text)
    return text


def _value(match: re.Match[str]) -> Fraction | None:
    if match.end() - match.start() > _LONGEST:
        return None
    try:
        value = Fraction(match["number"].replace(",", ""))
        if match["part"]:
            value += Fraction(int(match["part"]), int(match["of"]))
        elif match["below"]:
            value /= Fraction(match["below"])
    except ZeroDivisionError:
        return None
    exponent = int(match["exponent"] or match["power"] or 0)
    if abs(exponent) > _LARGEST_EXPONENT:
        return None
    value *= Fraction(10) ** exponent * _SCALES.get((match["scale"] or "").lower(), 1)
    return -value if (match["sign"] or "+")[0] == "-" or match["late"] else value
