"""What surrounds an expression in LaTeX and prose, taken away: delimiters, spacing, signs of Unicode, units, words."""

import re
from fractions import Fraction

from assay.scorers._math.expressions import NAMES
from assay.text.numbers import SUPERSCRIPTS, VULGAR

_REWRITES = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits)(?![A-Za-z])\.?", ""),
        (r"\\!", ""),
        (r"\\[,;:> ]|\\q?quad(?![A-Za-z])|~|\u00a0|\u2009|\u202f", " "),
        (r"\\\(|\\\)|\\\[|\\\]|\\\$|\$", " "),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (
            r"\\(?:text|textbf|textit|textrm|mbox|hbox|mathrm|mathbf|mathit|operatorname\*?)\s*\{([^{}]{0,200})\}",
            r" \1 ",
        ),
        (r"\\(?:mathrm|mathbf|boldsymbol|mathit|mathsf|rm|bf)(?![A-Za-z])", ""),
        (r"\\(?:times|cdot|ast)(?![A-Za-z])|[×·⋅∗]", "*"),
        (r"\\div(?![A-Za-z])|[÷⁄∕]", "/"),
        (r"\\%", "%"),
        (r"\^\s*\{?\s*(?:\\circ|∘)\s*\}?|\\degree(?![A-Za-z])|º", "°"),
        (r"°\s*[CFK]\b", "°"),
        (r"[−–‒﹣－]", "-"),
        (r"\\pm(?![A-Za-z])|\+/-", "±"),
        (r"\\mp(?![A-Za-z])", "∓"),
        (r"√", r"\\sqrt "),
        (r"π", r"\\pi "),
        (r"∞", r"\\infty "),
        (r"\\(?:leqslant|leq|le)(?![A-Za-z])|≤|<=", "≤"),
        (r"\\(?:geqslant|geq|ge)(?![A-Za-z])|≥|>=", "≥"),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\neq?(?![A-Za-z])", "≠"),
        (r"\\(?:cup|bigcup)(?![A-Za-z])", "∪"),
        (r"\\in(?![A-Za-z])", "∈"),
        (r"\\(?:approx|equiv|sim)(?![A-Za-z])|≈", "="),
        (r"\\(?:lbrace|rbrace)(?![A-Za-z])", lambda match: "\\{" if "l" in match[0] else "\\}"),
        (r"\\(?:lvert|rvert|vert|mid)(?![A-Za-z])", "|"),
        (r"\\(?:emptyset|varnothing)(?![A-Za-z])|∅", r"\\{\\}"),
        (r"(?<=[\d})])\s*:\s*(?=[\d\\({])", "/"),
        (r"\\(?:angle|overline|vec|hat|bar)(?![A-Za-z])", ""),
        (r"[‘’]", "'"),
    )
)
_RAISED = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,(?:\\!\s?)?|\{,\}|\\,|\\ )\d{3})+(?![\d,])")
_RECURRING = re.compile(r"(\d{0,9})\.(\d{0,9})\\overline\s*\{(\d{1,9})\}")
_END = re.compile(r"[\s.,;:]+$")
_CURRENCY = re.compile(r"[€£¥₹]|\b(?:USD|EUR|GBP)\b")
_POWER_OF_UNIT = re.compile(r"(?:\^\s*\{?\s*([23])\s*\}?)?\s*$")
_UNIT = re.compile(
    r"(?:(?<=[\d)}°%!])|(?<=\s))\s*((?:square |cubic |sq\.? |cu\.? )?[A-Za-z]+(?:\s?/\s?[A-Za-z]+|\s[A-Za-z]+)*)\.?$"
)
_UNITS = {  # how many of the first unit each is, by what is measured
    "length": {
        "m": "1", "meter": "1", "metre": "1", "cm": "1/100", "centimeter": "1/100",
        "centimetre": "1/100", "mm": "1/1000", "millimeter": "1/1000", "km": "1000",
        "kilometer": "1000", "kilometre": "1000", "inch": "127/5000", "in": "127/5000",
        "ft": "381/1250", "foot": "381/1250", "feet": "381/1250", "yard": "1143/1250",
        "mile": "201168/125",
    },
    "time": {
        "s": "1", "sec": "1", "second": "1", "min": "60", "minute": "60", "h": "3600",
        "hr": "3600", "hour": "3600", "day": "86400", "week": "604800",
    },
    "mass": {
        "g": "1", "gram": "1", "kg": "1000", "kilogram": "1000", "mg": "1/1000",
    },
    "volume": {
        "l": "1", "liter": "1", "litre": "1", "ml": "1/1000", "milliliter": "1/1000",
    },
    "money": {
        "cent": "1/100", "dollar": "1",
    },
    "angle": {
        "degree": "1",
    },
}  # fmt: skip
_SIZES = {name: (kind, size) for kind, sizes in _UNITS.items() for name, size in sizes.items()}
_PLURALS = {"inches": "inch"}
_LONG_UNITS = frozenset((*(name for name in _SIZES if len(name) > 1), "per", "mph"))


