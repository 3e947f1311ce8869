"""Whether passages hold what a text says, by its words alone."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

Words = Literal["plain", "split"]

FUNCTION_WORDS = frozenset(
    {
        *("the", "a", "an", "is", "was", "are", "were", "be", "been", "in", "on", "at", "to", "for", "of", "and"),
        *("or", "but", "this", "that", "these", "those", "it", "its", "they", "their"),
    }
)
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?]+(?:\s+|$)")


def flat(text: str) -> str:
    """Lower case, and one space for every run of other signs than letters and digits."""
    return " ".join(_WORD.findall(text.lower()))


def holds(passage: str, text: str, whole_words: bool = True) -> bool:
    """Whether one flat text is in another."""
    return f" {text} " in f" {passage} " if whole_words else text in passage


def sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def shared(text: str, passage: str) -> float:
    """The share of the different words of a flat text that are in another."""
    words = set(text.split())
    return len(words & set(passage.split())) / len(words) if words else 0.0


def supported(text: str, passages: Sequence[str], words: Words, left_out: Iterable[str]) -> float | None:
    """The share of the different content words of a text that a passage has; None if it has no content word.

    `plain` words are runs of letters and digits; `split` takes what stands between spaces, punctuation included.
    """
    content = _words(text, words) - frozenset(left_out)
    if not content:
        return None
    known = frozenset[str]().union(*(_words(passage, words) for passage in passages))
    return len(content & known) / len(content)


def _words(text: str, words: Words) -> frozenset[str]:
    return frozenset(text.lower().split() if words == "split" else _WORD.findall(text.lower()))
