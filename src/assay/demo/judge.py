"""How the embedded solver judges: it reads the tags of a judge's prompt, knows the truth where the prompt shows it or
can be worked out, and answers it with the chance `skill`, so that its sensitivity and specificity are known.

Where it cannot know the truth it guesses, and says so.
"""

import re
from hashlib import blake2b

import msgspec

from assay.demo.questions import parse
from assay.text.choices import find_choice
from assay.text.fences import fenced_in, mark_in, without_fenced
from assay.text.normalise import squad
from assay.text.numbers import answer_number, whole_number

_RANGE = re.compile(r"(whole )?number from (-?\d+(?:\.\d+)?) to (-?\d+(?:\.\d+)?)")
_OPTION = re.compile(r"^([A-Z])\. (.*)$", re.M)
_FINE = 4  # grades above the lowest from which on a scale has room for shades


def judge(prompt: str, *, skill: float, seed: int) -> str | None:
    """The answer to a judge's prompt, or None where it is none."""
    texts = fenced_in(prompt)
    rest = without_fenced(prompt, mark_in(prompt))
    content = "\0".join([*texts.values(), rest]).encode("utf-8", "surrogatepass")
    bits = blake2b(content, digest_size=16, key=(b"%d" % seed)[:64]).digest()
    honest = int.from_bytes(bits[:8], "big") / 2**64 < skill
    if "first" in texts and "second" in texts:
        return _compare(texts, honest, bits[8])
    if "answer" not in texts:
        return None
    if "options" in texts:
        return _choose(texts["options"], texts["answer"], honest, bits[8])
    right = is_right(texts, texts["answer"])
    if right is None:
        return _verdict_json(
            "I cannot tell whether this is so; this is a guess.",
            _verdict(rest, bool(bits[8] % 2), bits[9]),
        )
    reason = "It is what I find, too." if right is honest else "It is not what I find."
    return _verdict_json(reason, _verdict(rest, right is honest, bits[9]))


def is_right(texts: dict[str, str], answer: str) -> bool | None:
    """Return whether an answer agrees with a reference, else with the answer that the question has; None if unknown."""
    if "reference" in texts:
        return any(
            _agrees(answer, line) for line in texts["reference"].splitlines() if line.strip()
        )
    question = parse(texts["question"]) if "question" in texts else None
    return None if question is None else _agrees(answer, question.answer)


def _agrees(answer: str, reference: str) -> bool:
    number = whole_number(reference)
    if number is not None and squad(reference).replace(" ", "").isdigit():
        given = answer_number(answer)
        return given is not None and given.value == number.value
    return f" {squad(reference)} " in f" {squad(answer)} "


def _verdict(prompt: str, good: bool, shade: int) -> str | int | float:
    """In the words or numbers that the prompt asks for last."""
    ranges = list(_RANGE.finditer(prompt))
    if ranges:
        low, high = float(ranges[-1][2]), float(ranges[-1][3])
        shades = shade % 2 if ranges[-1][1] and high - low >= _FINE else 0
        grade = high - shades if good else low + shades
        return int(grade) if grade.is_integer() else grade
    if '"incorrect"' in prompt:
        return "correct" if good else "incorrect"
    return "yes" if good else "no"


def _compare(texts: dict[str, str], honest: bool, guess: int) -> str:
    first, second = is_right(texts, texts["first"]), is_right(texts, texts["second"])
    if first is None or second is None:
        same = squad(texts["first"]) == squad(texts["second"])
        verdict = "tie" if same else ("first", "second")[guess % 2]
        return _verdict_json("I cannot tell which is better; this is a guess.", verdict)
    better = "first" if first else "second"
    if first == second:
        better = "tie"
    if not honest:
        better = "second" if better == "first" else "first"
    return _verdict_json("I compared both with what I find.", better)


def _choose(options: str, answer: str, honest: bool, guess: int) -> str:
    """Say which of the lettered options an answer chose."""
    known = {found[1]: found[2] for found in _OPTION.finditer(options)}
    letter = find_choice(answer, list(known), known)
    if not honest:
        letter = list(known)[guess % len(known)] if known else None
    return f"This is the option that the answer settles on. [[{letter or 'none'}]]"


def _verdict_json(reason: str, verdict: str | float) -> str:
    return msgspec.json.encode({"reason": reason, "verdict": verdict}).decode()
