"""Porter's stemmer for English: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.

`nltk_stem` is the same with the changes that the NLTK package makes by default; `rouge-score` and METEOR stem with it.
"""

from collections.abc import Callable
from functools import lru_cache

LONGEST = 200  # letters
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic",
    "ative": "",
    "alize": "al",
    "iciti": "ic",
    "ical": "ic",
    "ful": "",
    "ness": "",
}
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "sion", "tion", "ou", "ism", "ate",
    "iti", "ous", "ive", "ize",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a lower-case word; words of one or two letters, of more than `LONGEST`, or with others than a
    to z, stay as they are."""
    if (
        not 2 < len(word) <= LONGEST
        or not word.isascii()
        or not word.isalpha()
        or not word.islower()
    ):
        return word
    return _stem(word)


@lru_cache(1 << 12)
def _stem(word: str) -> str:
    word = _with_ending(_final_y(_past(_plurals(word))), _STEP_2)
    return _final_e(_last_suffix(_with_ending(word, _STEP_3)))


def _kinds(word: str) -> str:
    """The word as v for vowels and c for consonants; y is a vowel after a consonant."""
    kinds = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and kinds[-1:] == "c")
        kinds += "v" if vowel else "c"
    return kinds


def _measure(word: str) -> int:
    """Return how many times a vowel is followed by a consonant."""
    return _kinds(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "v" in _kinds(word)


def _ends_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _kinds(word)[-1] == "c"


def _ends_short(word: str) -> bool:
    """Consonant, vowel, consonant, the last none of w, x, y: hop, not snow."""
    return _kinds(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _plurals(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str, ends_short: Callable[[str], bool] = _ends_short) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        base = word.removesuffix(suffix)
        if base != word:
            if not _has_vowel(base):
                return word
            if base.endswith(("at", "bl", "iz")) or (_measure(base) == 1 and ends_short(base)):
                return base + "e"
            return base[:-1] if _ends_double(base) and base[-1] not in "lsz" else base
    return word


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


def _with_ending(word: str, endings: dict[str, str]) -> str:
    for ending in sorted(endings, key=len, reverse=True):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            return base + endings[ending] if _measure(base) > 0 else word
    return word


def _last_suffix(word: str) -> str:
    for ending in sorted(_STEP_4, key=len, reverse=True):
        if word.endswith(ending):
            base = word[:-3] if ending in ("sion", "tion") else word.removesuffix(ending)
            return base if _measure(base) > 1 else word
    return word


def _final_e(word: str, ends_short: Callable[[str], bool] = _ends_short) -> str:
    if word.endswith("e"):
        base = word[:-1]
        if _measure(base) > 1 or (_measure(base) == 1 and not ends_short(base)):
            word = base
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


# ---- with NLTK's changes

_IRREGULAR = {
    "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "innings": "inning", "outings": "outing",
    "cannings": "canning",
    **{word: word for word in ("sky", "news", "inning", "outing", "canning", "howe", "proceed", "exceed", "succeed")},
}  # fmt: skip
_NLTK_STEP_2 = {
    ending: base for ending, base in _STEP_2.items() if ending not in ("abli", "alli")
} | {
    "bli": "ble",
    "fulli": "ful",
}


def nltk_stem(word: str) -> str:
    """The stem of a lower-case word as NLTK's PorterStemmer gives it; letters other than a to z are consonants. What
    has more than `LONGEST` letters is not a word, and stays as it is."""
    return word if len(word) > LONGEST else _nltk_stem(word)


@lru_cache(1 << 14)
def _nltk_stem(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = word[:-1] if len(word) == 4 and word.endswith("ies") else _plurals(word)
    past = word[:-1] if len(word) == 4 else word[:-2]
    word = past if word.endswith("ied") else _past(word, _nltk_ends_short)
    if word.endswith("y") and len(word) > 2 and _kinds(word[:-1])[-1] == "c":
        word = word[:-1] + "i"
    word = _last_suffix(_with_ending(_nltk_long_suffix(word), _STEP_3))
    return _final_e(word, _nltk_ends_short)


def _nltk_ends_short(word: str) -> bool:
    """Or a word of two letters, a vowel and a consonant: of."""
    return _ends_short(word) or _kinds(word) == "vc"


def _nltk_long_suffix(word: str) -> str:
    while word.endswith("alli"):
        if not _measure(word[:-4]):
            return word
        word = word[:-2]
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _with_ending(word, _NLTK_STEP_2)
