"""Inspect's scorers: `hf_eval.` and `match`, `includes`, `pattern`, `answer`, `exact`, `f1` or `choice`.

What Inspect marks as wrong for want of an answer in the form that was asked for is `unparsed` here, which counts as
wrong by default: the numbers are the same, and one sees why.
"""

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from assay.formats.hf_eval.dataset import letter_of, letters_in
from assay.scorers._regex_child import search
from assay.sdk import Item, Response, Score, as_object, scorer
from assay.text.expected import accepted

Location = Literal["begin", "end", "any", "exact"]
_SECONDS = 2.0  # how long a pattern may take on an answer
_ENDS = string.whitespace + string.punctuation
_AROUND_NUMBERS = "!?:;()[]{}'\"`"
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_MARK = re.compile(r"ANSWER\s*:", re.IGNORECASE)
_AFTER = {  # what follows the mark
    "letter": re.compile(r"\s*([A-Za-z])(?:\W|$)"),
    "word": re.compile(r"\s*(\S+?)(?=[.,;:!?]?\s*(?:\n|$))"),
}
_SPACE = re.compile(r"\s*")


def _verdict(right: bool, taken: str | None = None) -> Score:
    return Score(
        passed=right, score=float(right), details={} if taken is None else {"parsed": taken}
    )


def _no_answer(why: str) -> Score:
    return Score(outcome="unparsed", error=why)


@scorer(name="hf_eval.includes", reads="ground_truth", version=1)
def includes(item: Item, response: Response, *, ignore_case: bool = True) -> Score:
    """The answer contains a target.

    Parameters:
    ignore_case: compare without case
    """
    texts = [response.response, *accepted(item.ground_truth)]
    answer, *targets = [text.casefold() for text in texts] if ignore_case else texts
    return _verdict(any(target in answer for target in targets))


@scorer(name="hf_eval.match", reads="ground_truth", version=1)
def match(
    item: Item,
    response: Response,
    *,
    location: Location = "end",
    ignore_case: bool = True,
    numeric: bool = False,
) -> Score:
    """The answer begins or ends with a target, has it somewhere, or is it, but for punctuation at both ends.

    Parameters:
    location: where the target must be
    ignore_case: compare without case
    numeric: a target that is a number is compared as one, with the first, the last or any number of the answer
    """
    answer = response.response.strip()
    texts = [answer, *(target.strip() for target in accepted(item.ground_truth))]
    answer, *targets = [text.casefold() for text in texts] if ignore_case else texts
    return _verdict(any(_matches(answer, target, location, numeric) for target in targets))


def _matches(answer: str, target: str, location: Location, numeric: bool) -> bool:
    target = _without_signs(target) if numeric else target
    if numeric and (wanted := _number(target)) is not None:
        answer = _without_signs(answer)
        if location == "exact":
            return _number(answer, "") == wanted
        numbers = [number for word in answer.split() if (number := _number(word)) is not None]
        chosen = {"begin": numbers[:1], "end": numbers[-1:], "any": numbers}[location]
        return wanted in chosen
    answer, target = answer.strip(_ENDS), target.strip(_ENDS)
    if location == "begin":
        return answer.startswith(target)
    if location == "end":
        return answer.endswith(target)
    return answer == target if location == "exact" else target in answer


def _without_signs(text: str) -> str:
    """Without signs of currencies, thousands and emphasis, and without points that are not decimal."""
    text = re.sub(r"\\([$,£€*_])", r"\1", text)
    return re.sub(r"\.(?=\s|$|\D)", "", re.sub(r"[$,£€*_]", "", text))


def _number(text: str, around: str = _AROUND_NUMBERS) -> str | None:
    """A number with five significant digits; None for what is not one."""
    text = text.strip(around) if around else text
    try:
        value = float(text.replace("\u2212", "-"))
    except ValueError:
        value = unicodedata.numeric(text, math.nan) if len(text) == 1 else math.nan
    return format(value, ".5g") if math.isfinite(value) else None


@scorer(name="hf_eval.pattern", reads="ground_truth", version=1)
def pattern(
    item: Item,
    response: Response,
    *,
    pattern: str,
    ignore_case: bool = True,
    match_all: bool = False,
) -> Score:
    """A group of a regular expression, or all that it matches, is a target.

    Parameters:
    pattern: the regular expression, of Python's `re`; it is looked for anywhere
    ignore_case: for the pattern and for the comparison
    match_all: every group must be a target
    """
    matched = search(_regex(pattern, ignore_case), response.response, False, _SECONDS)
    if matched is None:
        return _no_answer("the pattern was not found")
    groups = [group for group in (matched[1] or [matched[0]]) if isinstance(group, str)]
    targets = _in_one_case(accepted(item.ground_truth), ignore_case)
    hits = [group in targets for group in _in_one_case(groups, ignore_case)]
    return _verdict(
        bool(hits) and (all(hits) if match_all else any(hits)),
        groups[0] if len(groups) == 1 else None,
    )


