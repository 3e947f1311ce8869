"""How texts are made comparable before scorers compare them.

`none` leaves case and whitespace to the two flags. `basic` folds case, makes one space of every run of whitespace and
drops quotes, markdown and final punctuation around the text. `squad` is the normalisation of the SQuAD evaluation
(Rajpurkar et al. 2016): lower case, no ASCII punctuation, no articles, single spaces. `lower`, `spaces` and
`lower_spaces` make small letters, single spaces, or both, and nothing else.
"""

import re
import string
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Literal

from assay.text.stem import nltk_stem, stem

Normalisation = Literal["none", "basic", "squad", "lower", "spaces", "lower_spaces"]
Stemming = bool | Literal["nltk"]

# texts per normaliser: references come back with every sample and every scorer
_REMEMBERED = 1 << 12
_LONGEST_REMEMBERED = 500  # letters: what is remembered stays within a few megabytes
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_PUNCTUATION = string.punctuation.encode()
_LOWER = bytes(ord(chr(byte).lower()) if byte < 128 else byte for byte in range(256))
# neither letters nor what `split` takes for a space
_CONTROL = bytes([*range(9), *range(14, 28), 127])
_EDGES = " \t\r\n\"'`*_“”‘’«»„"
_END = _EDGES + ".,;:!?"


@cache
def normaliser(
    how: Normalisation = "none",
    case_sensitive: bool = True,
    strip_whitespace: bool = True,
    stemming: Stemming = False,
) -> Callable[[str], str]:
    """The function that makes texts comparable; it remembers short texts that it has seen."""
    plain = _none(case_sensitive, strip_whitespace) if how == "none" else _PLAIN[how]
    if how == "none" and not stemming:
        return plain

    stemmed = nltk_stem if stemming == "nltk" else stem

    def made(text: str) -> str:
        text = plain(text)
        return " ".join(map(stemmed, text.split())) if stemming else text

    remembered = lru_cache(_REMEMBERED)(made)

    def normalise(text: str) -> str:
        return remembered(text) if len(text) <= _LONGEST_REMEMBERED else made(text)

    return normalise


def basic(text: str) -> str:
    return " ".join(text.casefold().split()).lstrip(_EDGES).rstrip(_END)


def squad(text: str) -> str:
    if text.isascii():
        plain = text.encode()
        kept = plain.translate(_LOWER, _PUNCTUATION)
        if len(kept) == len(kept.translate(None, _CONTROL)):
            return " ".join([word for word in kept.decode().split() if word not in _ARTICLE_WORDS])
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def spaces(text: str) -> str:
    return " ".join(text.split())


def lower_spaces(text: str) -> str:
    return " ".join(text.lower().split())


def _none(case_sensitive: bool, strip_whitespace: bool) -> Callable[[str], str]:
    if case_sensitive:
        return str.strip if strip_whitespace else str
    return (lambda text: text.strip().casefold()) if strip_whitespace else str.casefold


_PLAIN: dict[str, Callable[[str], str]] = {
    "basic": basic,
    "squad": squad,
    "lower": str.lower,
    "spaces": spaces,
    "lower_spaces": lower_spaces,
}
