"""Questions that can be answered exactly from their own text, and what a near miss would look like.

`parse` reads the last question of a prompt (few-shot examples and chat templates come before it). What it
cannot read it leaves alone: a wrong reading would look like a wrong answer.
"""

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from assay.demo import arithmetic

_TABLE = (Path(__file__).parent.parent / "data" / "capitals.txt").read_text("utf-8")
CAPITALS: dict[str, str] = dict(line.split("=") for line in _TABLE.splitlines())
_COUNTRIES = {capital.lower(): country for country, capital in CAPITALS.items()}
_LONGEST = 1000  # the patterns below may take time quadratic in the length of a line
_QUESTION_END = re.compile(r"(?<=\?)\s+")
_NUMBERS = re.compile(r"-?\d+(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?")
_CUE = re.compile(
    r"\?|=|:|\b(what|calculate|compute|evaluate|solve|how much|find|work out|add|subtract|multiply|divide)",
    re.I,
)
_ONLY_EXPRESSION = re.compile(r"^\W*[\d\s.,()+*/^%×÷−x-]+$")
_OPTION = re.compile(r"(?:^|[\s(])\(?([A-H])[).:]\s+(?=\S)")
_COMPARISON = re.compile(
    r"\b(?:(larger|largest|bigger|biggest|greater|greatest|higher|highest|maximum)"
    r"|smaller|smallest|less|least|lower|lowest|minimum)\b"
)
_LETTER = re.compile(r"\bletters? [\"'`]?([a-z])[\"'`]?\b|\b([a-z])'s\b|[\"'`]([a-z])[\"'`]", re.I)


class DemoQuestion(NamedTuple):
    """An answerable question: its own text, the right answer, plausible wrong ones, and 0 (easy) upwards."""

    text: str
    answer: str
    wrong: tuple[str, ...]
    difficulty: float
    working: str = ""


@lru_cache(maxsize=512)
def parse(prompt: str) -> DemoQuestion | None:
    """The last question of the prompt, or None where it is not one that can be read."""
    stem, options = _choices(prompt)
    for line in reversed(stem.splitlines()):
        for segment in reversed(_QUESTION_END.split(line)):
            question = _choose(segment, options) if options else _question_in(segment)
            if question is not None:
                return question
            if "?" in segment or segment.lstrip()[:2].lower() in ("q:", "qu"):
                return None
    return None


def _question_in(segment: str) -> DemoQuestion | None:
    if len(segment) > _LONGEST:
        return None
    low = segment.lower()
    for keyword, rule in _RULES:
        if keyword in low and (question := rule(segment, low)) is not None:
            return question
    return _arithmetic(segment)


def _arithmetic(segment: str) -> DemoQuestion | None:
    if not _CUE.search(segment) and not _ONLY_EXPRESSION.match(segment):
        return None
    result = arithmetic.evaluate(segment)
    if result is None:
        return None
    hardness = 0.2 * (result.steps - 1) + 0.18 * (result.digits - 1)
    shown = arithmetic.show(result.value)
    return DemoQuestion(
        segment, shown, near(result.value), hardness, f"{result.expression} = {shown}"
    )


def near(value: arithmetic.Number) -> tuple[str, ...]:
    """Numbers that someone who slipped once would give."""
    right = arithmetic.show(value)
    misses = [arithmetic.show(value + slip) for slip in (1, -1, 10, -10, 2)]
    if isinstance(value, int) and len(right) > 2 and right[-1] != right[-2]:
        misses.append(right[:-2] + right[-1] + right[-2])
    return tuple(miss for miss in misses if miss != right)


def _capital(segment: str, low: str) -> DemoQuestion | None:
    found = re.search(r"\bcapital (?:city )?of (?:the )?([a-z ]+?)\s*(?:[?.!,:;]|$)", low)
    if found and (capital := CAPITALS.get(found[1])):
        others = [name for name in CAPITALS.values() if name != capital]
        start = sum(capital.encode()) % len(others)
        return DemoQuestion(segment, capital, tuple((others * 2)[start : start + 5]), 0.3)
    found = re.search(r"\b([a-z ]+?) is the capital (?:city )?of (?:which|what) country", low)
    if found and (country := _COUNTRIES.get(found[1].split("which ")[-1])):
        others = [name.title() for name in CAPITALS if name != country]
        return DemoQuestion(segment, country.title(), tuple(others[:5]), 0.4)
    return None


def _compare(segment: str, low: str) -> DemoQuestion | None:
    """`Which is larger, 3 or 5?` and `Is 5 * 2 greater than 3?`"""
    word = _COMPARISON.search(low)
    if word is None:
        return None
    numbers = _NUMBERS.findall(segment)
    if re.match(r"\W*(?:q\w*\W+)?is\b", low) and "than" in low:
        left, right = _value(segment[: word.start()]), _value(segment[word.end() :])
        if left is None or right is None:
            return None
        is_so = left > right if word[1] else left < right
        return _yes_no(segment, is_so, 0.1 * max(map(len, numbers)))
    if len(numbers) < 2:
        return None
    values = [arithmetic.number(text) for text in numbers]
    answer = (max if word[1] else min)(range(len(values)), key=values.__getitem__)
    wrong = tuple(
        text for text, value in zip(numbers, values, strict=True) if value != values[answer]
    )
    return DemoQuestion(segment, numbers[answer], wrong, 0.1 * len(numbers)) if wrong else None


