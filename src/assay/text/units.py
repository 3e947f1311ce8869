"""The unit behind a number, in one spelling: km, kilometres and kilometers are the same."""

import re

_SPELLINGS = {
    "metre": "m meter meters metre metres",
    "kilometre": "km kms kilometer kilometers kilometre kilometres",
    "centimetre": "cm centimeter centimeters centimetre centimetres",
    "millimetre": "mm millimeter millimeters millimetre millimetres",
    "mile": "mi mile miles",
    "yard": "yd yds yard yards",
    "foot": "ft foot feet",
    "inch": "in inch inches",
    "gram": "g gram grams gramme grammes",
    "kilogram": "kg kgs kilo kilos kilogram kilograms",
    "pound": "lb lbs pound pounds",
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
    "dollar": "dollar dollars usd",
    "euro": "euro euros eur",
    "percent": "% percent",
    "point": "pt pts point points",
}
_UNITS = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_NUMBER = re.compile(r"[-+$€£¥₹\s]*[\d.,/]+(?:\s?(?:hundred|thousand|million|billion|trillion)\b)?", re.I)
_WORD = re.compile(r"[\s-]*([^\W\d_]+|[%°])", re.I)


def unit_after(text: str, start: int) -> tuple[str, str]:
    """The known unit of the number that begins at `start`, and whatever other words stand beside the two."""
    number = _NUMBER.match(text, start)
    end = number.end() if number else start
    word = _WORD.match(text, end)
    unit = _UNITS.get(word[1].lower(), "") if word else ""
    rest = text[:start] + " " + text[word.end() if word and unit else end :]
    return unit, rest.strip(" .$€£¥₹%")
