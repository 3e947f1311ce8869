"""The protocol's own rule parsers, step by step, with all that they miss: for scores equal to the original's.

Where the original draws a letter at random, these say that they found none; `scores.py` draws, in file order.
"""

import random
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_EDGES = ",.!?;:'"
_CUES = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
_NUMBERS = tuple(
    re.compile(pattern)
    for pattern in (
        r"-?\b\d{1,3}(?:,\d{3})+\b",
        r"-?\d+(?:\.\d+)?[eE][-+]?\d+",
        r"-?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][-+]?\d+)(?![,\d])",
    )
)
_DIGIT = re.compile(r"\d")
SEED = 42
NO_RULE = "free-form answers are no longer read by `rule`"  # of 0.1


@lru_cache(32)
def letters(count: int) -> str:
    """The letters of as many options."""
    return "".join(chr(ord("A") + number) for number in range(count))


@lru_cache(32)
def _shapes(count: int) -> re.Pattern[str]:
    """The thirteen shapes of a letter. At a place only one letter can stand, so the leftmost hit is the original's."""
    one = f"([{letters(count)}])"
    return re.compile(rf"[ \n]{one}\.?[ \n]|\({one}\)|\*\*{one}\.? | {one}\.?\*\*")


def choose(response: str, options: Sequence[str]) -> str | None:
    """The letter that the response names; None where the original would draw one."""
    for character in _EDGES:
        response = response.strip(character)
    response = f" {response} "
    hit = _shapes(len(options)).search(response) if options else None
    if hit is not None:
        return next(letter for letter in hit.groups() if letter)
    if len(response.split()) <= 5:
        return None
    text = response.lower()
    places = [
        (place, number)
        for number, option in enumerate(options)
        if (place := text.find(option.lower())) >= 0
    ]
    return letters(len(options))[min(places)[1]] if places else None


class Guesses:
    """The original's draws for one file: asked in the order of its rows, for each row without a letter."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def draw(self, options: int) -> str:
        return self._random.choice(letters(options))


def is_right(response: str, targets: Iterable[str]) -> bool:
    """Return whether a free-form response holds one of the accepted answers."""
    wanted = [value for target in targets for value in _normal_forms(target)]
    texts = [value for value in wanted if isinstance(value, str)]
    for found in predictions(response):
        if isinstance(found, str):
            if any(text in found for text in texts):
                return True
        elif found in wanted:
            return True
    return False


def predictions(response: str) -> list[str | float]:
    """Return what the response may be saying, each once: tails behind a cue, and the numbers in them."""
    whole = response.strip().strip(".").lower()
    tails = _tails(whole) or [whole]
    numeric = [tail for tail in tails if _DIGIT.search(tail)]
    numbers = [
        number for tail in numeric for pattern in _NUMBERS for number in pattern.findall(tail)
    ]
    return list(
        dict.fromkeys(value for text in (*tails, *numbers) for value in _normal_forms(text))
    )


def _tails(text: str) -> list[str]:
    pieces = text.split("\n")
    tails: list[str] = []
    for number, piece in enumerate(pieces):
        shortest = ""
        for cue in (*_CUES, "=") if number == len(pieces) - 1 else _CUES:
            if cue in piece:
                tail = piece.rpartition(cue)[2].strip()
                if not shortest or len(tail) < len(shortest):
                    shortest = tail
        if shortest and not (len(shortest) == 1 and shortest in _EDGES):
            tails.append(shortest)
    return tails


def _normal_forms(text: str) -> list[str | float]:
    text = text.strip()
    try:
        return [round(float(text.replace(",", "")), 2)]
    except ValueError:
        text = text.lower()
        return [f" {text}", f"{text} "] if len(text) == 1 else [text]


# ---- base models

_MEANINGFUL = (
    re.compile(  # a Latin, Greek, Cyrillic, Glagolitic, Hangul or Chinese letter, or a digit
        "[0-9A-Za-z\u00c0-\u024f\u0370-\u052f\u2c00-\u2c5f\ua640-\ua69f\uac00-\ud7af\u4e00-\u9fff]"
    )
)


def first_answer(response: str, *, multiple_choice: bool) -> str:
    """A base model's answer without the questions that it continued to ask itself."""
    answer = response.split("\n\n" if multiple_choice else "\n\n\nQuestion", 1)[0]
    return answer if _MEANINGFUL.search(answer) else response


# ---- verdicts of judges


_SCORE = (re.compile(r"\[\[(\d+\.?\d*)\]\]"), re.compile(r"\[(\d+\.?\d*)\]"))
_OPTION = (re.compile(r"\[\[([A-Z])\]\]"), re.compile(r"\[([A-Z])\]"))


def judged_score(text: str) -> float | None:
    """The score from 0 to 1 in a judge's text; None where there is none, or one outside of that."""
    found = _first(_SCORE, text)
    # such as 01, on which the original stops
    if found is None or re.fullmatch(r"0+[1-9]\d*", found):
        return None
    return score if 0 <= (score := float(found)) <= 1 else None


def judged_option(text: str) -> str | None:
    """The letter in a judge's text, which may be none of the options."""
    return _first(_OPTION, text)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> str | None:
    hits = (pattern.search(text) for pattern in patterns)
    return next((hit[1] for hit in hits if hit), None)
