"""The built-in scorers: equality and containment, and that a missing expectation never passes."""

from typing import Any

import pytest

from assay.engine.evaluate.bind import Case, bind_scorer
from assay.engine.evaluate.cases import Call
from assay.engine.evaluate.rows import rows_of
from assay.records import Item, Response
from assay.registry import scorer
from tests.support import Lab

NAMES = ["exact_match", "contains"]


def passed(name: str, answer: str, truth: Any, **params: Any) -> bool | None:
    item, response = Item(id="i", ground_truth=truth), Response(item_id="i", response=answer)
    return scorer.get(name)(item, response, **params).passed


def test_every_scorer_has_its_name_and_a_sentence() -> None:
    for name in scorer.names():
        found = scorer.get(name)
        assert found.__name__ == name
        assert found.__doc__


@pytest.mark.parametrize(
    ("answer", "truth", "params", "exact", "within"),
    [
        ("Paris", "Paris", {}, True, True),
        (" Paris\n", "Paris", {}, True, True),
        ("It is Paris.", "Paris", {}, False, True),
        ("paris", "Paris", {}, False, False),
        ("paris", "Paris", {"case_sensitive": False}, True, True),
        ("STRASSE", "straße", {"case_sensitive": False}, True, True),
        ("B", ["A", "B"], {}, True, True),
        ("C", ["A", "B"], {}, False, False),
        ("4", 4, {}, True, True),
        ("4", 4.0, {}, True, True),
        ("4.0", 4.0, {}, True, True),
        ("True", True, {}, True, True),
        ("1", True, {}, False, False),
        ("4", {"answer": "4"}, {}, True, True),
        ("4", {"answers": ["four", 4]}, {}, True, True),
        ("4", {"expected_output": "4", "answer": "5"}, {}, True, True),
        ("4", {"target": "4"}, {}, True, True),
        ("4", {"label": "4"}, {}, True, True),
        ("4", {"mine": "4", "answer": "5"}, {"expected": "mine"}, True, True),
        ("4", None, {"expected_content": "4"}, True, True),
    ],
)
def test_answers(
    answer: str, truth: Any, params: dict[str, Any], exact: bool, within: bool
) -> None:
    assert passed("exact_match", answer, truth, **params) is exact
    assert passed("contains", answer, truth, **params) is within


def test_whitespace_can_count() -> None:
    assert passed("exact_match", "a ", "a", strip_whitespace=False) is False


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("truth", "params"),
    [
        (None, {}),
        ([], {}),
        ([None], {}),
        ({}, {}),
        ({"other": "x"}, {}),
        ({"answer": None}, {}),
        ({"answer": "x"}, {"expected": "anser"}),
        ([["x"]], {}),
    ],
)
@pytest.mark.parametrize("answer", ["", "None", "x"])
def test_a_missing_expectation_is_an_error_row_and_never_a_pass(
    name: str, truth: Any, params: dict[str, Any], answer: str
) -> None:
    bound = bind_scorer(scorer.get(name), params=params)
    case = Case(Item(id="i", ground_truth=truth), [Response(item_id="i", response=answer)])
    positional, keywords = bound.arguments(case, None)
    with pytest.raises(LookupError) as caught:
        bound.function(*positional, **keywords)
    (row,) = rows_of(Call(bound, case, b""), (None, caught.value), 0.0)
    assert (row.outcome, row.passed, row.score) == ("errored", None, None)


def test_the_nearest_field_is_offered() -> None:
    with pytest.raises(LookupError, match="did you mean 'answer'"):
        passed("exact_match", "x", {"answer": "x"}, expected="anser")


def test_everything_contains_nothing_so_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        passed("contains", "x", "")


def test_a_run_shows_missing_expectations_as_errors(lab: Lab) -> None:
    lab.rows[0]["ground_truth"] = {}
    done = lab.run()
    assert done.result.evaluation is not None
    assert done.result.evaluation.counts == {"scored": 12, "errored": 4}
    assert {
        row["item_id"]
        for row in lab.read("evaluation_results.jsonl")
        if row["outcome"] == "errored"
    } == {"q0"}
