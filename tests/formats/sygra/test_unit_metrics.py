"""SyGra's unit metrics: its worked cases, its defaults, its metadata; difflib and brute force as oracles."""

import math
import re
from difflib import SequenceMatcher
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.formats.sygra.metrics import (
    BaseMetricMetadata,
    BaseUnitMetric,
    UnitMetricRegistry,
    UnitMetricResult,
    unit_metric,
)
from assay.formats.sygra.metrics.unit import (
    ActionWithinBboxMetric,
    ExactMatchMetric,
    ScrollAmountMetric,
)

TEXTS = st.text(st.sampled_from("aAßÉé \t\n.b"), max_size=12)
BUILT_IN = [
    "action_within_bbox",
    "exact_match",
    "fuzzy_match",
    "scroll_amount",
    "scroll_direction",
    "typed_value_match",
]


def judged(name: str, golden: Any, predicted: Any, **params: Any) -> UnitMetricResult:
    (result,) = UnitMetricRegistry.get_metric(name, **params).evaluate([golden], [predicted])
    return result


def exact(golden: Any, predicted: Any, **params: Any) -> bool:
    return judged(
        "exact_match", {"text": golden}, {"text": predicted}, key="text", **params
    ).correct


# ---- results


def test_a_result_survives_the_way_through_json() -> None:
    result = UnitMetricResult(True, {"a": 1}, {"b": 2}, {"c": 3})
    assert result.to_dict() == {
        "correct": True,
        "golden": {"a": 1},
        "predicted": {"b": 2},
        "metadata": {"c": 3},
    }
    assert UnitMetricResult.from_dict(result.to_dict()) == result
    assert UnitMetricResult.from_dict({}) == UnitMetricResult(False, {}, {}, {})


