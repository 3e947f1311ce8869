"""Scorers: which form a function has, and what becomes of everything that it may return."""

import asyncio
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from assay import registry
from assay.engine.evaluate.bind import Case, Form, bind_scorer
from assay.engine.evaluate.cases import Call, failure_label
from assay.engine.evaluate.rows import labels_of, rows_of
from assay.errors import TransientError, UserError
from assay.interfaces import Score
from assay.records import Evaluation, Item, Response

SEED_RESULT = {"passed": True, "score": 0.8, "custom_fields": {"confidence": 0.9}, "note": "n"}
MINE = bind_scorer(lambda item, response: True, name="mine")


def short(result: Any, form: Form) -> list[tuple[str, bool | None, float | None]]:
    labels = labels_of(result, replace(MINE, form=form))[0]
    return [(score.label, score.passed, score.score) for score in labels]


def says_passed(result: Any) -> bool:
    """Whether a scorer's result has a verdict of its own, be it in one label of several."""
    if isinstance(result, dict):
        return "passed" in result or any(
            map(says_passed, [*result.get("labels", []), result.get("result")])
        )
    return isinstance(result, (bool, np.bool_)) or getattr(result, "passed", None) is not None


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (True, [("mine", True, 1.0)]),
        (False, [("mine", False, 0.0)]),
        (0.25, [("mine", True, 0.25)]),
        (0, [("mine", False, 0.0)]),
        (-1, [("mine", False, -1.0)]),
        (np.bool_(True), [("mine", True, 1.0)]),
        (np.float32(0.5), [("mine", True, 0.5)]),
        (np.int64(2), [("mine", True, 2.0)]),
        ({"passed": True}, [("mine", True, 1.0)]),
        ({"score": 0.4}, [("mine", True, 0.4)]),
        ({"passed": False, "score": 0.4}, [("mine", False, 0.4)]),
        ({"passed": np.bool_(False), "score": np.float64(0.4)}, [("mine", False, 0.4)]),
        ({"label": "x", "passed": True}, [("x", True, 1.0)]),
        ({"label": {"name": "x", "description": "d"}, "result": SEED_RESULT}, [("x", True, 0.8)]),
        ({"label": "x", "result": {"score": 0}}, [("x", False, 0.0)]),
        ({"result": {"passed": True}}, [("mine", True, 1.0)]),
        (
            {"labels": [{"label": "a", "result": {"passed": True}}, {"label": "b", "score": 0}]},
            [("a", True, 1.0), ("b", False, 0.0)],
        ),
        ({"labels": []}, []),
        ([], []),
        ([0.5, Score(label="c", passed=False)], [("mine", True, 0.5), ("c", False, 0.0)]),
        (Score(score=0.5), [("mine", True, 0.5)]),
        (Score(passed=False, score=0.9, label="x"), [("x", False, 0.9)]),
        (Score(value={"a": 1}), [("mine", None, None)]),
        (Score(outcome="unparsed"), [("mine", None, None)]),
    ],
)
def test_every_shape(result: Any, expected: list[Any]) -> None:
    """A bare score of an EEN function passes above 0; that of any other scorer has no verdict."""
    assert short(result, "een") == expected
    entries = result if isinstance(result, list) else [result]
    if isinstance(result, dict) and "labels" in result:
        entries = result["labels"]
    said = [says_passed(entry) for entry in entries]
    assert short(result, "item") == [
        (label, passed if says else None, score)
        for says, (label, passed, score) in zip(said, expected, strict=True)
    ]


@pytest.mark.parametrize(
    "result",
    [
        None,
        "yes",
        object(),
        {},
        {"verdict": "good"},
        {"labels": {"a": 1}},
        {"label": "x", "result": True},
        {"label": "x", "result": {}},
        {"passed": "yes"},
        {"score": "0.5"},
        {"score": [1]},
        float("nan"),
        float("inf"),
        {"passed": True, "score": float("-inf")},
        np.float64("nan"),
        Score(),
        Score(score=float("nan")),
        Score(passed="yes"),  # type: ignore[arg-type]
        [True, None],
        [True, 0.5],
        {"labels": [{"label": "a", "passed": True}, {"label": "a", "passed": False}]},
    ],
)
def test_nonsense_is_a_value_error(result: Any) -> None:
    with pytest.raises(ValueError):
        labels_of(result, MINE)


