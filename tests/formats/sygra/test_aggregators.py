"""SyGra's aggregator metrics: its worked numbers, and its formulas written down a second time."""

import re
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.formats.sygra.metrics import (
    AggregatorMetricRegistry,
    BaseAggregatorMetric,
    BaseMetricMetadata,
    UnitMetricResult,
    aggregator_metric,
)
from assay.formats.sygra.metrics.counting import StepEfficiencyMetric

BUILT_IN = [
    "accuracy",
    "f1_score",
    "pass@k",
    "pass^k",
    "pass_at_k",
    "precision",
    "recall",
    "step_efficiency",
]
NEEDS = {
    "precision": {"predicted_key": "text"},
    "recall": {"golden_key": "text"},
    "f1_score": {"predicted_key": "text", "golden_key": "text"},
    "pass@k": {"k": 3},
    "pass_at_k": {"k": 3},
    "pass^k": {"k": 3},
}
WORKED = [  # golden, predicted, correct
    ("Music", "Music", True),
    ("Music", "music", True),
    ("Politics", "Music", False),
    ("Politics", "Politics", True),
    ("Other", "Politics", False),
    ("Other", "Other", True),
]
LABELS = st.sampled_from(["a", "b", "c", None])
CASES = st.lists(st.tuples(LABELS, LABELS, st.booleans()), max_size=12)


def results(*cases: tuple[Any, Any, bool]) -> list[UnitMetricResult]:
    return [
        UnitMetricResult(right, {"text": golden}, {"text": said}) for golden, said, right in cases
    ]


def verdicts(*right: bool) -> list[UnitMetricResult]:
    return [UnitMetricResult(each, {}, {}) for each in right]


def calculated(name: str, given: list[UnitMetricResult], **params: Any) -> dict[str, Any]:
    return AggregatorMetricRegistry.get_metric(name, **(params or NEEDS.get(name, {}))).calculate(
        given
    )


# ---- the worked numbers


def test_accuracy() -> None:
    assert calculated("accuracy", results(*WORKED), key="text") == {"accuracy": 4 / 6}
    assert calculated("accuracy", [UnitMetricResult(1, {}, {}), UnitMetricResult("", {}, {})]) == {
        "accuracy": 0.5
    }  # type: ignore[arg-type]


def test_precision() -> None:
    assert calculated("precision", results(*WORKED)) == {
        "average_precision": 0.75,
        "precision_per_class": {"Music": 0.5, "music": 1.0, "Politics": 0.5, "Other": 1.0},
    }


def test_recall() -> None:
    found = calculated("recall", results(*WORKED))
    assert found["average_recall"] == pytest.approx(0.6667, abs=5e-5)
    assert found["recall_per_class"] == {"Music": 1.0, "Politics": 0.5, "Other": 0.5}


def test_f1_score() -> None:
    found = calculated("f1_score", results(*WORKED))
    assert found["average_f1_score"] == pytest.approx(0.70588, abs=5e-6)
    expected = {"Music": 0.6667, "music": 0.0, "Politics": 0.5, "Other": 0.6667}
    assert found["f1_score_per_class"] == pytest.approx(expected, abs=5e-5)


def test_the_five_rows_of_the_classification_task() -> None:
    golden = ["Music", "Music", "Politics", "Politics", "Video games"]
    said = ["Music", "music", "Politics", "Other", "Video games"]
    given_ = results(
        *[
            (one, other, one.lower() == other.lower())
            for one, other in zip(golden, said, strict=True)
        ]
    )
    assert calculated("accuracy", given_)["accuracy"] == 0.8
    assert calculated("precision", given_)["average_precision"] == pytest.approx(0.8)
    assert calculated("recall", given_)["average_recall"] == pytest.approx(0.8333, abs=5e-5)
    assert calculated("f1_score", given_)["average_f1_score"] == pytest.approx(0.81632653)


def test_pass_at_k() -> None:
    found = calculated("pass@k", verdicts(True, True, False, False, False))
    assert found == pytest.approx({"pass@1": 0.4, "pass@2": 0.7, "pass@3": 0.9})
    assert calculated("pass_at_k", verdicts(True, True, False, False, False)) == found
    assert calculated("pass@k", verdicts(True, True), k=3) == {
        "pass@1": 1.0,
        "pass@2": 1.0,
        "pass@3": 0.0,
    }
    assert calculated("pass@k", verdicts(True), k=0) == {}


def test_pass_at_k_pools_all_problems() -> None:
    """Two steps, one always right and one always wrong, three tries each."""
    assert calculated("pass@k", verdicts(*[True] * 3, *[False] * 3))["pass@3"] == pytest.approx(
        0.95
    )


def test_pass_at_k_of_a_million() -> None:
    metric: Any = AggregatorMetricRegistry.get_metric("pass@k", k=2)
    metric.start()
    metric.total, metric.correct = 1_000_000, 1
    assert metric.payload() == pytest.approx({"pass@1": 1e-6, "pass@2": 2e-6})