def test_what_a_result_refuses() -> None:
    with pytest.raises(ValueError, match=r"^golden must be a dictionary$"):
        UnitMetricResult(True, "x", {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^predicted must be a dictionary$"):
        UnitMetricResult(True, {}, None)  # type: ignore[arg-type]
    assert UnitMetricResult(True, {}, {}, None).metadata == {}  # type: ignore[arg-type]


# ---- exact match


@pytest.mark.parametrize(
    ("golden", "predicted", "params", "correct"),
    [
        ("Hello World", "hello \n world ", {}, True),
        ("Hello", "hello", {"case_sensitive": True}, False),
        ("a b", "a  b", {"normalize_whitespace": False}, False),
        ("a", "a ", {"normalize_whitespace": False}, False),
        ("A", "a", {"normalize_whitespace": False}, True),
        ("Paris.", "Paris", {}, False),
        ("the cat", "cat", {}, False),
        ("straße", "STRASSE", {}, False),
        ("é", "e\u0301", {}, False),
        (None, "none", {}, True),
        (True, "TRUE", {}, True),
        (1, "1", {}, True),
        (1, 1.0, {}, False),
    ],
)
def test_exact_match(golden: Any, predicted: Any, params: dict[str, Any], correct: bool) -> None:
    assert exact(golden, predicted, **params) is correct


def test_exact_match_without_its_key() -> None:
    assert judged("exact_match", {}, {}, key="text").correct
    assert judged("exact_match", {"a": 1, "b": 2}, {"a": 1, "b": 2}).correct
    assert not judged("exact_match", {"a": 1, "b": 2}, {"b": 2, "a": 1}).correct
    assert judged("exact_match", {"a": 1}, {"a": 1}, key="").correct
    with pytest.raises(ValueError, match="golden must be a dictionary"):
        judged("exact_match", "x", {"text": "x"}, key="text")


def test_exact_match_tells_the_raw_values() -> None:
    assert judged("exact_match", {"text": " A"}, {"text": None}, key="text").metadata == {
        "validator": "exact_match",
        "golden_text": " A",
        "predicted_text": None,
        "case_sensitive": False,
        "normalize_whitespace": True,
    }


class Unwritable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_what_raises_is_wrong_and_says_why() -> None:
    result = judged("exact_match", {"text": Unwritable()}, {"text": "x"}, key="text")
    assert (result.correct, result.metadata) == (
        False,
        {"validator": "exact_match", "error": "no text"},
    )
    result = judged("scroll_amount", {"amount": "much"}, {})
    assert not result.correct
    assert set(result.metadata) == {"validator", "error"}


@settings(deadline=None)
@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_exact_match_by_its_definition(one: str, other: str, case: bool, spaces: bool) -> None:
    def made(text: str) -> str:
        text = re.sub(r"\s+", " ", text.strip()) if spaces else text
        return text if case else text.lower()

    assert exact(one, other, case_sensitive=case, normalize_whitespace=spaces) is (
        made(one) == made(other)
    )


# ---- alike texts


def test_typed_value_match() -> None:
    found = judged("typed_value_match", {"text": "New  York"}, {"text": "new yrok"})
    similarity = SequenceMatcher(None, "new york", "new yrok").ratio()
    assert found.correct is True
    assert found.metadata == {
        "validator": "typed_value_match",
        "golden_text": "New  York",
        "predicted_text": "new yrok",
        "exact_match": False,
        "similarity_score": similarity,
        "fuzzy_match": True,
        "differences": [
            {"operation": "insert", "golden": "", "predicted": "r"},
            {"operation": "delete", "golden": "r", "predicted": ""},
        ],
    }
    assert judged("typed_value_match", {"text": "a"}, {"text": "b"}).correct is False
    assert judged("typed_value_match", {"text": "A "}, {"text": "a"}).metadata["differences"] == []
    assert judged("typed_value_match", "x", 7).golden == {"value": "x"}
    assert judged("typed_value_match", {}, {}).correct, "two texts that are missing are equal"


@settings(deadline=None)
@given(TEXTS, TEXTS, st.floats(0, 1))
def test_alike_is_what_difflib_says(one: str, other: str, threshold: float) -> None:
    made = [re.sub(r"\s+", " ", text.strip().lower()) for text in (one, other)]
    ratio = SequenceMatcher(None, *made).ratio()
    typed = judged(
        "typed_value_match", {"text": one}, {"text": other}, fuzzy_match_threshold=threshold
    )
    fuzzy = judged("fuzzy_match", {"text": one}, {"text": other}, key="text", threshold=threshold)
    assert typed.correct is fuzzy.correct is (ratio >= threshold)
    assert typed.metadata["similarity_score"] == fuzzy.metadata["similarity"] == ratio


def test_fuzzy_match() -> None:
    found = judged(
        "fuzzy_match",
        {"text": "Geoffrey Hinton"},
        {"text": "geoffrey  hinton!"},
        key="text",
        threshold=0.8,
    )
    assert found.correct
    assert found.metadata == {
        "validator": "fuzzy_match",
        "similarity": SequenceMatcher(None, "geoffrey hinton", "geoffrey hinton!").ratio(),
        "threshold": 0.8,
    }
    case = {"key": "text", "case_sensitive": True}
    assert not judged("fuzzy_match", {"text": "ABCDE"}, {"text": "abcde"}, **case).correct
    assert judged("fuzzy_match", {"text": "ABCDE"}, {"text": "abcde"}, key="text").correct


# ---- actions


BOX = {"bbox": {"x": 10, "y": "20", "width": 5, "height": 0}}


@pytest.mark.parametrize(
    ("golden", "predicted", "correct"),
    [
        (BOX, {"x": 10, "y": 20}, True),
        (BOX, {"x": "15", "y": 20.0}, True),
        (BOX, {"x": 15.01, "y": 20}, False),
        (BOX, {"x": 12, "y": 19.9}, False),
        (BOX, {"x": "left", "y": 20}, False),
        (BOX, {"x": 12}, False),
        (BOX, {"x": None, "y": 20}, False),
        (BOX, "12,20", False),
        ({"bbox": {"x": 1, "y": 1, "width": 3}}, {"x": 1, "y": 1}, False),
        ({"bbox": [0, 0, 9, 9]}, {"x": 1, "y": 1}, False),
        ({}, {"x": 1, "y": 1}, False),
    ],
)
def test_action_within_bbox(golden: Any, predicted: Any, correct: bool) -> None:
    found = judged("action_within_bbox", golden, predicted)
    assert found.correct is correct
    assert found.metadata == {
        "validator": "action_within_bbox",
        "predicted_x_key": "x",
        "predicted_y_key": "y",
        "golden_bbox_key": "bbox",
    }


def test_action_within_bbox_with_other_keys() -> None:
    metric = ActionWithinBboxMetric(
        predicted_x_key="px", predicted_y_key="py", golden_bbox_key="area"
    )
    area = {"area": {"x": 0, "y": 0, "width": 1, "height": 1}}
    assert [
        each.correct
        for each in metric.evaluate([area, area], [{"px": 1, "py": 1}, {"x": 1, "y": 1}])
    ] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("golden", "predicted", "correct"),
    [
        ("up", "up", True),
        ("up", "down", False),
        ("Up", "Up", False),
        ("north", "north", False),
        (None, None, False),
    ],
)
def test_scroll_direction(golden: Any, predicted: Any, correct: bool) -> None:
    found = judged("scroll_direction", {"direction": golden}, {"direction": predicted})
    assert found.correct is correct
    assert found.metadata == {
        "validator": "scroll_direction",
        "golden_direction": golden,
        "predicted_direction": predicted,
    }
    keys = {"golden_direction_key": "g", "predicted_direction_key": "p"}
    assert judged("scroll_direction", {"g": golden}, {"p": predicted}, **keys).correct is correct


@pytest.mark.parametrize(
    ("golden", "predicted", "params", "correct", "difference", "percent"),
    [
        (100, 120, {}, True, 20.0, 20.0),
        (100, 121, {}, False, 21.0, 21.0),
        (-100, -80, {}, True, 20.0, 20.0),
        ("100", 90.0, {"tolerance_percent": 5}, False, 10.0, 10.0),
        (0, 10, {}, True, 10.0, math.inf),
        (0, -10.5, {}, False, 10.5, math.inf),
        (0, 0, {"scroll_threshold": 0}, True, 0.0, 0.0),
    ],
)
def test_scroll_amount(
    golden: Any,
    predicted: Any,
    params: dict[str, Any],
    correct: bool,
    difference: float,
    percent: float,
) -> None:
    found = judged("scroll_amount", {"amount": golden}, {"amount": predicted}, **params)
    assert found.correct is correct
    assert found.metadata == {
        "validator": "scroll_amount",
        "is_valid": correct,
        "difference": difference,
        "difference_percent": percent,
        "tolerance_used": params.get("tolerance_percent", 20.0),
        "scroll_threshold": params.get("scroll_threshold", 10.0),
        "golden_scroll_amount": float(golden),
        "predicted_scroll_amount": float(predicted),
    }


def test_amounts_that_are_missing_are_none() -> None:
    assert judged("scroll_amount", {}, {}).correct


# ---- parameters


@pytest.mark.parametrize("name", BUILT_IN)
def test_lists_of_different_length(name: str) -> None:
    metric = UnitMetricRegistry.get_metric(name)
    expected = (
        f"^{type(metric).__name__}: golden and predicted must have same length \\(got 2 and 1\\)$"
    )
    with pytest.raises(ValueError, match=expected):
        metric.evaluate([{}, {}], [{}])
    assert metric.evaluate([], []) == []


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_metric_says_what_it_is(name: str) -> None:
    metric = UnitMetricRegistry.get_metric(name, unknown="ignored")
    assert metric.get_metric_name() == metric.metadata.name == name
    assert (metric.metadata.range, metric.metadata.higher_is_better) == ((0.0, 1.0), True)
    assert metric.metadata.display_name
    assert metric.metadata.description
    assert metric.config == {"unknown": "ignored"}


@pytest.mark.parametrize(
    ("given", "means"), [("yes", True), ("on", True), ("No", False), ("true", True), (0, False)]
)
def test_flags_are_read_leniently(given: Any, means: bool) -> None:
    assert ExactMatchMetric(case_sensitive=given).case_sensitive is means


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("exact_match", {"case_sensitive": "perhaps"}),
        ("exact_match", {"key": 3}),
        ("fuzzy_match", {"threshold": 1.5}),
        ("typed_value_match", {"fuzzy_match_threshold": -0.1}),
        ("scroll_amount", {"tolerance_percent": -1}),
        ("scroll_amount", {"scroll_threshold": "few"}),
        ("action_within_bbox", {"golden_bbox_key": None}),
    ],
)
def test_a_bad_parameter_is_a_value_error_that_names_it(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(params))):
        UnitMetricRegistry.get_metric(name, **params)


