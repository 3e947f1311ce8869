"""The protocol's rule parsers against straightforward rewrites of their description, and case by case."""

import random
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.formats.mixeval import compat

OPTIONS = ["a red hat", "Blue shoes", "green gloves", "no clothes"]

# ---- multiple choice


def described_choice(response: str, options: list[str], chance: random.Random) -> tuple[str, bool]:
    """Section 4.1 of the description, and whether the letter was drawn."""
    for mark in [",", ".", "!", "?", ";", ":", "'"]:
        response = response.strip(mark)
    response = " " + response + " "
    labels = [chr(65 + number) for number in range(len(options))]
    hits: list[tuple[int, int, str]] = []
    for label in labels:
        x = label
        shapes = [
            f" {x} ",
            f" {x}\n",
            f"\n{x} ",
            f"\n{x}\n",
            f" {x}. ",
            f" {x}.\n",
            f"\n{x}. ",
            f"\n{x}.\n",
        ]
        shapes += [f"({x})", f"**{x} ", f" {x}**", f"**{x}. ", f" {x}.**"]
        assert len(shapes) == 13
        for shape in shapes:
            hits += [
                (at, len(hits), label)
                for at in range(len(response))
                if response.startswith(shape, at)
            ]
    if not hits and len(response.split()) > 5:
        text = response.lower()
        for label, option in zip(labels, options, strict=True):
            hits += [
                (at, len(hits), label)
                for at in range(len(text))
                if text.startswith(option.lower(), at)
            ]
    return (min(hits)[2], False) if hits else (chance.choice(labels), True)


def letters_of(responses: list[str], options: list[str]) -> list[tuple[str, bool]]:
    guesses = compat.Guesses()
    found = [compat.choose(response, options) for response in responses]
    return [(letter, False) if letter else (guesses.draw(len(options)), True) for letter in found]


PIECES = [
    "A",
    "B",
    "C",
    "D",
    "E",
    " ",
    " ",
    "\n",
    ".",
    ",",
    "(",
    ")",
    "**",
    ":",
    "'",
    "so",
    "A red hat",
    "GREEN GLOVES",
]
RESPONSES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(st.lists(RESPONSES, max_size=8), st.integers(2, 4))
@settings(max_examples=400, deadline=None)
def test_letters_and_draws_are_those_of_the_description(responses: list[str], count: int) -> None:
    chance = random.Random(42)
    expected = [described_choice(response, OPTIONS[:count], chance) for response in responses]
    assert letters_of(responses, OPTIONS[:count]) == expected


def shapes(letter: str) -> list[str]:
    spaced = [
        f"{before}{letter}{dot}{after}" for dot in ("", ".") for before in " \n" for after in " \n"
    ]
    return [
        *spaced,
        f"({letter})",
        f"**{letter} ",
        f" {letter}**",
        f"**{letter}. ",
        f" {letter}.**",
    ]


@pytest.mark.parametrize("shape", shapes("C"))
def test_the_thirteen_shapes(shape: str) -> None:
    assert len(shapes("C")) == 13
    assert compat.choose(f"x{shape}x", OPTIONS) == "C"
    assert compat.choose(f"x{shape.lower()}x", OPTIONS) is None
    assert compat.choose(f"x{shape.replace('C', 'E')}x", OPTIONS) is None


@pytest.mark.parametrize(
    "text",
    [
        "**D**",
        "**D.**",
        "B)",
        "D: text",
        '"C"',
        r"\boxed{B}",
        "b",
        "a",
        "Blue shoes",
        "",
        "no idea",
        "It's green gloves",
    ],
)
def test_what_falls_to_chance(text: str) -> None:
    assert compat.choose(text, OPTIONS) is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("A", "A"),
        ("'A'", "A"),
        ("B.", "B"),
        ("B...", "B"),
        ("It is not B but C", "B"),
        ("I think A person should know", "A"),
        ("B, C", "C"),
        ("(D) or A", "D"),
        ("I would surely go for GREEN GLOVES today", "C"),
        ("first green gloves and only then a red hat", "C"),
        (",.A", "A"),
    ],
)
def test_letters(text: str, letter: str) -> None:
    assert compat.choose(text, OPTIONS) == letter


def test_option_texts_need_more_than_five_words() -> None:
    assert compat.choose("take the green gloves now", OPTIONS) is None
    assert compat.choose("do take the green gloves now", OPTIONS) == "C"


def test_edges_are_stripped_one_character_after_the_other() -> None:
    assert compat.choose("x .A,", OPTIONS) is None
    assert compat.choose("A,.", OPTIONS) is None, (
        "the comma goes first, when it is not yet at the edge"
    )
    assert compat.choose("A.,", OPTIONS) == "A"


def test_the_first_draws() -> None:
    """What Python's generator gives for the seed 42, written down."""
    guesses = compat.Guesses()
    assert [guesses.draw(4) for _ in range(8)] == ["A", "A", "C", "B", "B", "B", "A", "A"]


# ---- free form


def described_verdict(response: str, targets: list[str]) -> bool:
    """Section 4.2 of the description."""
    whole = response.strip().strip(".").lower()
    lines = whole.split("\n")
    tails: list[str] = []
    for number, line in enumerate(lines):
        cues = ["could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result "]
        cues += ["="] if number == len(lines) - 1 else []
        chosen = ""
        for cue in cues:
            if cue in line:
                tail = line.split(cue)[-1].strip()
                chosen = tail if not chosen or len(tail) < len(chosen) else chosen
        if chosen and chosen not in list(":,.!?;'"):
            tails.append(chosen)
    tails = tails or [whole]
    texts = [*tails, *(number for tail in tails for number in described_numbers(tail))]
    said = [value for text in texts for value in described_values(text)]
    wanted = [value for target in targets for value in described_values(target)]
    strings = [value for value in wanted if isinstance(value, str)]
    floats = [value for value in wanted if isinstance(value, float)]
    return any(
        any(s in one for s in strings) if isinstance(one, str) else one in floats for one in said
    )


