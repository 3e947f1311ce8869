"""Every registered scorer on texts that are made to cost time, with a bound of CPU; `make fuzz` has many more."""

import asyncio
import random
import time
from typing import Any

import pytest

from assay.engine.evaluate.bind import BoundScorer
from assay.scorers._regex_child import search
from assay.scorers.edit_similarity import ratio
from assay.scorers.json_match import _schema_problems
from assay.text.error_rate import distance
from fuzz import scorers as attacks

LETTERS = 50_000
UNITS = (
    "`",
    "```json\n",
    "[",
    '{"a":',
    "\\",
    '"',
    "1,",
    "½",
    " ",
    "\n",
    "a",
    "alli",
    "A\n",
    "The answer is ",
    "\\boxed{",
)
NEED_A_MODEL = {"bertscore", "embedding_similarity", "ragicamp.bertscore", "ragicamp.bleurt"}
left_out: list[str] = []
BOUND: dict[str, BoundScorer] = {}
for each in attacks.scorers(left_out):
    BOUND.setdefault(each.name, each)


def test_every_scorer_is_here() -> None:
    """What is left out says itself what it needs."""
    names = {problem.partition(" ")[0] for problem in left_out}
    assert names - BOUND.keys() <= NEED_A_MODEL
    assert len(BOUND) > 45


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUND)
def test_no_text_takes_long(name: str) -> None:
    faults: list[str] = []
    for number, unit in enumerate(UNITS):
        if name == "code_tests" and number > 1:
            break
        role = attacks.ROLES[number % len(attacks.ROLES)]
        text = (unit * LETTERS)[:LETTERS]
        for each in {"answer", role}:
            fault = attacks.fault_of(BOUND[name], text, each)
            faults += [f"{each} {unit!r}: {fault}"] if fault else []
    assert not faults


@pytest.mark.parametrize("flags", ["x", "ix", "(?x)"])
def test_no_flag_keeps_a_pattern_out_of_the_child(flags: str) -> None:
    """With spaces between a group and its quantifier, too."""
    import re

    pattern = f"{flags if flags.startswith('(') else ''}( a + ) + b"
    given = re.X | (re.I if "i" in flags else 0) if not flags.startswith("(") else 0
    with pytest.raises(TimeoutError):
        search(re.compile(pattern, given), "a" * 40, False, 0.3)
    with pytest.raises(TimeoutError):
        search(re.compile("(?:(?x: ( a + ) + b))"), "a" * 40, False, 0.3)


def test_too_long_is_an_error_and_never_a_number() -> None:
    with pytest.raises(ValueError, match="too long"):
        distance("ab" * 100_000, "ba" * 100_000 + "c")
    letters = "".join(map(chr, range(300, 700)))
    with pytest.raises(ValueError, match="too long"):
        ratio(letters * 100, letters[::-1] * 100)


@pytest.mark.parametrize("name", ["rouge", "bleu", "chrf", "ter", "meteor"])
def test_a_measure_says_how_long_a_text_may_be(name: str) -> None:
    case: Any = attacks.case_of("word " * 100_000, "answer")
    with pytest.raises(ValueError, match="500,000 letters is too long: 200,000"):
        attacks.call(BOUND[name], case, "")


@pytest.mark.parametrize("text", ["a " * 60_000, "a " * 20_000])
def test_ter_ends(text: str) -> None:
    case: Any = attacks.case_of(text, "answer")
    case.item.ground_truth = text[: len(text) // 2]
    started = time.process_time()
    with pytest.raises(ValueError, match="takes too long"):
        attacks.call(BOUND["ter"], case, "")
    assert time.process_time() - started < 8


@pytest.mark.parametrize("length", [200, 1000, 3000])
@pytest.mark.parametrize("wrong", [0.05, 0.4, 1.0])
def test_ter_of_a_document_is_a_number(length: int, wrong: float) -> None:
    """Words are replaced and moved, few of them or (1.0) all."""
    rng = random.Random(length)
    common = [*"abcdefghij", *map(str, range(length))]
    words = rng.choices(common, k=length)
    answer = [rng.choice(common) if rng.random() < wrong / 2 else word for word in words]
    for _ in range(int(length * wrong / 5)):
        at = rng.randrange(length - 5)
        moved = answer[at : at + 3]
        del answer[at : at + 3]
        answer[max(0, at - 15) : max(0, at - 15)] = moved
    case: Any = attacks.case_of(" ".join(sorted(words) if wrong == 1 else answer), "answer")
    case.item.ground_truth = " ".join(words)
    started = time.process_time()
    assert 0 < attacks.call(BOUND["ter"], case, "").score < 1.1
    assert time.process_time() - started < 4


SLOW = "^(a+)+$"
SCHEMAS: list[dict[str, Any]] = [
    {"pattern": SLOW},
    {"items": {"pattern": SLOW}},
    {"patternProperties": {SLOW: {}}},
    {"additionalProperties": False, "patternProperties": {SLOW: {}}},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_no_pattern_of_a_schema_takes_long(schema: dict[str, Any]) -> None:
    """All matches together, too: each of twenty would take a second."""
    text = "a" * 23 + "!"
    answer: Any = "a" * 40 + "!" if "pattern" in schema else [text] * 20
    if "patternProperties" in schema:
        answer = {f"{text}{number}": number for number in range(20)}
    started = time.process_time()
    with pytest.raises(TimeoutError):
        _schema_problems(answer, schema)
    assert time.process_time() - started < 2


def test_a_schema_still_tells_names() -> None:
    schema = {"patternProperties": {"^x(a)*": {"type": "integer"}}, "additionalProperties": False}
    assert _schema_problems({"xa": 1}, schema) == []
    assert len(_schema_problems({"xa": "1", "b": 2}, schema)) == 2


def test_a_judge_is_not_held_up_by_what_another_says() -> None:
    """The loop that waits for calls is free again soon after a megabyte of brackets."""
    case: Any = attacks.case_of("[[" * 500_000, "answer")
    started = time.process_time()
    attacks.call(BOUND["judge"], case, "[[" * 500_000)
    assert time.process_time() - started < attacks.SECONDS
    assert asyncio.run(asyncio.sleep(0, True))
