"""Whether a free-form answer gives one of the accepted answers: names, numbers with units, dates, lists, yes or no.

It never guesses: None where the answer does not say (nothing there, two candidates at once). In a long answer the
conclusion counts: a box, what follows the last "the answer is", else, for numbers, the only number there is.
"""

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from assay.text.boxed import last_box
from assay.text.choices import find_choice
from assay.text.dates import Date, find_dates, whole_date
from assay.text.normalise import squad
from assay.text.numbers import find_numbers
from assay.text.reasoning import without_reasoning
from assay.text.units import unit_after

_MARKDOWN = re.compile(r"[*_`~]{1,3}|^\s*(?:>|#{1,6}(?= ))\s*", re.M)
_CUE = re.compile(
    r"####|\b(?:final |correct |short |right )?(?:answer|result|conclusion)\b\s*(?:is|are|was|were|would be|=|:)\s*:?"
    r"|\b(?:therefore|thus|hence|in conclusion|so)\b,?[^.\n=]{0,120}?(?:\bis\b|\bare\b|\bwas\b|\bwere\b|=)",
    re.I,
)
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_VERDICT = re.compile(r"\b(yes|no|true|false)\b", re.I)
_NEGATION = re.compile(r"\b(?:not|isnt|wasnt|arent|never|nor|neither|rather than|instead of)(?: (?!but\b)\w+){0,2} ?$")
_TITLES = ("sir ", "dr ", "mr ", "mrs ", "ms ", "president ", "saint ", "st ", "king ", "queen ", "prof ", "professor ")
_SPLIT = re.compile(r"\s*(?:,|;|\band\b|&|\n)\s*")
_LETTER = re.compile(r"\(?([A-Z])\)?")
_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS)}
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b(?!-)", re.I)
_SHORT = 300  # letters: a short answer is all conclusion
_LONGEST = 20_000  # letters at each end of a huge answer that are looked at


class _Target(NamedTuple):
    """One accepted answer, made ready: what kind it is, and its parts."""

    text: str
    number: Fraction | None
    unit: str
    date: Date | None
    verdict: bool | None
    parts: tuple[str, ...]
    letter: str


def holds_answer(text: str, accepted: Sequence[str]) -> bool | None:
    """True or False, or None if the answer cannot be read."""
    answer = _plain(text)
    if not answer or not any(map(str.isalnum, answer)):
        return None
    conclusion = _conclusion(answer)
    verdicts = [_holds(answer, conclusion, target) for target in _targets(tuple(accepted))]
    if True in verdicts:
        return True
    return None if None in verdicts and False not in verdicts else False


def _plain(text: str) -> str:
    answer = without_reasoning(text).strip()
    if len(answer) > 2 * _LONGEST:
        answer = f"{answer[:_LONGEST]}\n{answer[-_LONGEST:]}"
    return _MARKDOWN.sub("", answer).strip()


def _conclusion(answer: str) -> str:
    """The part that gives the answer, where the answer says which; otherwise all of it."""
    box = last_box(answer)
    if box is not None:
        return box
    cues = list(_CUE.finditer(answer))
    if cues:
        after = answer[cues[-1].end() :].strip(" :*\n")
        if any(map(str.isalnum, after)):
            return after.split("\n", 1)[0]
    return answer


@lru_cache(4096)
def _targets(accepted: tuple[str, ...]) -> list[_Target]:
    return [_target(text) for text in dict.fromkeys(map(str, accepted))]


def _target(text: str) -> _Target:
    plain = _folded(text)
    date = whole_date(text)
    numbers = [] if date is not None else find_numbers(_with_digits(text))
    number, unit = None, ""
    if len(numbers) == 1 and len(plain.split()) <= 3:
        unit, rest = unit_after(_with_digits(text), numbers[0].start)
        number = numbers[0].value if not rest else None
    parts = tuple(folded for part in _SPLIT.split(text) if (folded := _folded(part)))
    letter = _LETTER.fullmatch(text.strip())
    return _Target(
        plain,
        number,
        unit,
        date,
        _YES_NO.get(plain),
        parts if len(parts) > 1 else (),
        letter[1] if letter else "",
    )


def _holds(answer: str, conclusion: str, target: _Target) -> bool | None:
    if target.letter:
        found = find_choice(answer, [chr(code) for code in range(ord("A"), ord(max(target.letter, "D")) + 1)])
        return None if found is None else found == target.letter
    if target.verdict is not None:
        found = _verdict(answer, conclusion)
        return None if found is None else found == target.verdict
    if target.date is not None:
        return any(target.date.is_part_of(date) for date in find_dates(conclusion))
    if target.number is not None:
        return _number(conclusion, target)
    where = f" {_folded(conclusion)} "
    stated = _stated(where, target.text)
    if stated is not False:
        return stated
    return bool(target.parts) and all(_stated(where, part) for part in target.parts)


def _verdict(answer: str, conclusion: str) -> bool | None:
    """The yes or no that an answer begins or ends with, or the only one that it holds."""
    for text in (conclusion, answer):
        found = _VERDICT.match(text.lstrip(" \"'([{"))
        if found:
            return _YES_NO[found[1].lower()]
    last = answer.rstrip(" .!\"')]}").rpartition("\n")[2]
    if _VERDICT.fullmatch(last.strip()):
        return _YES_NO[last.strip().lower()]
    said = {_YES_NO[word.lower()] for word in _VERDICT.findall(conclusion)}
    return said.pop() if len(said) == 1 and len(conclusion) <= _SHORT else None


def _number(conclusion: str, target: _Target) -> bool | None:
    text = _with_digits(conclusion)
    numbers = find_numbers(text)
    if not numbers:
        return False
    if len({number.value for number in numbers}) > 1:
        sentence = re.split(r"(?<=[a-z0-9)])[.!?](?:\s|$)", text.strip(), maxsplit=1)[0]
        first = find_numbers(sentence.rpartition("=")[2]) or find_numbers(sentence)
        if len({number.value for number in first}) == 1:
            text, numbers = sentence, find_numbers(sentence)[-1:]
        else:
            dates = find_dates(conclusion)
            if dates and len(dates) == 1 and dates[0].year is not None:
                return target.number == dates[0].year
            return None
    number = numbers[-1]
    unit, _ = unit_after(text, number.start)
    if target.unit and unit and unit != target.unit:
        return False
    return target.number in number.readings()


def _stated(where: str, phrase: str) -> bool | None:
    """Whether a phrase stands in a text as whole words and is not denied; None if it is one of two candidates."""
    wanted = f" {phrase} "
    at = where.find(wanted) if phrase else -1
    found: bool | None = False
    while at >= 0:
        before, after = where[:at], where[at + len(wanted) :]
        if not _NEGATION.search(before[-40:]):
            if after.startswith("or ") or before.endswith(" or"):
                found = None
            else:
                return True
        at = where.find(wanted, at + 1)
    return found


def _folded(text: str) -> str:
    """Lower case without accents, punctuation, articles and titles."""
    if not text.isascii():
        text = "".join(mark for mark in unicodedata.normalize("NFKD", text) if not unicodedata.combining(mark))
    plain = squad(text.replace("-", " ").replace("/", " ")) or text.strip().lower()
    for title in _TITLES:
        if plain.startswith(title) and len(plain.split()) > 2:
            return plain[len(title) :]
    return plain


def _with_digits(text: str) -> str:
    """Number words up to twenty as digits."""
    return _NUMBER_WORD.sub(lambda word: _DIGITS[word[1].lower()], text)
