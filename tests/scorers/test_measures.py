"""Every built-in scorer on answers as models give them: what passes, what scores, what is unparsed."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.engine.evaluate.bind import bind_scorer
from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from tests.support import Lab

NEEDS_TRUTH = [
    "exact_match",
    "contains",
    "regex_match",
    "json_match",
    "numeric_match",
    "choice",
    "f1",
    "edit_similarity",
]
TEXTS = st.text(st.sampled_from("the cat a sat,. 12"), max_size=24)


def score(name: str, answer: str, truth: Any = None, data: Any = None, **params: Any) -> Score:
    bound = bind_scorer(scorer.get(name), params=params)
    item = Item(id="i", data=data, ground_truth=truth)
    return bound.function(item, Response(item_id="i", response=answer), **bound.params)


def verdict(
    name: str, answer: str, truth: Any = None, data: Any = None, **params: Any
) -> bool | str | None:
    found = score(name, answer, truth, data, **params)
    return found.passed if found.outcome == "scored" else found.outcome


@pytest.mark.parametrize("name", NEEDS_TRUTH)
@pytest.mark.parametrize("truth", [None, {}, {"other": 1}, []])
def test_no_expectation_is_no_pass(name: str, truth: Any) -> None:
    if name == "json_match" and truth == {"other": 1}:  # an object is an expected JSON itself
        assert verdict(name, "", truth) == "unparsed"
        return
    with pytest.raises(LookupError):
        score(name, "", truth)


@pytest.mark.parametrize(
    ("answer", "truth", "params", "expected"),
    [
        ("The Eiffel-Tower!", "eiffeltower", {"normalize": "squad"}, True),
        ("the", "", {"normalize": "squad"}, True),
        ('**"Paris."**', "paris", {"normalize": "basic"}, True),
        ("running dogs", "run dog", {"stemming": True}, True),
        ("running dogs", "run dog", {}, False),
        ("x </think> Paris", "Paris", {"strip_reasoning": True}, True),
        ("x </think> Paris", "Paris", {"strip_reasoning": False}, False),
        ('{"city": {"name": "Paris"}}', "Paris", {"response_field": "city.name"}, True),
        ("Paris", "Paris", {"response_field": "city"}, "unparsed"),
        ("anything", None, {"expected_content": "anything"}, True),
    ],
)
def test_exact_match(answer: str, truth: Any, params: dict[str, Any], expected: bool | str) -> None:
    assert verdict("exact_match", answer, truth, **params) == expected


def test_contains_can_ask_for_all() -> None:
    assert score(
        "contains", "red and blue", ["red", "blue", "green"], require="all"
    ).score == pytest.approx(2 / 3)
    assert verdict("contains", "red, blue", ["red", "blue"], require="all") is True
    with pytest.raises(ValueError, match="empty"):
        score("contains", "x", "the", normalize="squad")


@pytest.mark.parametrize(
    ("answer", "truth", "params", "expected"),
    [
        ("Order 66", None, {"pattern": r"\d+"}, True),
        ("Order", None, {"pattern": r"\d+"}, False),
        ("PARIS", {"pattern": "paris"}, {"flags": "i"}, True),
        ("PARIS", "paris", {"flags": 2}, True),
        ("a\nParis", "^paris$", {"flags": ["IGNORECASE", "MULTILINE"]}, True),
        ("Paris!", "Paris", {"full": True}, False),
        ("b", ["a", "b"], {}, True),
    ],
)
def test_regex_match(answer: str, truth: Any, params: dict[str, Any], expected: bool) -> None:
    assert verdict("regex_match", answer, truth, **params) is expected


def test_a_regular_expression_keeps_its_groups_and_its_time() -> None:
    assert score("regex_match", "x = 12", None, pattern=r"(\w) = (\d+)").details == {
        "match": "x = 12",
        "groups": ["x", "12"],
    }
    with pytest.raises(TimeoutError, match="gave up"):
        score("regex_match", "a" * 60 + "!", None, pattern="^(a+)+$", seconds=0.2)
    assert verdict("regex_match", "a" * 60, None, pattern="^(a+)+$") is True
    assert verdict("regex_match", "é\n" * 9000 + "7", None, pattern=r"(\s*x*)*7$") is True
    with pytest.raises(ValueError, match="not a regular expression"):
        score("regex_match", "x", None, pattern="(")
    with pytest.raises(ValueError, match="not a flag"):
        score("regex_match", "x", None, pattern="x", flags="q")


@pytest.mark.parametrize(
    ("answer", "truth", "params", "passes", "points"),
    [
        ('{"a": 1, "b": 2}', {"expected_json": {"a": 1}}, {}, True, 1.0),
        ('{"a": 1, "b": 2}', {"expected_json": {"a": 1}}, {"strict": True}, False, 0.5),
        ('{"a": 1.0}', {"expected_json": {"a": 1}}, {}, True, 1.0),
        ('{"a": true}', {"expected_json": {"a": 1}}, {}, False, 0.0),
        ('Sure: {"a": {"b": [1, 2]}}', {"expected_json": {"a": {"b": [1, 3]}}}, {}, False, 0.5),
        ('{"a": [1]}', {"expected_json": {"a": [1, 2]}}, {}, False, 0.0),
        ('{"a": 1}', '{"a": 1}', {}, True, 1.0),
        ('{"a": 1}', {"a": 1, "b": 2}, {}, False, 0.5),
        ("[]", {"expected_json": {"a": {"b": 1}}}, {}, False, 0.0),
        ('{"user": {"name": "x"}}', None, {"expected_keys": ["user.name", "user.age"]}, False, 0.5),
        ('{"a": 1, "z": 1}', None, {"expected_keys": ["a"], "strict": True}, False, 0.5),
        ('{"a": 1.01}', None, {"expected_json": {"a": 1}, "tolerance": 0.1}, True, 1.0),
        ('{"a": "x"}', None, {"schema": {"properties": {"a": {"type": "integer"}}}}, False, 0.0),
        ('{"a": 3}', None, {"schema": {"properties": {"a": {"type": "integer"}}}}, True, 1.0),
        ('{"r": {"a": 3}}', None, {"expected_json": {"a": 3}, "response_field": "r"}, True, 1.0),
    ],
)
def test_json_match(
    answer: str, truth: Any, params: dict[str, Any], passes: bool, points: float
) -> None:
    found = score("json_match", answer, truth, **params)
    assert (found.passed, found.score) == (passes, pytest.approx(points))
    assert bool(found.details) is not passes


def test_json_match_names_what_does_not_hold() -> None:
    found = score("json_match", '{"b": {"c": 1}, "x": 1}', {"a": 1, "b": {"c": 2}}, strict=True)
    assert found.details == {"missing": ["a"], "wrong": ["b.c"], "unexpected": ["x"]}
    assert verdict("json_match", "no json", {"a": 1}) == "unparsed"
    with pytest.raises(ValueError, match="not a JSON Schema"):
        score("json_match", "{}", schema={"type": "objekt"})


@pytest.mark.parametrize(
    ("answer", "truth", "params", "expected"),
    [
        ("1,000", 1000, {}, True),
        ("1e3", "1,000", {}, True),
        (r"So \boxed{\frac{3}{4}}", 0.75, {}, True),
        ("3/4", "0.75", {}, True),
        ("It grew by 50%", 0.5, {}, True),
        ("It grew by 50%", 50, {}, True),
        ("0.5", "50%", {}, True),
        ("$1.2 million", 1_200_000, {}, True),
        ("The answer is 42.", {"expected_value": 42}, {}, True),
        ("The answer is 42.", {"answer": "She has 40+2.\n#### 42"}, {}, True),
        ("3.14", 3.14159, {"tolerance": 0.01}, True),
        ("103", 100, {"relative_tolerance": 0.05}, True),
        ("103", 100, {}, False),
        ("7 of 9", 7, {"position": "first"}, True),
        ("7 of 9", 7, {}, False),
        ("x: 5; y: 6", 5, {"extract_pattern": r"x: (\d+)"}, True),
        ("y: 6", 5, {"extract_pattern": r"x: (\d+)"}, "unparsed"),
        ("no idea", 5, {}, "unparsed"),
        ("<think>5", 5, {}, "unparsed"),
        ("2", None, {"expected_value": [1, 2]}, True),
        ("12345678901234567891", 12345678901234567890, {}, False),
    ],
)
def test_numeric_match(
    answer: str, truth: Any, params: dict[str, Any], expected: bool | str
) -> None:
    assert verdict("numeric_match", answer, truth, **params) == expected


def test_the_score_of_a_number_falls_with_its_distance() -> None:
    assert score("numeric_match", "90", 100).score == pytest.approx(0.9)
    assert score("numeric_match", "0.5", 0.25).score == pytest.approx(0.75)
    assert score("numeric_match", "1000", 1).score == 0
    with pytest.raises(LookupError, match="not a number"):
        score("numeric_match", "1", "one")


@pytest.mark.parametrize(
    ("answer", "truth", "data", "expected"),
    [
        ("The answer is (B).", "B", None, True),
        ("The answer is (B).", "A", None, False),
        ("b", 1, None, True),
        ("Rome", "Rome", {"choices": ["Paris", "Rome"]}, True),
        ("B", "Rome", {"choices": ["Paris", "Rome"]}, True),
        ("Rome", "B", {"options": {"A": "Paris", "B": "Rome"}}, True),
        ("B", "B", {"choices": {"label": ["A", "B"], "text": ["Paris", "Rome"]}}, True),
        ("C", "B", {"choices": ["Paris", "Rome"]}, "unparsed"),
        ("A or B", "B", None, "unparsed"),
        ("(E)", "E", {"choices": list("vwxyz")}, True),
    ],
)
def test_choice(answer: str, truth: Any, data: Any, expected: bool | str) -> None:
    assert verdict("choice", answer, truth, data) == expected


def test_an_expected_option_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(LookupError, match="none of A, B"):
        score("choice", "A", "Madrid", {"choices": ["Paris", "Rome"]})


def test_f1_is_the_best_over_references() -> None:
    found = score("f1", "the quick brown fox", ["a lazy dog", "quick fox jumps"])
    assert found.score == pytest.approx(2 / 3)
    assert found.details == {"precision": pytest.approx(2 / 3), "recall": pytest.approx(2 / 3)}
    assert verdict("f1", "quick fox", "quick brown", threshold=0.6) is False
    assert verdict("f1", "dog", "cat") is False


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_scores_stay_in_bounds_and_their_references_have_no_order(
    answer: str, references: list[str]
) -> None:
    for name, params in (
        ("f1", {}),
        ("edit_similarity", {"normalize": "squad"}),
        ("exact_match", {"normalize": "squad"}),
    ):
        found = score(name, answer, references, **params)
        assert found.score is not None
        assert 0 <= found.score <= 1
        assert score(name, answer, references[::-1], **params).score == found.score
    if verdict("exact_match", answer, references, normalize="squad"):
        assert score("f1", answer, references).score == 1
        assert score("edit_similarity", answer, references, normalize="squad").score == 1


def test_edit_similarity() -> None:
    assert score("edit_similarity", "kitten", "sitting").score == pytest.approx(1 - 3 / 7)
    assert verdict("edit_similarity", "colour", "color") is True
    assert verdict("edit_similarity", "colour", "cat") is False


@pytest.mark.parametrize(
    ("answer", "params", "expected"),
    [
        ("abc", {"min_length": 3, "max_length": 3}, True),
        ("abc", {"min_length": 4}, False),
        ("abc", {"max_length": 2}, False),
        ("a b c", {"expected_length": 3, "unit": "words"}, True),
        ("a\nb", {"expected_length": 2, "unit": "lines"}, True),
        ("", {"max_length": 0, "unit": "lines"}, True),
        ("x</think>ab", {"max_length": 2, "strip_reasoning": True}, True),
    ],
)
def test_length_check(answer: str, params: dict[str, Any], expected: bool) -> None:
    assert verdict("length_check", answer, **params) is expected


def test_length_check_needs_a_bound() -> None:
    with pytest.raises(LookupError, match="min_length"):
        score("length_check", "x")


@pytest.mark.parametrize(
    ("answer", "params", "expected"),
    [
        ('{"a": 1}', {}, True),
        ('```json\n{"a": 1}\n```', {}, True),
        ('```json\n{"a": 1}\n```', {"around": "nothing"}, False),
        ('Here: {"a": 1}', {}, False),
        ('Here: {"a": 1}', {"around": "prose"}, True),
        ("[1]", {"kind": "object"}, False),
        ("[1]", {"kind": "array"}, True),
        ("{'a': 1}", {}, False),
        ("NaN", {}, False),
        ("", {}, False),
        ("<think>{</think>{}", {}, True),
    ],
)
def test_is_json(answer: str, params: dict[str, Any], expected: bool) -> None:
    assert verdict("is_json", answer, **params) is expected


def test_an_answer_without_the_field_leaves_an_unparsed_row(lab: Lab) -> None:
    lab.config["evaluation_methods"] = [
        {"name": "exact_match", "params": {"response_field": "city"}}
    ]
    lab.run()
    rows = lab.read("evaluation_results.jsonl")
    assert {(row["label"], row["outcome"], row.get("error_kind")) for row in rows} == {
        ("exact_match", "unparsed", None)
    }