def test_pass_power_k() -> None:
    assert calculated("pass^k", verdicts(True, True, True, False)) == {
        "success_rate": 0.75,
        "pass^1": 0.75,
        "pass^2": 0.5625,
        "pass^3": 0.421875,
    }


def test_the_older_payloads() -> None:
    def older(name: str, given: list[UnitMetricResult], k: int) -> dict[str, Any]:
        metric = AggregatorMetricRegistry.get_metric(name, k=k)
        return metric.older(metric.calculate(given), len(given))

    assert older("pass@k", verdicts(True, True, False, False, False), 2) == pytest.approx(
        {"pass@k": 0.7}
    )
    assert older("pass^k", verdicts(True, True, True, False), 2) == {
        "success_rate": 0.75,
        "pass^k": 0.5625,
    }
    assert older("pass@k", [], 2) == {"pass@k": 0.0}
    assert older("pass^k", [], 2) == {"success_rate": 0.0, "pass^k": 0.0}
    with pytest.raises(ValueError, match="k = 3, but there are 2 results"):
        older("pass@k", verdicts(True, False), 3)


def step(correct: bool, **metadata: Any) -> UnitMetricResult:
    return UnitMetricResult(correct, {}, {}, metadata)


def test_step_efficiency() -> None:
    given_ = [
        step(True, mission_id="m", step_id="1", retry_number=0),
        step(True, mission_id="m", step_id="2", retry_id="retry_1"),
        step(False, mission_id="m", step_id="2", retry_id="retry_0"),
        step(False, mission_id="m", step_id="3", retry_number=0),
        step(False, mission_id="m", step_id="3", retry_number=1),
    ]
    assert calculated("step_efficiency", given_) == {
        "step_efficiency": pytest.approx(0.6),
        "total_steps": 3,
        "first_attempt_correct": 1,
        "retry_correct": 1,
        "never_correct": 1,
        "avg_retries_when_correct": 0.5,
    }
    assert calculated("step_efficiency", given_, penalty_per_retry=1)[
        "step_efficiency"
    ] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("metadata", "retries"),
    [
        ({}, 0),
        ({"retry_number": 2, "retry_id": "retry_1"}, 2),
        ({"retry_number": None}, 0),
        ({"retry_id": "attempt_of_3"}, 3),
        ({"retry_id": "retry_x"}, 0),
        ({"retry_id": "3"}, 0),
        ({"retry_id": 3}, 0),
        ({"retry_number": 10}, 10),
    ],
)
def test_the_number_of_a_retry(metadata: dict[str, Any], retries: int) -> None:
    found = calculated("step_efficiency", [step(True, **metadata)], penalty_per_retry=0.25)
    assert found["avg_retries_when_correct"] == retries
    assert found["step_efficiency"] == max(0.0, 1 - 0.25 * retries)
    assert found["total_steps"] == 1


# ---- nothing, and everything


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("accuracy", {"accuracy": 0.0}),
        ("precision", {"average_precision": 0.0, "precision_per_class": {}}),
        ("recall", {"average_recall": 0.0, "recall_per_class": {}}),
        ("f1_score", {"average_f1_score": 0.0, "f1_score_per_class": {}}),
        ("pass@k", {"pass@1": 0.0, "pass@2": 0.0, "pass@3": 0.0}),
        ("pass^k", {"success_rate": 0.0, "pass^1": 0.0, "pass^2": 0.0, "pass^3": 0.0}),
        (
            "step_efficiency",
            {
                "step_efficiency": 0.0,
                "total_steps": 0,
                "first_attempt_correct": 0,
                "retry_correct": 0,
                "never_correct": 0,
                "avg_retries_when_correct": 0.0,
            },
        ),
    ],
)
def test_no_results(name: str, expected: dict[str, Any]) -> None:
    assert calculated(name, []) == expected
    assert list(calculated(name, [])) == list(expected)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_second_calculation_forgets_the_first(name: str) -> None:
    metric = AggregatorMetricRegistry.get_metric(name, **NEEDS.get(name, {}))
    first = metric.calculate(results(*WORKED))
    assert metric.calculate(results(*WORKED)) == first


def test_rows_without_the_key_are_left_out_and_labels_are_texts() -> None:
    given_ = [
        *results((None, None, True), (1, 1, True)),
        UnitMetricResult(False, {}, {"other": "x"}),
    ]
    assert calculated("precision", given_)["precision_per_class"] == {"None": 1.0, "1": 1.0}
    assert calculated("recall", given_) == {
        "average_recall": 1.0,
        "recall_per_class": {"None": 1.0, "1": 1.0},
    }


