"""The second executor by itself: every form of scorer, what is scored again, and what is refused."""

import asyncio
import threading
from typing import Any

import pytest

import assay
from assay.engine.evaluate.bind import BoundScorer
from assay.errors import LaneError, RunFailed, UserError
from assay.interfaces import Score, Store
from assay.models.python import python

ROWS = [{"id": f"q{i}", "data": f"{i}", "ground_truth": f"{i}{i}"} for i in range(6)]


def double(data: str) -> str:
    return "wrong" if data == "4" else data * 2


@pytest.fixture
def store() -> Store:
    store = assay.MemoryStore()
    assay.DatasetRepository(store).create(ROWS, name="d", id="d")
    assay.Runner(store).run("d", [assay.function_task(double)], id="r")
    return store


def scored(store: Store, *scorers: BoundScorer, **options: Any) -> list[Any]:
    assay.Evaluator(store, **options).evaluate(["r"], scorers, id="e")
    return sorted(
        assay.EvaluationRepository(store).evaluations("e"),
        key=lambda row: (row.scorer, row.item_id, row.part),
    )


def right(item: Any, response: Any) -> bool:
    return response.response == item.ground_truth


async def right_async(item: Any, response: Any) -> bool:
    await asyncio.sleep(0)
    return response.response == item.ground_truth


def right_seed(response: str, ground_truth: str, inference_result: Any = None) -> dict[str, Any]:
    return {"passed": response == ground_truth, "model": inference_result["model_name"]}


def right_batch(cases: list[Any]) -> list[bool]:
    assert len(cases) <= 4
    return [case.responses[0].response == case.item.ground_truth for case in cases]


right_batch.__assay__ = {"kind": "scorer", "name": "right_batch", "batch": 4}  # type: ignore[attr-defined]


@pytest.mark.parametrize("function", [right, right_async, right_seed, right_batch])
def test_every_form(store: Store, function: Any) -> None:
    rows = scored(store, assay.bind_scorer(function))
    assert [(row.item_id, row.passed, row.label) for row in rows] == [
        (f"q{i}", i != 4, function.__name__) for i in range(6)
    ]
    assert all(
        row.outcome == "scored" and len(row.responses) == 1 and row.model_name == "double"
        for row in rows
    )


def test_a_scorer_is_called_once_for_each_response(store: Store) -> None:
    calls: list[str] = []

    def counting(item: Any, response: Any, *, limit: int = 1) -> bool:
        calls.append(item.id)
        return True

    for _ in range(2):
        scored(store, assay.bind_scorer(counting))
    assert len(calls) == 6
    scored(store, assay.bind_scorer(counting, params={"limit": 2}))
    assert len(calls) == 12
    scored(store, assay.bind_scorer(counting))
    assert len(calls) == 12


def raising(item: Any, response: Any) -> bool:
    if item.id == "q2":
        raise KeyError("nothing here")
    if item.id == "q3":
        raise SystemExit(3)
    return True


def hanging(item: Any, response: Any) -> bool:
    if item.id == "q2":
        threading.Event().wait(5)
    return True


async def hanging_async(item: Any, response: Any) -> bool:
    if item.id == "q2":
        await asyncio.sleep(100)
    return True


def test_what_raises_costs_its_rows(store: Store) -> None:
    rows = scored(store, assay.bind_scorer(raising))
    assert {row.item_id: row.error for row in rows if row.outcome == "errored"} == {
        "q2": "KeyError: 'nothing here' (test_evaluate.py, line 89: raise KeyError(\"nothing here\"))",
        "q3": "SystemExit: 3 (test_evaluate.py, line 91: raise SystemExit(3))",
    }


@pytest.mark.parametrize("function", [hanging, hanging_async])
def test_what_hangs_costs_its_row_and_is_tried_again(store: Store, function: Any) -> None:
    rows = scored(store, assay.bind_scorer(function, timeout=0.1))
    assert [row.outcome for row in rows] == ["scored"] * 2 + ["errored"] + ["scored"] * 3
    assert rows[2].error_kind == "transient"
    manifest = store.manifest("evaluation", "e")
    assert manifest is not None
    assert manifest.counts == {"scored": 5, "errored": 1, "transient": 1}


