"""Sentences and words of English prose, counted without a trained tokenizer.

Counts are those of NLTK (Punkt, Treebank) on plain prose. Punkt has learnt which abbreviations end a sentence; here a
list says which never do.
"""

import re

_ENDS = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]*_]*(?=\s+\S)")
_USUAL = "mr mrs ms dr prof st jr sr rev gen col capt lt sgt gov sen rep vs e.g i.e cf inc ltd corp u.s u.k u.n a.m p.m"
_ABBREVIATIONS = frozenset(_USUAL.split())
_APART = re.compile(r"[][(){}<>;@#$%&?!\"“”‘’«»…*`]|--+|\.\.\.+|[:,](?=\D|$)")
_CLITIC = re.compile(r"(?i)(?<=\w)(?:n't|'(?:s|m|d|ll|re|ve))$")
_TWO_IN_ONE = frozenset(("CANNOT", "GIMME", "GONNA", "GOTTA", "LEMME", "WANNA"))


def sentences(text: str) -> int:
    """Return how many sentences a text has: one ends at . ! or ?, unless an abbreviation, an
    initial or a lower-case letter after three dots says that it goes on."""
    count = 0
    text = text.strip()
    for end in _ENDS.finditer(text):
        mark = end[0].rstrip("\"'”’)]*_")
        following = text[end.end() : end.end() + 40].lstrip()[:1]
        if mark == ".":
            word = text[max(0, end.start() - 20) : end.start()].split()[-1:] or [""]
            bare = word[0].lstrip("\"'“‘([*_")
            initial = (
                len(bare) == 1
                and bare.isalpha()
                and (following.islower() or (bare.isupper() and bare != "I"))
            )
            count += not (initial or bare.lower() in _ABBREVIATIONS)
        else:
            count += not (mark.endswith("..") and following.islower())
    return count + bool(text)


def capital_words(text: str) -> int:
    """Return how many words are in capital letters; `DON'T` is two, `WELL-KNOWN` one."""
    count = 0
    for word in _APART.sub(" ", text).split():
        if not word.isupper():
            clitic = _CLITIC.search(word)
            count += clitic is not None and (
                word[: clitic.start()].isupper() or clitic[0].isupper()
            )
        else:
            bare = word.strip("'.")
            count += 2 if _CLITIC.search(word) or bare in _TWO_IN_ONE else 1
    return count