def described_values(text: str) -> list[Any]:
    text = text.strip()
    try:
        return [round(float(text.replace(",", "")), 2)]
    except ValueError:
        return [" " + text.lower(), text.lower() + " "] if len(text) == 1 else [text.lower()]


def described_numbers(text: str) -> list[str]:
    grouped = re.findall(r"-?\b\d{1,3}(?:,\d{3})+\b", text)
    scientific = re.findall(r"-?\d+(?:\.\d+)?[eE][+-]?\d+", text)
    simple = re.findall(r"-?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][+-]?\d+)(?![,\d])", text)
    return grouped + scientific + simple


WORDS = [
    "so ",
    "is ",
    "answer ",
    "final ",
    "could be ",
    "Paris",
    "no",
    "x",
    "1,234",
    "3.14",
    "-7",
    "2e3",
    "=",
    "\n",
    ".",
    ":",
]
TEXTS = st.lists(st.sampled_from([*WORDS, " ", " "]), max_size=12).map("".join)
TARGETS = st.lists(
    st.sampled_from(["Paris", "No", "x", "1234", "3.14", "-7", "2000", "7", "234", "is"]),
    min_size=1,
    max_size=3,
)


@given(TEXTS, TARGETS)
@settings(max_examples=500, deadline=None)
def test_verdicts_are_those_of_the_description(response: str, targets: list[str]) -> None:
    assert compat.is_right(response, targets) is described_verdict(response, targets)


@pytest.mark.parametrize(
    ("response", "targets", "right"),
    [
        ("Paris", ["Paris"], True),
        ("The capital is Paris.", ["paris"], True),
        ("Paris is the capital of France.", ["Paris"], False),
        ("unknown", ["No"], True),
        ("1958, then 1959", ["1958"], False),
        ("It is 1,234", ["1234"], True),
        ("It is 1,234", ["234"], True),
        ("1/2", ["0.5"], False),
        ("5 + 7 = 12", ["12"], True),
        ("5 + 7 = 12\nDone", ["12"], True),
        ("a=12 or so it seems", ["12"], False),
        ("3.14159", ["3.14"], True),
        ("The answer is: 3.146", ["3.15"], True),
        ("x", ["x"], True),
        ("box", ["x"], False),
        ("a x b", ["x"], True),
        ("it is so ", ["it"], False),
        ("the answer is x\nno more", ["more"], False),
        ("2e3", ["2000"], True),
        ("", ["Paris"], False),
    ],
)
def test_verdicts(response: str, targets: list[str], right: bool) -> None:
    assert compat.is_right(response, targets) is right
    assert described_verdict(response, targets) is right


def test_predictions_are_each_given_once() -> None:
    found = compat.predictions("The answer is 12\nso it is 12 or 1,200")
    assert found.count(12.0) == 1
    assert {"12 or 1,200", 12.0, 1200.0} <= set(found)
    assert all(first != second for first, second in pairwise(found))


# ---- base models


@pytest.mark.parametrize(
    ("response", "multiple", "expected"),
    [
        ("B\n\nWhich?\nA. x", True, "B"),
        ("B\n\n\nQuestion: Why?", False, "B"),
        ("a\n\nb\n\n\nQuestion: Why?", False, "a\n\nb"),
        ("\n\nB", True, "\n\nB"),
        ("...\n\nB", True, "...\n\nB"),
        ("é\n\nB", True, "é"),
        ("日\n\nB", True, "日"),
        ("ж\n\nB", True, "ж"),
        ("λ\n\nB", True, "λ"),
        ("한\n\nB", True, "한"),
        ("か\n\nB", True, "か\n\nB"),
        ("½\n\nB", True, "½\n\nB"),
        ("B", True, "B"),
        ("5\n\n\nquestion", False, "5\n\n\nquestion"),
    ],
)
def test_base_models_are_cut_short(response: str, multiple: bool, expected: str) -> None:
    assert compat.first_answer(response, multiple_choice=multiple) == expected


# ---- what judges write


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("The correctness score: [[0.5]]", 0.5),
        ("[[1]]", 1.0),
        ("[[1.]]", 1.0),
        ("[[0.85]]", 0.85),
        ("[[00]]", 0.0),
        ("[[0.3]] or rather [[0.9]]", 0.3),
        ("[0.2] and then [[0.7]]", 0.7),
        ("I say [0.4].", 0.4),
        ("[[2]]", None),
        ("[[2]] and [[0.5]]", None),
        ("[[.5]]", None),
        ("[[ 0.5 ]]", None),
        ("[[0.5/1]]", None),
        ("[[-0.5]]", None),
        ("[[01]]", None),
        ("0.5", None),
        ("", None),
    ],
)
def test_scores_of_judges(text: str, score: float | None) -> None:
    assert compat.judged_score(text) == score


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("[[B]]", "B"),
        ("[A] but [[C]]", "C"),
        ("I take [D].", "D"),
        ("[[Z]]", "Z"),
        ("[[b]]", None),
        ("B", None),
    ],
)
def test_letters_of_judges(text: str, letter: str | None) -> None:
    assert compat.judged_option(text) == letter
