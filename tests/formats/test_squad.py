"""SQuAD's measures under their own names: the worked numbers of RAGiCamp, and SQuAD's shapes."""

from typing import Any

import pytest

from assay.records import Item, Response
from assay.registry import scorer

MOON = ["14 December 1972 UTC", "December 1972", "1972"]
WORKED = [
    ("The cat!", "cat", 1, 1),
    ("a an the", "", 1, 1),
    ("", "", 1, 1),
    ("", "x", 0, 0),
    ("cat cat dog", "cat dog dog", 0, 2 / 3),
    ("It's 3.14", "its 314", 1, 1),
    ("U.S.A.", "usa", 1, 1),
    ("New-York", "new york", 0, 0),
    ("Theatre", "atre", 0, 0),
    ("December 1972", MOON, 1, 1),
    ("December 1972 maybe", MOON, 0, 0.8),
]


def score(name: str, answer: str, truth: Any, **params: Any) -> float | None:
    return scorer.get(name)(
        Item(id="i", ground_truth=truth), Response(item_id="i", response=answer), **params
    ).score


@pytest.mark.parametrize(("answer", "truth", "exact", "f1"), WORKED)
@pytest.mark.parametrize("format", ["squad", "ragicamp"])
def test_worked_numbers(format: str, answer: str, truth: Any, exact: float, f1: float) -> None:
    assert score(f"{format}.exact_match", answer, truth) == exact
    assert score(f"{format}.f1", answer, truth) == pytest.approx(f1)


def test_without_normalising() -> None:
    assert score("squad.f1", "The cat!", "cat", normalize=False) == 0.0
    assert score("squad.f1", "Paris.", "Paris", normalize=False) == 0.0
    assert score("squad.f1", "Paris CAPITAL", "paris", normalize=False) == pytest.approx(2 / 3)
    assert score("squad.f1", " ", "", normalize=False) == 0.0
    assert score("squad.exact_match", "Paris", "paris", normalize=False) == 0.0
    assert score("squad.exact_match", "paris ", "paris", normalize=False) == 0.0


def test_stemming_is_nltks() -> None:
    # not so in Porter's own algorithm
    assert score("squad.exact_match", "The skies!", "sky", stemming=True) == 1.0
    assert score("squad.f1", "flying skies", "flies in sky", stemming=True) == pytest.approx(0.8)
    assert score("squad.exact_match", "skies", "sky") == 0.0


@pytest.mark.parametrize(
    "truth",
    [
        {"text": ["Paris", "City of Light"], "answer_start": [3, 9]},
        {"answers": {"text": ["Rome", "Paris"], "answer_start": [3, 9]}},
        {"answers": ["Paris"]},
        {"answer": "Paris", "id": "7"},
    ],
)
def test_the_shapes_of_squad(truth: Any) -> None:
    assert score("squad.exact_match", "paris", truth) == 1.0
    assert score("squad.f1", "paris", truth) == 1.0


@pytest.mark.parametrize(
    "truth", [[], {"text": [], "answer_start": []}, {"answers": {"text": []}}, {"answers": []}]
)
def test_a_question_without_an_answer(truth: Any) -> None:
    assert (score("squad.f1", "", truth), score("squad.f1", "Paris", truth)) == (1.0, 0.0)


@pytest.mark.parametrize("truth", [None, {}, {"other": 1}, {"answers": {"start": 1}}])
def test_no_answers_at_all_are_an_error(truth: Any) -> None:
    with pytest.raises(LookupError):
        score("squad.f1", "", truth)
    with pytest.raises(LookupError, match="no field 'mine'"):
        score("squad.f1", "", {"other": 1}, expected="mine")
