"""Points in boxes; likeness by blocks; numbers where 0 is expected; the plain normalisations."""

from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.engine.evaluate.bind import bind_scorer
from assay.formats.sygra.metrics.unit import differences
from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer

BOX = {"x": 10, "y": 20, "width": 5, "height": 0}
TEXTS = st.text(st.sampled_from("abc d"), max_size=20)


def score(name: str, answer: str, truth: Any, output: Any = None, **params: Any) -> Score:
    bound = bind_scorer(scorer.get(name), params=params)
    response = Response(item_id="i", response=answer, output=output)
    return bound.function(Item(id="i", ground_truth=truth), response, **bound.params)


@pytest.mark.parametrize(
    ("answer", "truth", "params", "passes"),
    [
        ('{"x": 10, "y": 20}', BOX, {}, True),
        ('I click {"x": "15", "y": 20.0}', {"bbox": BOX}, {}, True),
        ('{"x": 15.01, "y": 20}', {"box": BOX}, {}, False),
        ('{"x": 12, "y": 19.9}', {"area": BOX}, {"expected": "area"}, False),
        ('{"p": [11, 20]}', BOX, {"x": "p.0", "y": "p.1"}, True),
    ],
)
def test_within_box(answer: str, truth: Any, params: dict[str, Any], passes: bool) -> None:
    found = score("within_box", answer, truth, **params)
    assert (found.passed, found.score, found.outcome) == (passes, float(passes), "scored")
    assert len(found.details["point"]) == 2


@pytest.mark.parametrize(
    "answer", ["here", '{"x": 1}', '{"x": null, "y": 1}', '{"x": "left", "y": 1}', "[1, 2]"]
)
def test_no_point_is_unparsed(answer: str) -> None:
    found = score("within_box", answer, BOX)
    assert found.outcome == "unparsed"
    assert found.error


def test_a_task_that_gives_an_object() -> None:
    assert score("within_box", "", BOX, output={"x": 12, "y": 20}).passed is True


@pytest.mark.parametrize(
    "truth", [None, {}, {"bbox": {"x": 1, "y": 1, "width": 3}}, {"bbox": [1, 2, 3, 4]}, "10,20"]
)
def test_no_box_is_an_error(truth: Any) -> None:
    with pytest.raises(LookupError):
        score("within_box", '{"x": 1, "y": 1}', truth)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_blocks_are_difflibs(one: str, other: str) -> None:
    found = score("edit_similarity", other, one, method="blocks", strip_whitespace=False)
    assert found.score == SequenceMatcher(None, one, other).ratio()
    steps = differences(one, other)
    assert sum(len(step["predicted"]) - len(step["golden"]) for step in steps) == len(other) - len(
        one
    )
    assert all(
        step["golden"] != step["predicted"] and step["golden"] in one and step["predicted"] in other
        for step in steps
    )
    assert {step["operation"] for step in steps} <= {"insert", "delete", "replace"}
    assert (steps == []) is (one == other)


@pytest.mark.parametrize(
    ("answer", "truth", "params", "passes"),
    [
        ("9", 0, {"zero_tolerance": 10}, True),
        ("11", 0, {"zero_tolerance": 10}, False),
        ("9", 0, {}, False),
        ("9", 1, {"zero_tolerance": 10}, False),
        ("120", 100, {"relative_tolerance": 0.2, "tolerance": 0, "zero_tolerance": 10}, True),
        ("121", 100, {"relative_tolerance": 0.2, "tolerance": 0, "zero_tolerance": 50}, False),
    ],
)
def test_numbers_where_nothing_is_expected(
    answer: str, truth: int, params: dict[str, Any], passes: bool
) -> None:
    assert score("numeric_match", answer, truth, **params).passed is passes


@pytest.mark.parametrize(
    ("how", "same", "other"),
    [
        ("lower", ("A  b", "a  B"), ("a  b", "a b")),
        ("spaces", ("a\n b ", "a b"), ("A b", "a b")),
        ("lower_spaces", (" A\tb", "a B"), ("straße", "strasse")),
    ],
)
def test_plain_normalisations_do_only_what_they_say(
    how: str, same: tuple[str, str], other: tuple[str, str]
) -> None:
    assert score("exact_match", same[0], same[1], normalize=how).passed is True
    assert score("exact_match", other[0], other[1], normalize=how).passed is False
