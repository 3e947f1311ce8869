"""Whether an answer gives a number, with its unit. Which of several numbers is meant is decided by where they stand and
by the kind that is asked for (a year, a unit); where that does not decide, none is taken for the answer."""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from assay.formats.mixeval.freeform.conclusion import (
    Conclusion,
    drawn,
    first_sentence,
    last_sentence,
    sentences,
)
from assay.text.numbers import NUMBER_WORDS, Number, find_numbers, rewritten

_WORDS = sorted(NUMBER_WORDS.keys() - {"one"}, key=len, reverse=True)
_NUMBER_WORD = re.compile(
    rf"\b({'|'.join(_WORDS).replace('-', '[- ]')})\b(?!-(?:third|quarter|half|fifth|sixth|eighth|tenth)s?)",
    re.I,
)
_LETTERS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalpha() and byte < 128 else 32 for byte in range(256)
)
_ONE = re.compile(
    r"(?<!no )(?<!this )(?<!that )(?<!which )(?<!each )(?<!every )\bone\b(?! of\b| another\b|'|-)",
    re.I,
)
_DENIED = re.compile(
    r"(?:\bnot|n['’]t|\brather than|\binstead of|\bnever) (?:(?!but\b)\w+ )?\W{0,3}$", re.I
)
_WHEN = re.compile(
    r"(?:\b(?:in|since|until|by|during|from|of|after|before|around|late|early|season)\s(?:the\s)?|\()\W{0,2}$",
    re.I,
)
_LEAD = re.compile(
    r"\W{0,6}(?:(?:about|approximately|around|roughly|nearly|almost|exactly|only|just|over|the|a|total|of|there|it|are"
    r"|were|is|was|will|be|he|she|they|has|have|had|equal|to|i|think|believe)\s{1,3}){0,6}\W{0,3}",
    re.I,
)
_GOES_ON = re.compile(
    r"\s?(?:[-+*/×x^=–](?:\s|\d)|or\b|to \d|and \d|,\s?(?:and |or |then )?\d)", re.I
)
_COUNTED = re.compile(
    r"\bhow many (more |fewer |less )?(?:(?:total|different|other) )?([a-z]{3,})", re.I
)
_MORE = re.compile(r"(?:more|fewer|less)\b ?")
_RESULT = re.compile(
    r"\b(?:which|that|this|it) (?:is|was|makes|gives|equals|means)\b|\b(?:a|an) (?:total|increase|decrease|difference"
    r"|span|period|drop|rise|gain) of\b|\bfor a total of\b|=",
    re.I,
)
_FEW_WORDS = 4
_BEFORE = 24  # letters before a number that may say what it is
_SPELLINGS = {  # of units: km, kilometres and kilometers are the same
    "metre": "m meter meters metre metres",
    "kilometre": "km kms kilometer kilometers kilometre kilometres",
    "centimetre": "cm centimeter centimeters centimetre centimetres",
    "millimetre": "mm millimeter millimeters millimetre millimetres",
    "mile": "mi mile miles",
    "yard": "yd yds yard yards",
    "foot": "ft foot feet",
    "inch": "inch inches",
    "gram": "g gram grams gramme grammes",
    "kilogram": "kg kgs kilo kilos kilogram kilograms",
    "tonne": "tonne tonnes ton tons",
    "pound": "lb lbs pound pounds £",
    "ounce": "oz ounce ounces",
    "second": "s sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "litre": "l liter liters litre litres",
    "degree": "° degree degrees",
    "cent": "cent cents ¢",
    "dollar": "dollar dollars usd $",
    "euro": "euro euros eur €",
    "yen": "yen ¥",
    "rupee": "rupee rupees ₹",
    "percent": "% percent",
    "point": "pt pts point points",
}
_UNITS = {
    spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()
}
_UNIT = re.compile(r"[ \t-]{0,3}([^\W\d_]+|[°¢])")
_CURRENCY = re.compile(r"[$€£¥₹]")