def test_details_of_the_seeds_result() -> None:
    label = {"name": "x", "description": "what x means"}
    (score,), more = labels_of(
        {"label": label, "result": SEED_RESULT, "custom_fields": {"time": 3}, "by": "me"}, MINE
    )
    assert score.details == {"confidence": 0.9, "note": "n", "label_description": "what x means"}
    assert more == {"by": "me", "time": 3}
    _, more = labels_of({"labels": [True], "custom_fields": {"time": 3}, "by": "me"}, MINE)
    assert more == {"by": "me", "time": 3}


def test_a_score_that_is_returned_again_and_again_stays_as_it_is() -> None:
    constant = Score(passed=True)
    assert labels_of(constant, MINE)[0][0].label == "mine"
    assert labels_of(constant, replace(MINE, name="two"))[0][0].label == "two"
    assert constant == Score(passed=True)


@pytest.mark.parametrize(
    ("scorer", "params", "passed"),
    [
        ("f1", {}, None),
        ("f1", {"threshold": 0}, True),
        ("f1", {"threshold": 0.9}, False),
        ("squad.f1", {}, None),
        ("edit_similarity", {}, False),
        ("wer", {}, False),
    ],
)
def test_a_scorer_without_a_threshold_gives_no_verdict(
    scorer: str, params: dict[str, Any], passed: bool | None
) -> None:
    """Its identity is the same as ever, and so is the score."""
    bound = bind_scorer(registry.scorer.get(scorer), params=params)
    item, response = Item(id="a", ground_truth="red blue"), Response(item_id="a", response="red")
    (row,) = rows_of(
        Call(bound, Case(item, [response]), b"k"),
        (bound.function(item, response, **params), None),
        0.0,
    )
    assert (row.passed, row.outcome) == (passed, "scored")
    assert 0 < (row.score or 0) < 1


def test_a_function_can_declare_that_it_only_scores() -> None:
    @registry.scorer(verdicts=False)
    def shortness(item: Item, response: Response) -> Score:
        return Score(passed=True, score=0.5)

    assert (
        labels_of(shortness(Item(id="a"), Response(item_id="a")), bind_scorer(shortness))[0][
            0
        ].passed
        is None
    )


# ---- what is written


def rows(
    result: Any = None, error: BaseException | None = None, **response: Any
) -> list[Evaluation]:
    bound = bind_scorer(lambda item, response: True, name="mine")
    case = Case(Item(id="i"), [Response(item_id="i", metadata={"model_id": "m"}, **response)])
    settled = None if case.responses[0].outcome == "ok" else failure_label(case.responses[0])
    return rows_of(Call(bound, case, b"k", settled=settled), (result, error), 0.5)


def test_labels_of_one_call_are_numbered_and_share_a_key() -> None:
    written = rows([True, {"label": "b", "passed": False}, Score(label="c", score=0.5)])
    assert [row.part for row in written] == [(0, 3), (1, 3), (2, 3)]
    assert {row.key for row in written} == {b"k".hex()}


def test_a_call_without_labels_leaves_a_row() -> None:
    (row,) = rows([])
    assert (row.outcome, row.part, row.label) == ("skipped", (0, 0), "mine")


def test_further_fields_are_in_the_metadata() -> None:
    (row,) = rows({"labels": [True], "custom_fields": {"time": np.float64(3)}})
    assert row.metadata == {"model_id": "m", "evaluation": {"time": 3.0}}


@pytest.mark.parametrize(
    ("error", "text", "kind"),
    [
        (ZeroDivisionError("x"), "ZeroDivisionError: x", "permanent"),
        (SystemExit(3), "SystemExit: 3", "permanent"),
        (TimeoutError("took longer than 1 s"), "the scorer took longer than 1 s", "transient"),
        (TransientError("503"), "503", "transient"),
    ],
)
def test_what_it_raises_is_an_error_row(error: BaseException, text: str, kind: str) -> None:
    (row,) = rows(error=error)
    assert (row.outcome, row.error, row.error_kind, row.passed, row.score) == (
        "errored",
        text,
        kind,
        None,
        None,
    )