def plain(text: str) -> str:
    """The text in plain signs."""
    for sign, value in VULGAR.items():
        if sign in text:
            above, below = value.split("/")
            text = text.replace(sign, rf"\frac{{{above}}}{{{below}}}")
    text = _RECURRING.sub(_as_fraction, text)
    text = _RAISED.sub(lambda match: f"^{{{match[0].translate(SUPERSCRIPTS)}}}", text)
    for pattern, to in _REWRITES:
        text = pattern.sub(to, text)
    return _END.sub("", text).strip()


def _as_fraction(match: re.Match[str]) -> str:
    """0.1\\overline{6} is 1/6."""
    whole, fixed, period = match.groups()
    below = 10 ** len(fixed) * (10 ** len(period) - 1)
    return rf"\frac{{{int(whole + fixed + period) - int('0' + whole + fixed)}}}{{{below}}}"


def without_thousands(text: str) -> str:
    """Without separators of thousands, outside brackets: `(100,200)` is a pair."""
    depth, at, made = 0, 0, ""
    for match in _THOUSANDS.finditer(text):
        between = text[at : match.start()]
        depth += sum(map(between.count, "([{")) - sum(map(between.count, ")]}"))
        made += between + (re.sub(r"\D", "", match[0]) if depth <= 0 else match[0])
        at = match.end()
    return made + text[at:]


def without_unit(text: str) -> tuple[str, tuple[str, int, Fraction] | None]:
    """The text without the unit at its end, and what that measures: its kind, its power and its size. The kind of a
    compound one begins with a question mark. Words that are no unit ("apples") are dropped as well."""
    text = _CURRENCY.sub(" ", text).strip()
    power_at = _POWER_OF_UNIT.search(text)
    raised = power_at is not None and power_at[1] is not None
    head = text[: power_at.start()].rstrip() if power_at and raised else text
    match = _UNIT.search(head)
    if match is None or not head[: match.start()].strip():
        return text, None
    words = match[1].lower()
    power = int(power_at[1]) if power_at and raised else 1
    for prefix, size in (
        ("square ", 2),
        ("sq. ", 2),
        ("sq ", 2),
        ("cubic ", 3),
        ("cu. ", 3),
        ("cu ", 3),
    ):
        if words.startswith(prefix):
            words, power = words.removeprefix(prefix), size
    known = _SIZES.get(words) or _SIZES.get(_PLURALS.get(words, words.removesuffix("s")))
    bare = head[: match.start()].strip()
    if known is None:
        return _without_words(text, bare, words) if not raised else (text, None)
    if (
        len(words) < 2
        and not head[match.start() :][:1].isspace()
        and head[match.start() - 1] not in " }"
    ):
        return text, None  # 5m may be a product, 5 m hardly
    kind, size = known
    return bare, (kind, power, Fraction(size) ** power)


def _without_words(
    text: str, bare: str, words: str
) -> tuple[str, tuple[str, int, Fraction] | None]:
    """Words behind a number, unless they may be variables or functions."""
    each = {word.removesuffix("s") for word in re.split(r"[\s/]+", words)}
    is_prose = any(len(word) > 3 or word in _LONG_UNITS for word in each) and not NAMES & {
        *each,
        *words.split(),
    }
    if not is_prose or bare[-1] not in "0123456789)}%!°":
        return text, None
    return bare, (f"?{' '.join(sorted(each))}", 1, Fraction(1)) if each & _LONG_UNITS else None
