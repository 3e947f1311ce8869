"""RAGiCamp's metrics by their names: what its own code gives for the same texts."""

from typing import Any

import pytest

from assay.engine.evaluate.bind import BoundScorer, Case, bind_scorer
from assay.errors import UserError
from assay.formats.ragicamp.scorer import NAMES
from assay.records import Item, Response
from assay.registry import scorer
from tests.scorers.test_judges import Court

WALK = "The crew left the Moon on 14 December 1972 UTC after the walk."
FRANCE = "Paris is the capital of France."


def worked() -> list[Case]:
    moon = Item(id="0", ground_truth=["14 December 1972 UTC", "December 1972", "1972"])
    paris = Item(id="1", ground_truth=["Paris"])
    docs = [
        {"retrieved_docs": [{"rank": 1, "doc_id": "d", "content": text}]} for text in (WALK, FRANCE)
    ]
    return [
        Case(moon, [Response(item_id="0", response="December 1972 maybe", metadata=docs[0])]),
        Case(paris, [Response(item_id="1", response="Paris.", metadata=docs[1])]),
    ]


def bound(name: str, **params: Any) -> BoundScorer:
    return bind_scorer(scorer.get(f"ragicamp.{name}"), params=params)


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("faithfulness", {"method": "token_overlap"}, [0.666667, 0.0]),
        ("hallucination", {"method": "simple"}, [0.333333, 1.0]),
        ("answer_in_context", {}, [1.0, 1.0]),
        ("context_recall", {}, [1.0, 0.0]),
        ("exact_match", {}, [0.0, 1.0]),
        ("f1", {}, [0.8, 1.0]),
    ],
)
def test_worked_numbers(name: str, params: dict[str, Any], expected: list[float]) -> None:
    found = bound(name, **params)
    if found.batch:
        scores = found.function(worked(), **found.params)
    else:
        scores = [found.function(case.item, case.responses[0], **found.params) for case in worked()]
    assert [score.score for score in scores] == pytest.approx(expected)


def test_every_name_is_there() -> None:
    assert all(callable(scorer.get(f"ragicamp.{name}")) for name in NAMES)


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("bleurt", {}, "BLEURT is not offered"),
        ("faithfulness", {"method": "llm"}, "a scorer of its own"),
        ("hallucination", {"method": "llm"}, "method"),
        ("llm_judge_qa", {}, "which model judges"),
    ],
)
def test_what_is_refused(name: str, params: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        bound(name, **params)


def test_the_judge(tmp_path: Any) -> None:
    court = Court(tmp_path, 'return \'{"reason": "half", "verdict": "partly correct"}\'')
    rows = court.judge("ragicamp.llm_judge", judgment_type="ternary")
    assert [(row["label"], row["score"], row["passed"]) for row in rows] == [("j", 0.5, False)] * 3
