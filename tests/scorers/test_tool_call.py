"""Calls of tools against those that are expected, and answers whose calls cannot be read."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import assay
from assay.errors import UserError
from assay.interfaces import Score
from assay.records import Item, Response
from assay.scorers.tool_call import tool_call
from assay.server import Options, running
from assay.text.expected import NoExpectation

PARIS = {"name": "weather", "arguments": {"city": "Paris", "days": 2}}
ROME = {"name": "weather", "arguments": {"city": "Rome"}}


def made(name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": text}}


def score(truth: Any, *calls: dict[str, Any], **params: Any) -> Score:
    answers = [made(call["name"], call["arguments"]) for call in calls]
    return tool_call(
        Item(id="i", ground_truth=truth),
        Response(item_id="i", tool_calls=answers or None),
        **params,
    )


def test_equal_calls_pass_in_any_order_unless_it_matters() -> None:
    assert score([PARIS, ROME], ROME, PARIS).passed
    late = score([PARIS, ROME], ROME, PARIS, order=True)
    assert (late.passed, late.score, late.details["matched"]) == (False, 0.5, 1)
    assert late.details["reason"] == "weather was called with other arguments, or in another order"
    assert score([PARIS, ROME], PARIS, ROME, order=True).passed


def test_further_calls_are_too_much_unless_a_subset_is_enough() -> None:
    more = score([PARIS], PARIS, ROME)
    assert (more.passed, more.score) == (False, 0.5)
    assert more.details["unexpected"] == [ROME]
    assert more.details["reason"] == "weather was called, which nothing asks for"
    assert score([PARIS], PARIS, ROME, match="subset").passed
    assert score([PARIS], PARIS, PARIS).passed is False


def test_arguments() -> None:
    longer = {**PARIS, "arguments": {**PARIS["arguments"], "unit": "C"}}
    close = {**PARIS, "arguments": {"city": "Paris", "days": 2.05}}
    assert score([PARIS], {**PARIS, "arguments": {"days": 2.0, "city": "Paris"}}).passed
    assert not score([PARIS], longer).passed
    assert score([PARIS], longer, arguments="subset").passed
    assert not score([longer], PARIS, arguments="subset").passed
    assert not score([PARIS], close).passed
    assert score([PARIS], close, tolerance=0.1).passed
    assert score([PARIS], ROME, arguments="ignore").passed


def test_no_call() -> None:
    nothing = score([PARIS])
    assert (nothing.passed, nothing.score) == (False, 0.0)
    assert nothing.details["reason"] == "no tool was called; expected weather"
    assert score([]).passed
    assert score({"tool_calls": []}).passed
    surplus = score([], PARIS)
    assert (surplus.passed, surplus.score) == (False, 0.0)
    assert (
        score([PARIS], {"name": "search", "arguments": {}}).details["reason"]
        == "weather was not called"
    )


@pytest.mark.parametrize("arguments", ["{", '{"city": "Par', "[1]", "Paris", "null", "[" * 5000])
def test_arguments_that_are_not_an_object_are_unparsed(arguments: str) -> None:
    answer = tool_call(
        Item(id="i", ground_truth=[PARIS]),
        Response(item_id="i", tool_calls=[made("weather", arguments)]),
    )
    assert answer.outcome == "unparsed"
    assert "call 1 of weather: the arguments are not" in str(answer.error)


@pytest.mark.parametrize(
    "expected",
    [
        PARIS,
        [PARIS],
        {"tool_calls": [PARIS]},
        {"answer": [PARIS]},
        [made("weather", PARIS["arguments"])],
        [{"type": "tool_use", "id": "x", "name": "weather", "input": PARIS["arguments"]}],
        [{**PARIS, "arguments": json.dumps(PARIS["arguments"])}],
    ],
)
def test_forms_of_what_is_expected(expected: Any) -> None:
    assert score(expected, PARIS).passed
    assert not score(expected, ROME).passed


def test_expectations_that_are_none() -> None:
    assert score({"wanted": [PARIS]}, PARIS, expected="wanted").passed
    for nothing in (None, "Paris", {"x": 1}, ["Paris"]):
        with pytest.raises(NoExpectation):
            score(nothing, PARIS)
    with pytest.raises(UserError, match="an expected call cannot be read"):
        score([{"name": "weather", "arguments": "{"}], PARIS)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 2), max_size=4), st.lists(st.integers(0, 2), max_size=4), st.booleans()
)
def test_as_many_calls_match_as_can(wanted: list[int], calls: list[int], order: bool) -> None:
    """Expected calls name one argument, calls have two: each fits several, so that greedy pairs are too few."""
    expected = [{"name": "f", "arguments": {"x": n % 2}} for n in wanted]
    answers = [{"name": "f", "arguments": {"x": n % 2, "y": n}} for n in calls]
    fits = [[a % 2 == b % 2 for b in calls] for a in wanted]
    best = 0
    for size in range(1, min(len(wanted), len(calls)) + 1):
        for rows in itertools.combinations(range(len(wanted)), size):
            places = itertools.combinations if order else itertools.permutations
            if any(
                all(fits[i][j] for i, j in zip(rows, chosen, strict=True))
                for chosen in places(range(len(calls)), size)
            ):
                best = size
    given = score(expected, *answers, order=order, arguments="subset")
    assert given.details["matched"] == best
    assert given.passed == (best == len(wanted) == len(calls))


def test_many_equal_calls_are_paired() -> None:
    assert score([PARIS] * 200, *[PARIS] * 200).passed


ANSWERS = """
def answer(request):
    text = request["messages"][-1]["content"]
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": text}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
"""


def test_a_servers_broken_call_is_kept_and_marked(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(ANSWERS)
    texts = ['{"city": "Paris", "days": 2}', '{"city": "Par']
    items = [
        {"id": str(n), "data": {"question": text}, "ground_truth": [PARIS]}
        for n, text in enumerate(texts)
    ]
    with running(Options(answers=f"{tmp_path}/answers.py:answer")) as url:
        assay.run(
            {
                "name": "t",
                "dataset": items,
                "models": [{"name": "m", "endpoint": url}],
                "evaluation_methods": ["tool_call"],
                "metrics": ["pass_rate"],
                "output_dir": str(tmp_path / "out"),
            }
        )
    rows, labels = (
        sorted(
            map(json.loads, (tmp_path / "out" / name).read_text().splitlines()),
            key=lambda row: row["item_id"],
        )
        for name in ("responses.jsonl", "evaluation_results.jsonl")
    )
    good, bad = rows
    assert "invalid_tool_calls" not in good["metadata"]
    assert bad["outcome"] == "ok"
    assert bad["tool_calls"][0]["function"]["arguments"] == texts[1]
    (reason,) = bad["metadata"]["invalid_tool_calls"]
    assert reason.startswith("call 1 of weather: the arguments are not JSON")
    assert [label["outcome"] for label in labels] == ["scored", "unparsed"]