def _value(text: str) -> arithmetic.Number | None:
    """Return what a piece of text with one expression or one number in it comes to."""
    if result := arithmetic.evaluate(text):
        return result.value
    numbers = _NUMBERS.findall(text)
    return arithmetic.number(numbers[0]) if len(numbers) == 1 else None


def _yes_no(segment: str, yes: bool, difficulty: float) -> DemoQuestion:
    return DemoQuestion(segment, "Yes" if yes else "No", ("No" if yes else "Yes",), difficulty)


def _divisible(segment: str, low: str) -> DemoQuestion | None:
    found = re.search(
        r"\b(?:is|are)\s+(\d[\d,]*)\s+(?:evenly )?(divisible by|a multiple of)\s+(\d[\d,]*)", low
    )
    if found is None or (by := int(found[3].replace(",", ""))) == 0:
        return None
    value = int(found[1].replace(",", ""))
    return _yes_no(segment, value % by == 0, 0.12 * (len(found[1]) + len(found[3]) - 2))


def _kind_of_number(segment: str, low: str) -> DemoQuestion | None:
    found = re.search(r"\bis (\d{1,9}) (?:an? )?(even|odd|prime)\b", low)
    if found is None:
        return None
    value, kind = int(found[1]), found[2]
    if kind == "prime":
        yes = value > 1 and all(value % divisor for divisor in range(2, int(value**0.5) + 1))
    else:
        yes = value % 2 == (kind == "odd")
    return _yes_no(segment, yes, 0.12 * len(found[1]) if kind == "prime" else 0.0)


def _list_in(segment: str) -> list[str]:
    """The words or numbers of a list: after the colon, else those in quotes."""
    _, colon, tail = segment.partition(":")
    if not colon or not tail.strip():
        tail = ", ".join(re.findall(r"[\"'`]([^\"'`]+)[\"'`]", segment))
    tail = tail.strip().rstrip("?.!").strip("[]")
    parts = (
        re.split(r"\s*[,;]\s*(?:and\s+)?|\s+and\s+", tail)
        if re.search(r"[,;]| and ", tail)
        else tail.split()
    )
    return [part.strip("\"'` ") for part in parts if part.strip("\"'` ")]


def _sort(segment: str, low: str) -> DemoQuestion | None:
    words = _list_in(re.sub(r"^\W*(q|question|problem)\s*:", "", segment, flags=re.I))
    if len(words) < 2 and "number" in low:
        words = _NUMBERS.findall(segment)
    if len(words) < 2:
        return None
    if all(_NUMBERS.fullmatch(word) for word in words):
        ordered = sorted(words, key=arithmetic.number)
    else:
        ordered = sorted(words, key=str.lower)
    if re.search(r"descending|largest to smallest|highest to lowest|z to a|reverse", low):
        ordered.reverse()
    return DemoQuestion(segment, ", ".join(ordered), _swaps(ordered, ", "), 0.12 * len(words))


def _reverse(segment: str, low: str) -> DemoQuestion | None:
    if (
        re.search(r"\b(words|list|order|numbers|items)\b", low)
        and len(words := _list_in(segment)) > 1
    ):
        return DemoQuestion(
            segment, ", ".join(words[::-1]), _swaps(words[::-1], ", "), 0.1 * len(words)
        )
    found = re.search(
        r"(?:word|string|reverse|spell|of|letters)[: ]+[\"'`]([^\"'`]+)[\"'`]|"
        r"(?:word|string|spell|reverse|of)[: ]+([a-z0-9]+)\s*(?:backwards?|[?.!]|$)",
        segment,
        re.I,
    )
    word = (found[1] or found[2]) if found else ""
    if len(word) < 2:
        return None
    return DemoQuestion(segment, word[::-1], _swaps(list(word[::-1]), ""), 0.08 * len(word))


def _swaps(parts: list[str], joint: str) -> tuple[str, ...]:
    """The same parts with one neighbouring pair in the wrong order; something is always wrong."""
    right = joint.join(parts)
    texts: list[str] = []
    for place in range(len(parts) - 1):
        swapped = [*parts[:place], parts[place + 1], parts[place], *parts[place + 2 :]]
        texts.append(joint.join(swapped))
    return tuple(text for text in texts if text != right) or (right + joint + parts[-1],)


