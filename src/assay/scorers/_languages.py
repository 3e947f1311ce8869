"""The language of a text by its letters and its most frequent words: enough for whole answers, without a model.

Languages that share a script are told apart by words that hardly any sentence lacks. `langdetect` knows more of them.
"""

import unicodedata
from collections import Counter
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from assay.sdk import UserError, install_command

Detector = Literal["words", "langdetect"]

_LONGEST = 10_000  # letters that are looked at
_SCRIPTS = {
    "HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "THAI": "th", "BENGALI": "bn", "GURMUKHI": "pa",
    "GUJARATI": "gu", "TAMIL": "ta", "TELUGU": "te", "KANNADA": "kn", "MALAYALAM": "ml", "HEBREW": "he", "GREEK": "el",
}  # fmt: skip
_WORDS = {
    "LATIN": {
        "en": "the of and to in is that it for with as was are this be on you not have",
        "es": "el la de que y en los del las por con una para es se un lo como más",
        "pt": "o a de que e do da em um para com não uma os no se na dos é ao mais",
        "fr": "le la les de des et en un une que est pour dans du qui pas sur au ce",
        "de": "der die und das ist nicht ein eine zu den mit von für auf dem sich es",
        "it": "il di che e la per un una non sono in del con della è gli le si da",
        "nl": "de het een en van te dat die in is niet zijn op aan met voor er ook",
        "sv": "och att det en som på är av för med den till inte om har de ett",
        "pl": "i w nie na się z do to że jest o jak po ale dla są oraz",
        "vi": "và của là có cho không được một những các trong người với này khi",
        "fi": "ja on ei se että oli hän olla mutta kun joka niin ovat sen tai myös",
        "sw": "na ya wa kwa ni katika za la cha kuwa hii yake hiyo pia watu kama",
        "tr": "ve bir bu da de için ile olarak çok daha gibi ne kadar olan var",
        "id": "yang dan di untuk dengan dari ini tidak adalah pada itu dalam ke akan",
    },
    "CYRILLIC": {
        "ru": "и в не на что с по это как его но из для или также был от они",
        "bg": "и на да се е за от са не с че по като или които ще тя към",
        "uk": "і в не на що з та є до як це але для від або й у також",
    },
    "ARABIC": {
        "ar": "في من على أن إلى التي عن هذا مع لا ما كان هذه هو هي و أو",
        "fa": "و در به از که این را با است برای آن یک می های شود هم",
        "ur": "کے میں کی ہے اور سے کا کو نے پر ہیں یہ ایک بھی کہ جو",
    },
    "DEVANAGARI": {
        "hi": "के में है और की को से का हैं पर यह कि ने एक भी नहीं हम",
        "mr": "आहे आणि या मध्ये ते हे त्या होते नाही एक आहेत व तर की मी",
        "ne": "छ र मा छन् हुन्छ भने गर्न पनि यो तर एक हो यस थियो गर्ने",
    },
}
_MOST_FREQUENT = {
    script: {name: {*words.split()} for name, words in each.items()}
    for script, each in _WORDS.items()
}
LANGUAGES = {*_SCRIPTS.values(), *(name for each in _WORDS.values() for name in each)}


def language_of(text: str, detector: Detector = "words") -> str | None:
    """The ISO 639-1 code of a text's language; None where it has no letters, or none that are known."""
    if detector == "langdetect":
        return _langdetect_language(text[: 10 * _LONGEST])
    text = text[:_LONGEST].lower()
    scripts = Counter(filter(None, map(_script, text)))
    if not scripts:
        return None
    script = (
        "HIRAGANA" if scripts["HIRAGANA"] * 10 > scripts["CJK"] else scripts.most_common(1)[0][0]
    )
    if script in _SCRIPTS:
        return _SCRIPTS[script]
    words = Counter(word.strip(".,;:!?\"'“”«»()[]*_#-—।،؟") for word in text.split())
    counts = {
        name: sum(words[word] for word in own)
        for name, own in _MOST_FREQUENT.get(script, {}).items()
    }
    if not any(counts.values()):
        return "en" if script == "LATIN" and text.isascii() else None
    return max(counts, key=lambda name: counts[name])


@lru_cache(4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0] if letter.isalpha() else ""


def _langdetect_language(text: str) -> str | None:
    langdetect = import_module("langdetect")
    langdetect.DetectorFactory.seed = 0  # it draws at random
    try:
        return str(langdetect.detect(text))
    except langdetect.LangDetectException:
        return None


def require_langdetect(where: str) -> None:
    """UserError where the package is not installed."""
    if find_spec("langdetect") is None:
        raise UserError(
            "`detector: langdetect` needs langdetect",
            where=where,
            fix=install_command("languages"),
        )
