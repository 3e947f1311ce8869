"""Whether a free-form answer gives one of the accepted answers: names, numbers with units, dates, lists, yes or no.

It never guesses: None where the answer does not say (nothing there, a refusal, two candidates at once). In a long
answer the conclusion counts (`conclusion.py`), not every word on the way to it.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from assay.formats.mixeval.freeform.conclusion import (
    SHORT,
    Conclusion,
    conclude,
    first_sentence,
    last_line,
)
from assay.formats.mixeval.freeform.dates import Date, find_dates, has_two_readings, whole_date
from assay.formats.mixeval.freeform.phrases import folded, states, without_title
from assay.formats.mixeval.freeform.quantities import Found, Quantity, find_quantity, whole_quantity
from assay.text.choices import find_choice
from assay.text.normalise import basic

_OPPOSITES = (("yes", "no"), ("true", "false"), ("valid", "invalid"), ("plausible", "implausible"))
_VERDICTS = {word: side == 0 for pair in _OPPOSITES for side, word in enumerate(pair)}
_WORDS_OF = {word: pair for pair in _OPPOSITES for word in pair}
_YES_NO = ("yes", "no", "true", "false")
_UNDECIDED = re.compile(r"(?:yes|true) (?:and|or) (?:no|false)\b")
_DETERMINER = re.compile(
    r"no (?!(?:it|he|she|they|there|this|that|these|because|since|not|i|we|you|his|her|their|in)\b)\w"
)
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
_QUALIFIED = re.compile(r"\s*\([^()]*\)\s*")
_SPLIT = re.compile(r"\s*(?:,(?!\d)|[;\n])\s*(?:and\s+)?")
_PAIR = re.compile(r"\s+(?:and|&)\s+", re.I)
_CHOICE = re.compile(r"\(([A-Z])\)|([A-J])")
_FORMULA = re.compile(
    r"[\\^=<>{}|√π∞]|^[(\[](?!.*[a-zA-Z]{3}).*,.*[)\]]$|^[(\[]?-?\w{1,3}\s?[-+*]\s?\w{1,3}[)\]]?$"
)
_DROPPED = re.compile(r"\\(?:left|right|displaystyle|text|mathrm|[,;:! ])|[\s$]")
_BRACED = re.compile(r"\{(\w)\}")
_LONGEST = 5_000  # letters of an accepted answer
_SORTED = 4  # members of a list in alphabetical order: fewer may be in order by chance


class _Target(NamedTuple):
    """One accepted answer, made ready: its phrases, any of which may be stated, and whatever else it is."""

    exact: str
    phrases: tuple[str, ...]
    members: tuple[str, ...]
    quantity: Quantity | None
    date: Date | None
    verdict: str
    letter: str
    formula: str
    symbols: str


class _Answer:
    """An answer and what is made of it, when it is first needed."""

    def __init__(self, text: str, conclusion: Conclusion, question: str) -> None:
        self.text = text
        self.question = question
        self.conclusion = conclusion
        self.places = conclusion.places()
        owned = [_POSSESSIVE.sub("", place) for place in self.places if _POSSESSIVE.search(place)]
        self.folded = " " + " | ".join(map(folded, (*self.places, *owned))) + " "
        self._more = not conclusion.said and self.places[0] != conclusion.whole
        self._lower = conclusion.whole.lower() if self._more else ""
        self._whole = ""
        self._quantities: dict[tuple[str, bool], Found] = {}

    def states(self, phrase: str) -> bool | None:
        """None also where a long answer mentions it only on the way."""
        found = states(self.folded, phrase)
        return None if found is False and self._more and self._mentions(phrase) else found

    def _mentions(self, phrase: str) -> bool:
        first = phrase.partition(" ")[0]
        if first.isalpha() and first not in self._lower and self._lower.isascii():
            return False
        self._whole = self._whole or f" {folded(self.conclusion.whole)} "
        return bool(states(self._whole, phrase))

    def says(self, wanted: Quantity) -> bool | None:
        kind = wanted.kind()
        if kind not in self._quantities:
            self._quantities[kind] = find_quantity(self.conclusion, *kind, self.question)
        found = self._quantities[kind]
        return None if found == "several" else found != "none" and wanted.equals(found)


def holds_answer(text: str, accepted: Sequence[str], question: str = "") -> bool | None:
    """True or False, or None if the answer cannot be read. A number of the question that an answer repeats is not its
    answer, and the number of what the question counts is. ValueError for an accepted answer that is too long."""
    longest = max(map(len, map(str, accepted)), default=0)
    if longest > _LONGEST:
        raise ValueError(
            f"an accepted answer of {longest:,} letters is too long: {_LONGEST:,} can be looked for"
        )
    targets = _targets(tuple(accepted))
    exact = basic(text) if len(text) < SHORT else ""
    if any(
        (exact and exact == target.exact) or (target.symbols and _ends_with(text, target.symbols))
        for target in targets
    ):
        return True
    conclusion = conclude(text)
    if conclusion is None:
        return None
    answer = _Answer(text, conclusion, question)
    found: bool | None = False
    for target in targets:
        verdict = _holds(answer, target)
        if verdict:
            return True
        if verdict is None:
            found = None
    return found


# ---- accepted answers


@lru_cache(4096)
def _targets(accepted: tuple[str, ...]) -> list[_Target]:
    return [_target(text) for text in dict.fromkeys(map(str, accepted))]


def _target(text: str) -> _Target:
    plain = folded(text)
    phrases = _phrases(text, plain)
    verdict = plain if plain in _VERDICTS else ""
    choice = _CHOICE.fullmatch(text.strip())
    digits = any(map(str.isdigit, text))
    return _Target(
        exact=basic(text),
        phrases=phrases,
        members=_members(text),
        quantity=whole_quantity(text) if digits or len(text) < 40 else None,
        date=whole_date(text) if digits else None,
        verdict=verdict,
        letter=(choice[1] or choice[2]) if choice else "",
        formula=_formula(text) if _FORMULA.search(text.strip()) and phrases else "",
        symbols="" if phrases else "".join(text.split()),
    )


def _phrases(text: str, plain: str) -> tuple[str, ...]:
    """The text itself; "Mercury" for "Mercury (planet)"; "Bonnie and Clyde" the other way round."""
    found = [plain, without_title(plain)]
    if "(" in text:
        found.append(folded(_QUALIFIED.sub(" ", text)))
    pair = [folded(part) for part in _PAIR.split(text)]
    if len(pair) == 2 and "," not in text:
        found.append(f"{pair[1]} {pair[0]}")
    return tuple(phrase for phrase in dict.fromkeys(found) if any(map(str.isalnum, phrase)))


def _members(text: str) -> tuple[str, ...]:
    """The members of a list, or nothing if it is none or could be a sorted one, which is a phrase."""
    parts = _SPLIT.split(text)
    parts[-1:] = _PAIR.split(parts[-1]) if len(parts) > 1 else parts
    members = [member for part in parts if (member := folded(part))]
    if len(members) < 2 or (
        len(members) >= _SORTED and members in (sorted(members), sorted(members, reverse=True))
    ):
        return ()
    return tuple(members)


def _formula(text: str) -> str:
    plain = text.replace("dfrac", "frac").replace("tfrac", "frac")
    return _BRACED.sub(r"\1", _DROPPED.sub("", plain)).strip(".").lower()


# ---- what an answer says


def _ends_with(text: str, symbols: str) -> bool:
    """Brackets to be closed and the like: the last signs of the answer, and no more of them."""
    signs = "".join(sign for sign in text if not sign.isspace() and sign not in "*`.$\"'")
    return signs.endswith(symbols) and (
        len(signs) == len(symbols) or signs[-len(symbols) - 1] not in "()[]{}<>"
    )


def _holds(answer: _Answer, target: _Target) -> bool | None:
    if target.letter:
        return _chooses(answer, target.letter)
    if target.verdict:
        found = _verdict(answer, target.verdict)
        return None if found is None else found == _VERDICTS[target.verdict]
    if target.date is not None:
        return _says_date(answer.conclusion, target.date)
    if target.formula:
        return _says_formula(answer.conclusion, target.formula) or (
            target.quantity is not None and answer.says(target.quantity)
        )
    found = _says_phrase(answer, target)
    if found is False and target.quantity is not None:
        return answer.says(target.quantity)
    return found


def _says_phrase(answer: _Answer, target: _Target) -> bool | None:
    if target.quantity is not None and (target.quantity.unit or " " not in target.exact):
        return False  # a number is not a phrase: 3 is not in "3 or 4", 5 km not in "-5 km"; but "50 Cent" is one
    found: bool | None = False
    for phrase in target.phrases:
        stated = answer.states(phrase)
        if stated:
            return True
        found = None if stated is None else found
    if target.members and found is False:
        after = f" {folded(answer.conclusion.after)} " if answer.conclusion.said else answer.folded
        return all(states(after, member) for member in target.members)
    return found


def _chooses(answer: _Answer, letter: str) -> bool | None:
    labels = [chr(code) for code in range(ord("A"), ord(max(letter, "F")) + 1)]
    found = find_choice(answer.text, labels)
    return None if found is None else found == letter


def _verdict(answer: _Answer, wanted: str) -> bool | None:
    """The yes or no of an answer: what is announced, else what it begins with and concludes, if they agree."""
    words = _YES_NO if wanted in _YES_NO else _WORDS_OF[wanted]
    if answer.conclusion.said:
        return _only(answer.conclusion.said, words)
    begins = _begins(answer.conclusion.whole, words)
    concluded = [
        _only(place, words)
        for place in (last_line(answer.conclusion.whole), *reversed(answer.places))
    ]
    said = next((side for side in concluded if side is not None), None)
    return said if begins is None else begins if said in (None, begins) else None


def _begins(text: str, words: Sequence[str]) -> bool | None:
    plain = text.lstrip(" \"'([{“").lower()
    for word in words:
        if plain.startswith(word) and not plain[len(word) : len(word) + 1].isalnum():
            return None if _DETERMINER.match(plain) or _UNDECIDED.match(plain) else _VERDICTS[word]
    return None


def _only(text: str, words: Sequence[str]) -> bool | None:
    """The only side that a text takes; "not valid" is the other side of "valid"."""
    begins = _begins(text, words)
    if begins is not None:
        return begins
    plain = f" {folded(text)} "
    sides = {
        _VERDICTS[word] if states(plain, word) else not _VERDICTS[word]
        for word in words
        if f" {word} " in plain
        and (word != "no" or plain.endswith(" no "))
        and states(plain, word) is not None
    }
    return sides.pop() if len(sides) == 1 else None


def _says_date(answer: Conclusion, wanted: Date) -> bool | None:
    dates = set(find_dates(answer.said) or find_dates(answer.whole))
    right = {date for date in dates if wanted.is_part_of(date)}
    if not dates and has_two_readings(answer.whole):
        return None
    if right and right != dates:
        first = set(find_dates(first_sentence(answer.whole)))
        return bool(first & right) if len(first) == 1 else None
    return bool(right)


def _says_formula(answer: Conclusion, wanted: str) -> bool:
    made = [_formula(text) for text in (answer.said, answer.after, last_line(answer.whole))]
    return any(wanted in (one, one.rpartition("=")[2]) for one in made)