def _count(segment: str, low: str) -> DemoQuestion | None:
    quoted = re.search(
        r"\b(?:in|does|of)\b (?:the )?(?:word |string )?[\"'`]([^\"'`]{2,})[\"'`]", segment
    )
    bare = re.search(r"\b(?:in|of) (?:the )?(?:word |string )?([a-z]+)(?: contain)?\W*$", low)
    other = re.search(
        r"\bdoes (?:the )?(?:word |string )?[\"'`]?([a-z]{2,})[\"'`]? (?:have|contain)", low
    )
    found = quoted or bare or other
    if found is None:
        return None
    subject = found[1].lower()
    if "vowel" in low:
        count = sum(letter in "aeiou" for letter in subject)
    elif "word" in low.split("how many", 1)[1][:7]:
        count = len(subject.split())
    elif letter := _LETTER.search(low):
        count = subject.count(letter[1] or letter[2] or letter[3])
    elif re.search("letter|character", low):
        count = len(subject.replace(" ", "")) if "letter" in low else len(subject)
    else:
        return None
    return DemoQuestion(
        segment,
        str(count),
        (str(count + 1), str(abs(count - 1)), str(count + 2)),
        0.06 * len(subject),
    )


def _story(segment: str, low: str) -> DemoQuestion | None:
    """`Start with 5, add 3, then double it` and `Ann has 5 pens and buys 3 more. How many …`"""
    steps = [(verb, literal) for verb, literal in _STEP.findall(low) if literal or verb == "double"]
    if len(steps) < 2 or sum(bool(literal) for _, literal in steps) != len(_NUMBERS.findall(low)):
        return None
    total: arithmetic.Number = 0
    for verb, literal in steps:
        value = arithmetic.number(literal) if literal else 2
        change = _CHANGES[next(stem for stem in _CHANGES if verb.startswith(stem))]
        total = change(total, value)
    return DemoQuestion(segment, arithmetic.show(total), near(total), 0.25 * (len(steps) - 1))


_CHANGES: dict[str, Callable[[Any, Any], arithmetic.Number]] = {
    **dict.fromkeys(("start", "has", "have", "had"), operator.add),
    **dict.fromkeys(("add", "buy", "find", "get", "receive", "pick", "win"), operator.add),
    **dict.fromkeys(("subtract", "give", "lose", "eat", "sell", "take away"), operator.sub),
    **dict.fromkeys(("multiply", "double"), operator.mul),
}
_STEP = re.compile(
    r"\b(start\w* (?:with|from|at)|ha[sd]|have|add|buys?|finds?|gets?|receives?|picks?|wins?|subtract"
    r"|gives?|loses?|eats?|sells?|take away|multiply (?:it |that |the result )?by|double)\b"
    r"(?: away| up| her| him| them)? ?(\d+)?"
)
_Rule = Callable[[str, str], "DemoQuestion | None"]
_RULES: tuple[tuple[str, _Rule], ...] = (
    ("capital", _capital),
    ("divisible", _divisible),
    ("multiple of", _divisible),
    (" even", _kind_of_number),
    (" odd", _kind_of_number),
    (" prime", _kind_of_number),
    ("sort", _sort),
    ("alphabetical", _sort),
    ("revers", _reverse),
    ("backward", _reverse),
    ("order", _sort),
    *(
        (word, _compare)
        for word in ("larg", "bigg", "great", "high", "small", "less", "least", "lowe", "imum")
    ),
    ("start", _story),
    ("how many", _story),
    ("how many", _count),
)


def _choices(prompt: str) -> tuple[str, list[tuple[str, str]]]:
    """The text before a closing list `A) … B) …`, and that list; no list where letters do not follow on."""
    if "B" not in prompt:
        return prompt, []
    marks = list(_OPTION.finditer(prompt))
    start = next((at for at in range(len(marks) - 1, -1, -1) if marks[at][1] == "A"), None)
    if start is None:
        return prompt, []
    run = [mark for place, mark in enumerate(marks[start:]) if mark[1] == chr(65 + place)]
    if len(run) < 2:
        return prompt, []
    ends = [*(mark.start() for mark in run[1:]), len(prompt)]
    texts = [
        prompt[mark.end() : end].strip().split("\n")[0].strip()
        for mark, end in zip(run, ends, strict=True)
    ]
    return prompt[: run[0].start()], [
        (mark[1], text) for mark, text in zip(run, texts, strict=True)
    ]


def _choose(segment: str, options: list[tuple[str, str]]) -> DemoQuestion | None:
    question = _question_in(segment) or _question_in(
        f"{segment} {', '.join(text for _, text in options)}"
    )
    if question is None:
        return None
    wanted = _plain(question.answer)
    right = [letter for letter, text in options if _plain(text) == wanted]
    if len(right) != 1:
        return None
    wrong = tuple(letter for letter, _ in options if letter != right[0])
    return DemoQuestion(segment, right[0], wrong, question.difficulty, question.working)


def _plain(text: str) -> str:
    text = text.strip().rstrip(".").lower()
    return arithmetic.show(arithmetic.number(text)) if _NUMBERS.fullmatch(text) else text
