"""Words for regular expressions: in small letters, capitalised and in capitals.

Python's `re` finds such alternatives five times as fast as it finds one spelling with `re.I`, because it knows the
letters that a match can begin with.
"""

import re


def spelled(*words: str) -> str:
    """The words in the three usual spellings, as alternatives."""
    found = dict.fromkeys(way for word in words for way in (word, word[:1].upper() + word[1:], word.upper()))
    return "|".join(map(re.escape, found))