@lru_cache(256)
def _regex(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"the pattern {pattern!r} is not a regular expression: {error}") from None


def _in_one_case(texts: Sequence[str], ignore_case: bool) -> list[str]:
    return [text.lower() for text in texts] if ignore_case else list(texts)


@scorer(name="hf_eval.answer", reads="ground_truth", version=1)
def answer(item: Item, response: Response, *, pattern: Literal["letter", "word", "line"]) -> Score:
    """The text behind `ANSWER:` is a target, whatever its case.

    Parameters:
    pattern: take a letter or a word behind the last mark, or the last line behind the first
    """
    text = response.response
    marks = [mark.end() for mark in _MARK.finditer(text)]
    taken = _last_line(text, marks) if pattern == "line" else None
    if pattern != "line" and marks and (match := _AFTER[pattern].match(text, marks[-1])):
        taken = match[1]
    if taken is None:
        return _no_answer(f"there is no {pattern} behind ANSWER:")
    return _verdict(taken.lower() in _in_one_case(accepted(item.ground_truth), True), taken)


def _last_line(text: str, marks: Sequence[int]) -> str | None:
    """Return what stands behind the first mark after which there is one line of text; in linear time."""
    end = len(text.rstrip())
    begin = text.rfind("\n", 0, end) + 1
    for mark in marks:
        place = _SPACE.match(text, mark).end()  # type: ignore[union-attr]
        if begin <= place < end:
            return text[place : end + len(text[end:].partition("\n")[0])]
    return None


@scorer(name="hf_eval.exact", reads="ground_truth", version=1)
def exact(item: Item, response: Response) -> Score:
    """The answer is a target, after both lost case, punctuation and articles; equal numbers are equal."""
    own = _words(response.response)
    return _verdict(
        any(words and words == own for words in map(_words, accepted(item.ground_truth)))
    )


@scorer(name="hf_eval.f1", reads="ground_truth", version=1)
def f1(item: Item, response: Response, *, stop_words: list[str] | None = None) -> Score:
    """The F1 of the words that the answer shares with a target, the best of all targets, to two decimals.

    Parameters:
    stop_words: words that do not count
    """
    ignored = {_plain(word) for word in stop_words or ()}
    own = Counter(_words(response.response, ignored))
    score = max(
        (
            _f1(own, Counter(words))
            for target in accepted(item.ground_truth)
            if (words := _words(target, ignored))
        ),
        default=0,
    )
    return Score(passed=score == 1, score=round(float(score), 2))


def _f1(own: Counter[str], target: Counter[str]) -> float:
    shared = (own & target).total()
    precision, recall = shared / own.total() if own else 1.0, shared / target.total()
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _words(text: str, ignored: set[str] | None = None) -> list[str]:
    """The words of a text as they are compared."""
    found = re.split(" |-", text)
    plain = {word: _plain(word) for word in set(found)}
    words = [plain[word] for word in found]
    return " ".join(word for word in words if word.strip() and word not in (ignored or ())).split()


def _plain(word: str) -> str:
    word = word.casefold()
    for number in (word, word.strip(_ENDS)):
        if _finite(number):
            return str(float(number))
    word = word.translate(str.maketrans("", "", string.punctuation))
    word = str(float(word)) if _finite(word) else word
    return " ".join(_ARTICLE.sub(" ", word).split())


def _finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@scorer(name="hf_eval.choice", reads="ground_truth", version=1)
def choice(item: Item, response: Response, *, multiple: bool = False) -> Score:
    """The letters behind the last `ANSWER:` are those of the right choices.

    Parameters:
    multiple: several choices may be right
    """
    data = as_object(item.data)
    letters = [letter_of(number) for number in range(len(data.get("choices") or ()))]
    right = set(letters_in(accepted(item.ground_truth)))
    if not right <= set(letters):
        raise ValueError(
            f"the target {', '.join(sorted(right))} is not among the {len(letters)} choices"
        )
    chosen = _letters_chosen(response.response, set(letters), multiple)
    if not chosen:
        return _no_answer("there is no choice behind ANSWER:")
    return Score(
        passed=chosen == right,
        score=float(chosen == right),
        details={"choice": ", ".join(sorted(chosen))},
    )


def _letters_chosen(text: str, allowed: set[str], multiple: bool) -> set[str]:
    for mark in (r"\$", r"\*\*"):  # formulas and emphasis around the letters
        text = re.sub(rf"{mark}\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*{mark}", r"\1", text)
    text = re.sub(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))", r"\1\2\3", text)
    lines = re.findall(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", text)
    lines = lines or re.findall(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:\W|$)", text)
    if not lines:
        return set()
    taken = lines[-1].strip().upper()
    if not multiple:
        tokens = [token for token in taken.split(",") if token]
        return set(tokens) if len(tokens) == 1 and tokens[0] in allowed else set()
    taken = taken.replace(" AND ", ",").replace(" ", "")
    for tokens in ({token for token in taken.split(",") if token}, set(taken)):
        if tokens <= allowed:
            return tokens
    return set()