def test_a_batch_that_fails_fails_its_cases(store: Store) -> None:
    def short(cases: list[Any]) -> list[bool]:
        return [True]

    short.__assay__ = {"kind": "scorer", "name": "short", "batch": 4}  # type: ignore[attr-defined]
    rows = scored(store, assay.bind_scorer(short))
    assert {row.outcome for row in rows} == {"errored"}
    assert "needs a list of as many results" in rows[0].error


def test_several_labels_and_none(store: Store) -> None:
    def labels(item: Any, response: Any) -> Any:
        return (
            [] if item.id == "q0" else [Score(label="a", passed=True), Score(label="b", score=0.5)]
        )

    rows = scored(store, assay.bind_scorer(labels))
    assert len(rows) == 11
    assert (rows[0].outcome, rows[0].part) == ("skipped", (0, 0))
    assert [(row.label, row.part) for row in rows[1:3]] == [("a", (0, 2)), ("b", (1, 2))]
    before = list(store.log("evaluation", "e").scan())
    scored(store, assay.bind_scorer(labels))
    assert list(store.log("evaluation", "e").scan()) == before


def test_a_judge_whose_model_is_gone_stops_the_step_and_keeps_the_rest(store: Store) -> None:
    asked: list[str] = []

    async def model(prompt: str) -> str:
        asked.append(prompt)
        if len(asked) == 3:
            raise LaneError("the key is not valid")
        return "yes"

    async def judge(item: Any, response: Any, *, context: Any) -> bool:
        answer = await context.complete([{"role": "user", "content": response.response}])
        return answer.text == "yes"

    from assay.interfaces import Limits

    options = {"models": {"m": python("m", function=model)}, "default_limits": Limits(1)}
    with pytest.raises(RunFailed, match="the key is not valid"):
        scored(store, assay.bind_scorer(judge), **options)
    assert len(scored(store, assay.bind_scorer(judge), **options)) == 6
    assert len(asked) == 7


def test_traces_of_scorers(store: Store) -> None:
    async def traced(item: Any, response: Any, *, context: Any) -> bool:
        with context.span("look"):
            return True

    scored(store, assay.bind_scorer(traced))
    assert len(list(store.log("evaluation", "e", "traces").scan())) == 6


def test_what_is_refused(store: Store) -> None:
    mine = assay.bind_scorer(right)
    evaluator = assay.Evaluator(store)
    with pytest.raises(UserError, match="no run to evaluate"):
        evaluator.evaluate([], [mine])
    with pytest.raises(UserError, match="nothing to score with"):
        evaluator.evaluate(["r"], [])
    with pytest.raises(UserError, match="two scorers are called 'right'"):
        evaluator.evaluate(["r"], [mine, mine])
    with pytest.raises(UserError, match="there is no run 'x'"):
        evaluator.evaluate(["x"], [mine])
    with pytest.raises(UserError, match="needs two players"):
        evaluator.evaluate(
            ["r"], [assay.bind_scorer(lambda item, first, second: 1.0, name="match")]
        )
    assay.DatasetRepository(store).create(ROWS, name="d2", id="d2")
    assay.Runner(store).run("d2", [assay.function_task(double)], id="r2")
    with pytest.raises(UserError, match="must share one dataset"):
        evaluator.evaluate(["r", "r2"], [mine])


def test_rows_of_others_may_have_numbers_as_text() -> None:
    """What a foreign writer made text of is a number again, and its row has a key."""
    from assay.engine.evaluate.cases import response_decoder

    line = (
        b'{"item_id":"a","sample_index":"2","model_name":"m","response":"x","inference_time":"0.5"}'
    )
    row = response_decoder()(line)
    assert (row.sample_index, row.inference_time, len(row.key)) == (2, 0.5, 32)
