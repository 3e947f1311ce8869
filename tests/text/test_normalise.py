"""Normalising, stemming, overlap and distance, against straightforward versions and published examples."""

import re
import string
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from assay.scorers.edit_similarity import similarity
from assay.text.answers import without_reasoning
from assay.text.error_rate import distance
from assay.text.normalise import Normalisation, normaliser, squad
from assay.text.rouge import overlap
from assay.text.stem import stem

WORDS = st.text(st.sampled_from("aAtThe n\x00\x1c\t.,-—é"), max_size=30) | st.text(max_size=20)

STEMS = """
caresses=caress ponies=poni ties=ti cats=cat feed=feed agreed=agre plastered=plaster bled=bled motoring=motor
sing=sing conflated=conflat troubled=troubl sized=size hopping=hop falling=fall hissing=hiss fizzed=fizz filing=file
happy=happi sky=sky relational=relat conditional=condit rational=ration digitizer=digit operator=oper
feudalism=feudal decisiveness=decis hopefulness=hope formaliti=formal triplicate=triplic electrical=electr
goodness=good revival=reviv allowance=allow airliner=airlin adjustable=adjust replacement=replac adoption=adopt
homologous=homolog effective=effect probate=probat rate=rate cease=ceas controll=control roll=roll
generalizations=gener oscillators=oscil by=by 2024=2024 café=café
"""


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("The  Cat!", "cat"),
        ("an apple, a day", "apple day"),
        ("U.S.A.", "usa"),
        ("theatre", "theatre"),
        ("Rock 'n' Roll", "rock n roll"),
        ("A", ""),
        ("Ÿ the—end", "ÿ —end"),
    ],
)
def test_squad(text: str, plain: str) -> None:
    assert squad(text) == plain


@given(WORDS)
def test_squad_is_the_published_sequence_of_steps(text: str) -> None:
    kept = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    assert squad(text) == " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


@pytest.mark.parametrize("how", ["none", "basic", "squad"])
@given(text=WORDS)
def test_normalising_twice_changes_nothing_more(how: Normalisation, text: str) -> None:
    once = normaliser(how, False, True)
    if how != "squad" or text.isascii():  # é.lower() may give what lower() changes again
        assert once(once(text)) == once(text)


def test_basic() -> None:
    assert normaliser("basic")(' **"New   York."**\n') == "new york"


@pytest.mark.parametrize(("word", "root"), [pair.split("=") for pair in STEMS.split()])
def test_stems_of_porters_paper(word: str, root: str) -> None:
    assert stem(word) == root


@given(st.text("abc", max_size=40), st.text("abc", max_size=90))
def test_distance_is_that_of_the_whole_table(first: str, second: str) -> None:
    edits = last_cell(first, second)
    assert distance(first, second) == edits
    assert distance([*first], [*second]) == edits
    assert similarity(first, second) == pytest.approx(1 - edits / max(1, len(first), len(second)))


def last_cell(first: str, second: str) -> int:
    """Wagner and Fischer's table, cell by cell."""
    row = [*range(len(second) + 1)]
    for above, one in enumerate(first):
        diagonal, row[0] = above, above + 1
        for at, other in enumerate(second, 1):
            cost = min(row[at] + 1, row[at - 1] + 1, diagonal + (one != other))
            diagonal, row[at] = row[at], cost
    return row[-1]


@given(st.text("ab ", max_size=20), st.text("ab ", max_size=20))
def test_overlap_is_that_of_counters_and_symmetric(first: str, second: str) -> None:
    given, wanted = first.split(), second.split()
    shared = sum((Counter(given) & Counter(wanted)).values())
    expected = 2 * shared / (len(given) + len(wanted)) if given or wanted else 1.0
    assert overlap(first, second).f1 == pytest.approx(expected)
    assert overlap(first, second).f1 == overlap(second, first).f1
    assert overlap(first, second).precision == overlap(second, first).recall


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>no</think>\nyes", "yes"),
        ("no </think> yes", "yes"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("<think>never ends", ""),
        ("yes <think>never ends", "yes"),
        ("<THINKING>x</THINKING>y", "y"),
        ("1 < 2", "1 < 2"),
        ("plain ", "plain "),
    ],
)
def test_reasoning_is_left_out(text: str, answer: str) -> None:
    assert without_reasoning(text) == answer
