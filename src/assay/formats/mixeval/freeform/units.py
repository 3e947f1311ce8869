"""The unit of a number, in one spelling: km, kilometres and kilometers are the same."""

import re

from assay.text.numbers import Number

_SPELLINGS = {
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
_UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_WORD = re.compile(r"[ \t-]{0,3}([^\W\d_]+|[°¢])")
_CURRENCY = re.compile(r"[$€£¥₹]")


def unit_of(text: str, number: Number) -> tuple[str, int]:
    """The known unit of a number of this (rewritten) text, empty if it has none, and where number and unit end."""
    if number.percent:
        return "percent", number.end
    word = _WORD.match(text, number.end)
    unit = _UNITS.get(word[1].lower(), "") if word else ""
    if unit and word:
        return unit, word.end()
    currency = _CURRENCY.search(text, number.start, number.end)
    return (_UNITS[currency[0]] if currency else ""), number.end