class Quantity(NamedTuple):
    """A number that is asked for."""

    number: Number
    unit: str

    def kind(self) -> tuple[str, bool]:
        """Its unit, and whether it is a year."""
        return self.unit, not self.unit and _is_year(self.number)

    def equals(self, number: Number) -> bool:
        if number.percent == self.number.percent:
            return number.value == self.number.value
        return not set(number.readings()).isdisjoint(self.number.readings())


Found = Number | Literal["none", "several"]


def whole_quantity(text: str) -> Quantity | None:
    """The number with its unit that a text consists of; a single lower-case word behind it may be anything."""
    text = with_digits(text)
    numbers = find_numbers(text)
    if len(numbers) != 1:
        return None
    unit, end = unit_of(text, numbers[0])
    before, after = text[: numbers[0].start].strip(), text[end:].strip(" .")
    if before or (
        after and (not after.isalpha() or not after.islower() or text[numbers[0].end].isalpha())
    ):
        return None
    return Quantity(numbers[0], unit)


def find_quantity(answer: Conclusion, unit: str, year: bool, question: str = "") -> Found:
    """The number that an answer gives to a question for a number of this unit, or for a year."""
    year = year and not _COUNTED.search(question)
    found = _found(answer, unit, year)
    if found == "several":
        return _asked_for(answer, unit, year, question)
    return _not_echoed(answer, unit, year, question) or found


def _not_echoed(answer: Conclusion, unit: str, year: bool, question: str) -> Number | None:
    """Of the two numbers of a plain sentence the one that the question does not have, if it has the other."""
    if answer.said or not question or "=" in answer.whole or len(sentences(answer.whole)) > 1:
        return None
    values = {number.value: number for number in _candidates(with_digits(answer.whole), unit, year)}
    new = values.keys() - {number.value for number in find_numbers(with_digits(question))}
    return values[new.pop()] if len(values) == 2 and len(new) == 1 else None


def _asked_for(answer: Conclusion, unit: str, year: bool, question: str) -> Found:
    """Of several numbers the one that the last sentence to give any gives: by a result ("which is 5"), as the number
    of what is counted, or as the only one that the question does not have itself."""
    counted = _COUNTED.search(question)
    echoed = {number.value for number in find_numbers(with_digits(question))}
    for sentence in reversed(sentences(answer.said or answer.whole)):
        text = with_digits(sentence)
        numbers = _candidates(text, unit, year)
        if not numbers:
            continue
        result = list(_RESULT.finditer(text))
        after = [number for number in numbers if result and number.start >= result[-1].end()]
        behind = [(number, text[number.end :].lower().lstrip(" -")) for number in numbers]
        noun = counted[2].lower().rstrip("s") if counted else ""
        of_noun = [
            number for number, rest in behind if noun and _MORE.sub("", rest).startswith(noun)
        ]
        compared = [
            number for number, rest in behind if counted and counted[1] and _MORE.match(rest)
        ]
        new = [number for number in numbers if number.value not in echoed]
        for kind in (after[:1], compared, of_noun, new):
            if len({number.value for number in kind}) == 1:
                return kind[0]
        return "several"
    return "several"


def _found(answer: Conclusion, unit: str, year: bool) -> Found:
    if answer.said and (found := _meant(answer.said, unit, year)) != "none":
        return found
    first = first_sentence(answer.whole)
    terse = first if len(first.split()) <= _FEW_WORDS and "=" not in first else ""
    found: Found = "none"
    for place in (terse, drawn(answer.whole), _in_bold(answer), answer.whole):
        found = _meant(place, unit, year) if place else "none"
        if isinstance(found, Number):
            return found
    if found == "none":
        return found
    ends = [_meant(place, unit, year) for place in (first, last_sentence(answer.whole))]
    said = {end.value: end for end in ends if isinstance(end, Number)}
    return said.popitem()[1] if len(said) == 1 else "several"