@pytest.mark.parametrize(
    "result",
    [
        float("nan"),
        Score(passed=True, details={"model": object()}),
        Score(value=object()),
        {"labels": [True], "why": object()},
        {"passed": True, "note": "\ud800"},
        {"passed": True, "label": "\ud800"},
    ],
)
def test_what_cannot_be_stored_is_an_error_row(result: Any) -> None:
    (row,) = rows(result)
    assert (row.outcome, row.error_kind) == ("errored", "permanent")


@pytest.mark.parametrize("outcome", ["errored", "refused", "skipped"])
def test_a_response_without_an_answer_is_not_scored(outcome: Any) -> None:
    (row,) = rows(True, outcome=outcome, error="why")
    assert (row.outcome, row.passed) == (outcome, None)
    assert f"is {outcome}" in str(row.error)


# ---- forms


def item_form(item: Item, response: Response, *, limit: int = 3) -> bool:
    return len(response.response) < limit


def een_form(
    response: str, ground_truth: Any, inference_result: Any = None, **params: Any
) -> dict[str, Any]:
    return {
        "passed": response == ground_truth["answer"],
        **params,
        "model": inference_result["model_name"],
    }


def een_without_result(response: str, ground_truth: Any, limit: int = 3) -> bool:
    return len(response) < limit


async def een_async(response: str, ground_truth: Any) -> bool:
    return response == ground_truth


def match_form(item: Item, first: Response, second: Response, *, context: Any) -> float:
    return 0.5


async def async_form(item: Item, response: Response, context: Any) -> bool:
    return True


def batch_form(cases: list[Case], *, contexts: Any, scale: float = 1.0) -> list[float]:
    return [scale for _ in cases]


batch_form.__assay__ = {"batch": 16}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "form", "mode", "reads", "context", "batch"),
    [
        (item_form, "item", "thread", "item", False, 0),
        (een_form, "een", "thread", "ground_truth", False, 0),
        (een_without_result, "een", "thread", "ground_truth", False, 0),
        (een_async, "een", "async", "ground_truth", False, 0),
        (match_form, "match", "thread", "item", True, 0),
        (async_form, "item", "async", "item", True, 0),
        (batch_form, "item", "thread", "item", True, 16),
    ],
)
def test_the_signature_says_what_it_is(
    function: Any, form: str, mode: str, reads: str, context: bool, batch: int
) -> None:
    bound = bind_scorer(function)
    found = (bound.name, bound.form, bound.mode, bound.reads, bound.takes_context, bound.batch)
    assert found == (function.__name__, form, mode, reads, context, batch)


def test_built_ins_need_no_thread_unless_they_have_a_timeout() -> None:
    from assay.scorers.exact_match import exact_match

    assert bind_scorer(exact_match).mode == "inline"
    assert bind_scorer(exact_match).reads == "ground_truth"
    assert bind_scorer(exact_match, timeout=1).mode == "thread"


@pytest.mark.parametrize("function", [lambda: True, lambda item: True, lambda a, b, c, d: True])
def test_other_signatures_are_refused(function: Any) -> None:
    with pytest.raises(UserError, match="is not a scorer") as caught:
        bind_scorer(function, where="evaluation_methods[0]")
    assert "(item, response" in caught.value.fix


def called(function: Any, **params: Any) -> Any:
    bound = bind_scorer(function, params=params)
    response = Response(item_id="i", response="ab", model_name="m")
    positional, keywords = bound.arguments(
        Case(Item(id="i", ground_truth={"answer": "ab"}), [response]), None
    )
    return bound.function(*positional, **keywords)


def test_the_seeds_form_gets_the_row_as_a_dict() -> None:
    assert called(een_form, strict=True) == {"passed": True, "strict": True, "model": "m"}


def test_parameters_reach_every_form() -> None:
    assert called(een_without_result) is True
    assert called(een_without_result, limit=2) is False
    assert called(item_form, limit=2) is False
    assert asyncio.run(called(een_async)) is False


@pytest.mark.parametrize("function", [item_form, een_without_result])
def test_unknown_parameters_are_refused(function: Any) -> None:
    with pytest.raises(UserError, match="no parameter 'limt'") as caught:
        bind_scorer(function, params={"limt": 2})
    assert "did you mean 'limit'" in caught.value.fix


def test_identity_depends_on_name_and_parameters() -> None:
    same = bind_scorer(item_form).identity
    assert bind_scorer(item_form).identity == same
    assert bind_scorer(item_form, params={"limit": 4}).identity != same
    assert bind_scorer(item_form, name="other").identity != same