@settings(deadline=None)
@given(CASES)
def test_labels_by_their_definition(cases: list[tuple[Any, Any, bool]]) -> None:
    def shares(side: int) -> dict[str, float]:
        labels = {str(case[side]) for case in cases}
        of = {label: [case[2] for case in cases if str(case[side]) == label] for label in labels}
        return {label: sum(right) / len(right) for label, right in of.items()}

    def mean(values: dict[str, float]) -> float:
        return sum(values.values()) / len(values) if values else 0.0

    def harmonic(one: float, other: float) -> float:
        return 2 * one * other / (one + other) if one + other else 0.0

    recalls, precisions = shares(0), shares(1)
    given_ = results(*cases)
    found = {
        **calculated("precision", given_),
        **calculated("recall", given_),
        **calculated("f1_score", given_),
    }
    assert found["precision_per_class"] == precisions
    assert found["recall_per_class"] == recalls
    assert found["average_precision"] == pytest.approx(mean(precisions))
    assert found["average_recall"] == pytest.approx(mean(recalls))
    assert found["average_f1_score"] == pytest.approx(harmonic(mean(precisions), mean(recalls)))
    assert found["f1_score_per_class"] == pytest.approx(
        {
            label: harmonic(precisions.get(label, 0), recalls.get(label, 0))
            for label in recalls | precisions
        }
    )


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 8))
def test_pass_at_k_by_counting_all_draws(right: list[bool], k: int) -> None:
    draws = list(combinations(right, k))
    expected = sum(map(any, draws)) / len(draws) if draws else 0.0
    assert calculated("pass@k", verdicts(*right), k=k)[f"pass@{k}"] == pytest.approx(expected)


attempts = st.tuples(st.sampled_from("ab"), st.sampled_from("12"), st.integers(0, 7), st.booleans())


@settings(deadline=None)
@given(st.lists(attempts, max_size=15), st.floats(0, 1))
def test_steps_by_their_definition(tries: list[tuple[str, str, int, bool]], penalty: float) -> None:
    given_ = [step(right, mission_id=m, step_id=s, retry_number=n) for m, s, n, right in tries]
    found = calculated("step_efficiency", given_, penalty_per_retry=penalty)
    steps = {each[:2] for each in tries}
    firsts = [
        min((n for m, s, n, right in tries if (m, s) == key and right), default=None)
        for key in steps
    ]
    done = [first for first in firsts if first is not None]
    values = [0.0 if first is None else max(0.0, 1 - first * penalty) for first in firsts]
    assert found == pytest.approx(
        {
            "step_efficiency": sum(values) / len(values) if values else 0.0,
            "total_steps": len(steps),
            "first_attempt_correct": done.count(0),
            "retry_correct": len(done) - done.count(0),
            "never_correct": len(firsts) - len(done),
            "avg_retries_when_correct": sum(done) / len(done) if done else 0.0,
        }
    )


# ---- parameters and the registry


@pytest.mark.parametrize(
    ("name", "params", "named"),
    [
        ("precision", {}, "predicted_key"),
        ("precision", {"predicted_key": ""}, "predicted_key"),
        ("recall", {"predicted_key": "x"}, "golden_key"),
        ("f1_score", {"predicted_key": "x"}, "golden_key"),
        ("pass@k", {}, "k"),
        ("pass@k", {"k": -1}, "k"),
        ("pass^k", {"k": None}, "k"),
        ("step_efficiency", {"penalty_per_retry": 1.5}, "penalty_per_retry"),
        ("step_efficiency", {"penalty_per_retry": -0.1}, "penalty_per_retry"),
    ],
)
def test_a_bad_parameter_is_named(name: str, params: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"`{named}`"):
        AggregatorMetricRegistry.get_metric(name, **params)


def test_what_is_registered() -> None:
    assert AggregatorMetricRegistry.list_metrics() == BUILT_IN
    for name in BUILT_IN:
        metric = AggregatorMetricRegistry.get_metric(name, **NEEDS.get(name, {}), unknown=1)
        assert metric.get_metric_name() == name.replace("pass_at_k", "pass@k")
    assert StepEfficiencyMetric().metadata.display_name == "Step Efficiency"


def test_an_unknown_name() -> None:
    text = f"Aggregator metric 'f1' not found in registry. Available metrics: {BUILT_IN}"
    with pytest.raises(KeyError, match=re.escape(text)):
        AggregatorMetricRegistry.get_metric("f1")


def test_a_metric_of_ones_own() -> None:
    class Wrong(BaseAggregatorMetric):
        def validate_config(self) -> None: ...

        def get_metadata(self) -> BaseMetricMetadata:
            return BaseMetricMetadata(
                name="wrong", display_name="Wrong", description="The share that is wrong"
            )

        def calculate(self, results: list[UnitMetricResult]) -> dict[str, Any]:
            return {
                "wrong": self._safe_divide(
                    len(results) - self._count_correct(results), len(results)
                )
            }

    try:
        aggregator_metric("wrong")(Wrong)
        assert calculated("wrong", results(*WORKED)) == {"wrong": 2 / 6}
        assert calculated("wrong", []) == {"wrong": 0.0}
    finally:
        AggregatorMetricRegistry.unregister("wrong")
    with pytest.raises(TypeError, match="@aggregator_metric"):
        aggregator_metric("x")(int)