def test_numbers_may_be_texts() -> None:
    assert ScrollAmountMetric(tolerance_percent="7.5").tolerance_percent == 7.5


# ---- the registry


class Always(BaseUnitMetric):
    def validate_config(self) -> None:
        self.word = self.config.get("word", "")
        if self.word == "bad":
            raise ValueError("bad word")

    def get_metadata(self) -> BaseMetricMetadata:
        return BaseMetricMetadata(name="always", display_name="Always", description="Always right")

    def evaluate(self, golden: list[Any], predicted: list[Any]) -> list[UnitMetricResult]:
        return [
            UnitMetricResult(True, one, other) for one, other in zip(golden, predicted, strict=True)
        ]


@pytest.fixture(autouse=True)
def _the_registry_as_it_was() -> Any:
    UnitMetricRegistry.list_metrics()
    kept = dict(UnitMetricRegistry._metrics)
    yield
    UnitMetricRegistry._metrics.clear()
    UnitMetricRegistry._metrics.update(kept)


def test_what_is_registered() -> None:
    assert UnitMetricRegistry.list_metrics() == BUILT_IN
    assert UnitMetricRegistry.get_metrics_info()["exact_match"]["class"] == "ExactMatchMetric"
    assert UnitMetricRegistry.get_metric_class("exact_match") is ExactMatchMetric


