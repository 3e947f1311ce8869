"""Names and phrases made comparable, and whether an answer states one.

Beyond the SQuAD normalisation: no accents, no "and" (nor "&"), hyphens and slashes as spaces, number words as digits. A
phrase counts as whole words only, and not where it is denied ("not Paris", "rather than Paris").
"""

import re
import unicodedata
from functools import lru_cache

from assay.text.normalise import squad
from assay.text.numbers import NUMBER_WORDS

_REPLACED = {"and": "", **{word: str(number) for word, number in NUMBER_WORDS.items()}}
_TITLES = frozenset(
    (
        "sir",
        "dr",
        "mr",
        "mrs",
        "ms",
        "dame",
        "prof",
        "professor",
        "president",
        "king",
        "queen",
        "saint",
    )
)
_LETTERS = str.maketrans(
    {
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "ß": "ss",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
    }
)
_DECIMAL = re.compile(r"\.(?=\d)(?<=\d\.)")
_NO_WORD = re.compile(r"[\W_]+")
_DENIED = re.compile(
    r"\b(?:not(?! only| just| merely)|isnt|wasnt|arent|werent|never|neither|nor|without|except|unlike|(?<!other )than"
    r"|instead of)(?: (?:really|actually|even|be|been))?"
    r"(?: (?:\S+ )?(?:by|of|in|at|on|from|for|to|with|called|named))? $"
)
_HEDGED = re.compile(r"\b(?:either|maybe|perhaps|possibly|might|could|whether)\b")
_FEW_WORDS = 8
_BEFORE = 48  # letters before a phrase in which a denial is looked for


def folded(text: str) -> str:
    """The text as it is compared; never empty if the text has a letter or a digit."""
    if not text.isascii():
        text = _without_accents(text)
    if "." in text:
        text = _DECIMAL.sub(" point ", text)
    words = [
        found
        for word in squad(text.replace("-", " ").replace("/", " ")).split()
        if (found := _REPLACED.get(word, word))
    ]
    made = " ".join(words)
    return made if any(map(str.isalnum, made)) else _NO_WORD.sub(" ", text.lower()).strip()


@lru_cache(1024)
def without_title(phrase: str) -> str:
    """A folded name without the title before it; a title and one more word stay as they are ("king of spain", too)."""
    first, _, rest = phrase.partition(" ")
    return rest if first in _TITLES and " " in rest and not rest.startswith("of ") else phrase


def states(where: str, phrase: str) -> bool | None:
    """Whether a folded text (between two spaces) states a folded phrase; None where it is one of two candidates."""
    wanted = f" {phrase} "
    at = where.find(wanted)
    if at < 0:
        return False
    found: bool | None = False
    while at >= 0:
        if not _DENIED.search(where, max(0, at + 1 - _BEFORE), at + 1):
            if not _one_of_two(where, at, at + len(wanted)):
                return True
            found = None
        at = where.find(wanted, at + 1)
    return found


def _one_of_two(where: str, start: int, end: int) -> bool:
    """ "Paris or Lyon": in a longer sentence an "or" may join other things."""
    if not (where.startswith("or ", end) or where.endswith(" or", 0, start)):
        return False
    return (
        where.count(" ") <= _FEW_WORDS + 1
        or _HEDGED.search(where, max(0, start - _BEFORE), start) is not None
    )


def _without_accents(text: str) -> str:
    marks = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(_plain(mark) for mark in marks)


@lru_cache(4096)
def _plain(mark: str) -> str:
    kind = unicodedata.category(mark)
    if kind == "Pd":
        return "-"
    return "" if kind == "Mn" or (kind[0] == "P" and mark not in "-./&") else mark
