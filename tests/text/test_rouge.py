"""ROUGE, METEOR, stems and common subsequences, against the packages that everybody's numbers come from."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, strategies as st
from nltk.stem.porter import PorterStemmer
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer

from assay.scorers import meteor
from assay.text import rouge
from assay.text.rouge import Overlap, common_length, common_places
from assay.text.stem import nltk_stem

WORDS = [
    "the",
    "cat",
    "cats",
    "running",
    "runs",
    "relational",
    "It's",
    "3.14",
    "Flies,",
    "skies",
    "x",
    "İstanbul",
    "\n",
]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=24).map(" ".join)
ENDINGS = """
    ational tional enci anci izer bli abli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti
    iviti biliti fulli logi icate ative alize iciti ical ful ness al ance er able ement ment ent sion tion ion ou ism
    ate iti ous ive ize e ll y ed ing eed ied ies sses s ss ally
""".split()  # noqa: SIM905
MADE_UP = st.tuples(
    st.text("aeiouybcdlst1", max_size=6), st.sampled_from(ENDINGS), st.sampled_from(["", *ENDINGS])
)
LETTERS = st.lists(st.sampled_from("abcd"), max_size=9)


class NoSynonyms:
    def synsets(self, word: str) -> list[Any]:
        return []


@pytest.mark.parametrize("stemming", [False, True])
@given(TEXTS, TEXTS)
def test_rouge_is_that_of_rouge_score(stemming: bool, text: str, reference: str) -> None:
    names = ["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"]
    expected = RougeScorer(names, use_stemmer=stemming).score(reference, text)
    ours, theirs = rouge.words(text, stemming), rouge.words(reference, stemming)
    found = {f"rouge{n}": rouge.rouge_n(ours, theirs, n) for n in (1, 2, 3)}
    found |= {
        "rougeL": rouge.rouge_l(ours, theirs),
        "rougeLsum": rouge.rouge_l_sum(text, reference, stemming),
    }
    for name, score in expected.items():
        wanted = (score.fmeasure, score.precision, score.recall)
        assert found[name] == pytest.approx(wanted, abs=1e-12), name


def test_rouge_of_a_long_text_is_not_another() -> None:
    text = "one two three " * 1000
    assert rouge.rouge_l(rouge.words(text, True), rouge.words(text, True)) == Overlap(1.0, 1.0, 1.0)
    assert rouge.words("Straße 7", False) == ("stra", "e", "7")


@given(TEXTS, TEXTS)
def test_meteor_is_nltks_without_synonyms(text: str, reference: str) -> None:
    ours, theirs = meteor.words(text), meteor.words(reference)
    found = meteor.meteor_of(ours, theirs, alpha=0.85, beta=2.0, gamma=0.4)
    settings: dict[str, Any] = {"wordnet": NoSynonyms(), "alpha": 0.85, "beta": 2.0, "gamma": 0.4}
    assert found == pytest.approx(single_meteor_score(theirs, ours, **settings), abs=1e-12)


@given(MADE_UP.map("".join))
def test_stems_are_nltks(word: str) -> None:
    assert nltk_stem(word) == PorterStemmer().stem(word)


@pytest.mark.parametrize(
    "word", ["skies", "dying", "news", "innings", "proceed", "howe", "died", "ties", "enjoy", "spy"]
)
def test_irregular_stems_are_nltks(word: str) -> None:
    assert nltk_stem(word) == PorterStemmer().stem(word)


@given(LETTERS, LETTERS)
def test_the_longest_common_subsequence(first: list[str], second: list[str]) -> None:
    longest = max(
        size
        for size in range(len(first) + 1)
        for chosen in combinations(first, size)
        if contains_in_order(second, chosen)
    )
    assert common_length(first, second) == common_length(second, first) == longest
    places = common_places(first, second)
    assert len(places) == longest
    assert places == sorted(set(places))
    assert contains_in_order(second, [first[place] for place in places])


def contains_in_order(text: list[str], wanted: Any) -> bool:
    left = iter(text)
    return all(letter in left for letter in wanted)