def test_a_metric_of_ones_own(caplog: pytest.LogCaptureFixture) -> None:
    assert unit_metric("always")(Always) is Always
    assert UnitMetricRegistry.has_metric("always")
    assert UnitMetricRegistry.get_metric("always", word="x").word == "x"
    with pytest.raises(ValueError, match="bad word"):
        UnitMetricRegistry.get_metric("always", word="bad")
    UnitMetricRegistry.register("always", Always)
    assert not caplog.records, "the same class again is no conflict"
    UnitMetricRegistry.register("exact_match", Always)
    assert UnitMetricRegistry.get_metric_class("exact_match") is Always
    assert "Always replaces ExactMatchMetric" in caplog.text
    assert UnitMetricRegistry.unregister("always") is True
    assert UnitMetricRegistry.unregister("always") is False


def test_cleared_is_cleared() -> None:
    UnitMetricRegistry.clear()
    assert UnitMetricRegistry.list_metrics() == []
    with pytest.raises(
        KeyError, match=re.escape("Unit metric 'exact_match' not found in registry.")
    ):
        UnitMetricRegistry.get_metric("exact_match")


def test_what_the_registry_refuses() -> None:
    with pytest.raises(KeyError) as caught:
        UnitMetricRegistry.get_metric("exact_macth")
    assert f"Unit metric 'exact_macth' not found in registry. Available metrics: {BUILT_IN}" in str(
        caught.value
    )
    assert "did you mean 'exact_match'?" in str(caught.value)
    with pytest.raises(ValueError, match="non-empty string"):
        UnitMetricRegistry.register("", Always)
    with pytest.raises(ValueError, match="must be a class"):
        UnitMetricRegistry.register("x", Always())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must inherit from BaseUnitMetric, got int"):
        UnitMetricRegistry.register("x", int)
    with pytest.raises(TypeError, match="int must inherit from BaseUnitMetric"):
        unit_metric("x")(int)


def test_by_dotted_path_and_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from assay import registry

    path = f"{Always.__module__}.Always"
    assert UnitMetricRegistry.get_metric_class(path) is Always
    with pytest.raises(KeyError, match="cannot be imported: ModuleNotFoundError"):
        UnitMetricRegistry.get_metric("no_such_module.Metric")
    with pytest.raises(KeyError, match="is not a class that inherits from BaseUnitMetric"):
        UnitMetricRegistry.get_metric("json.dumps")
    entry = EntryPoint("theirs", f"{Always.__module__}:Always", "assay.sygra_unit_metrics")
    monkeypatch.setattr(
        registry, "_entry_points", lambda group: {"theirs": entry} if group == entry.group else {}
    )
    assert UnitMetricRegistry.get_metric_class("theirs") is Always


def test_a_metric_must_be_whole() -> None:
    class Half(BaseUnitMetric):
        def validate_config(self) -> None: ...

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


def test_what_a_metric_says_about_itself_has_the_originals_defaults_and_any_other_field() -> None:
    about = BaseMetricMetadata(name="n", display_name="N", description="d", unit="%", since=[1])
    told: dict[str, Any] = {
        "name": "n",
        "display_name": "N",
        "description": "d",
        "range": (0.0, 1.0),
        "higher_is_better": True,
        "metric_type": "custom",
        "unit": "%",
        "since": [1],
    }
    assert about.model_dump() == told
    assert (about.unit, about) == ("%", BaseMetricMetadata(**told))
    with pytest.raises(TypeError, match="description"):
        BaseMetricMetadata(name="n", display_name="N")  # pyright: ignore[reportCallIssue]
    assert UnitMetricRegistry.get_metric("exact_match").get_metadata().metric_type == "industry"