def _in_bold(answer: Conclusion) -> str:
    """The bold parts that begin with a number: "**Step 1**" is not an answer."""
    spans = (with_digits(span).strip() for span in dict.fromkeys(answer.bold))
    return " ; ".join(span for span in spans if span.lstrip("-$€£~≈ ")[:1].isdigit())


def _meant(text: str, unit: str, year: bool) -> Found:
    """The only number of a text that may be meant, what follows its last equals sign, or what it begins with."""
    text = with_digits(text)
    numbers = _candidates(text, unit, year)
    if not numbers:
        return "none"
    if len({number.value for number in numbers}) == 1:
        return numbers[0]
    if "=" in text:
        right = _candidates(text.rpartition("=")[2], unit, year)
        if len({number.value for number in right}) == 1:
            return right[0]
    lead = _LEAD.match(text)
    if lead and numbers[0].start <= lead.end() and not _GOES_ON.match(text, numbers[0].end):
        return numbers[0]
    return "several"


def _candidates(text: str, unit: str, year: bool) -> list[Number]:
    """The numbers of a text that may be the answer: of the kind, and of the unit if any has one, that is asked for."""
    numbers = [number for number in find_numbers(text) if not _is_denied(text, number)]
    for fits in _SIEVES[year] if len(numbers) > 1 else ():
        numbers = [number for number in numbers if fits(text, number)] or numbers
    if not unit:
        return numbers
    units = [unit_of(text, number)[0] for number in numbers]
    same = [number for number, other in zip(numbers, units, strict=True) if other == unit]
    return same or [number for number, other in zip(numbers, units, strict=True) if not other]


def unit_of(text: str, number: Number) -> tuple[str, int]:
    """The known unit of a number of this (rewritten) text, empty if it has none, and where number and unit end."""
    if number.percent:
        return "percent", number.end
    word = _UNIT.match(text, number.end)
    unit = _UNITS.get(word[1].lower(), "") if word else ""
    if unit and word:
        return unit, word.end()
    currency = _CURRENCY.search(text, number.start, number.end)
    return (_UNITS[currency[0]] if currency else ""), number.end


def _is_denied(text: str, number: Number) -> bool:
    decade = (
        text.startswith("s", number.end) and not text[number.end + 1 : number.end + 2].isalpha()
    )
    return decade or _DENIED.search(text, max(0, number.start - _BEFORE), number.start) is not None


def _is_year(number: Number) -> bool:
    return number.value.denominator == 1 and not number.percent and 1000 <= number.value <= 2100


def _says_when(text: str, number: Number) -> bool:
    return (
        _is_year(number)
        and _WHEN.search(text, max(0, number.start - _BEFORE), number.start) is not None
    )


def _is_ordinal(text: str, number: Number) -> bool:
    return text.startswith(("st", "nd", "rd", "th"), number.end)


# What a number must be to stay a candidate while others do: by whether a year is asked for.
_SIEVES: dict[bool, tuple[Callable[[str, Number], bool], ...]] = {
    True: (
        lambda text, number: not _is_ordinal(text, number),
        lambda text, number: _is_year(number),
    ),
    False: (
        lambda text, number: not _is_ordinal(text, number),
        lambda text, number: not _says_when(text, number),
    ),
}


def with_digits(text: str) -> str:
    """The rewritten text with number words as digits; "one" only where it is the only number."""
    text = rewritten(text)
    words = text.encode("ascii", "replace").translate(_LETTERS).decode().split()
    if not NUMBER_WORDS.keys().isdisjoint(words):
        text = _NUMBER_WORD.sub(_digits, text)
    if "one" in words and not any(map(str.isdigit, text)):
        text = _ONE.sub("1", text)
    return text


def _digits(found: re.Match[str]) -> str:
    return str(NUMBER_WORDS[found[1].lower().replace(" ", "-")])
