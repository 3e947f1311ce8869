"""`sygra.…` scorers and metrics in ordinary configs: SyGra's defaults, and the verdicts of its unit metrics."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay import registry
from assay.engine.aggregate.measure import bind_metric
from assay.engine.evaluate.bind import bind_scorer
from assay.formats.sygra import metric, scorer
from assay.formats.sygra.metrics import UnitMetricRegistry
from assay.interfaces import Score
from assay.records import Item, Response
from tests.support import Lab

SCORERS = [
    "action_within_bbox",
    "exact_match",
    "fuzzy_match",
    "scroll_amount",
    "scroll_direction",
    "typed_value_match",
]
METRICS = [
    "accuracy",
    "f1_score",
    "pass@k",
    "pass^k",
    "pass_at_k",
    "precision",
    "recall",
    "step_efficiency",
]
TEXTS = st.text(st.sampled_from("aAb \tß"), max_size=8)


def score(name: str, golden: Any, predicted: Any, **params: Any) -> Score:
    bound = bind_scorer(registry.scorer.get(f"sygra.{name}"), params=params)
    return bound.function(
        Item(id="i", ground_truth=golden), Response(item_id="i", output=predicted), **bound.params
    )


def unit(name: str, golden: Any, predicted: Any, **params: Any) -> bool:
    (found,) = UnitMetricRegistry.get_metric(name, **params).evaluate([golden], [predicted])
    return found.correct


def test_every_metric_has_an_alias_with_a_version_of_its_own() -> None:
    for kind, names, module in (
        (registry.scorer, SCORERS, scorer),
        (registry.metric, METRICS, metric),
    ):
        for name in names:
            found = kind.get(f"sygra.{name}")
            assert found.__module__ == module.__name__
            assert found.__doc__
            assert f"sygra.{name}" not in kind.names(), (
                "what is listed does not depend on what was imported"
            )
    assert UnitMetricRegistry.list_metrics() == SCORERS


@settings(deadline=None)
@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_texts_get_the_verdict_of_the_unit_metric(
    golden: str, predicted: str, case: bool, spaces: bool
) -> None:
    sides = {"text": golden}, {"text": predicted}
    keys = {"golden_key": "text", "predicted_key": "text"}
    flags = {"case_sensitive": case, "normalize_whitespace": spaces}
    found = score("exact_match", *sides, **keys, **flags)
    assert found.passed is unit("exact_match", *sides, key="text", **flags)
    assert found.details == {"predicted": predicted, "expected": golden}
    fuzzy = {"threshold": 0.6, "case_sensitive": case}
    assert score("fuzzy_match", *sides, **keys, **fuzzy).passed is unit(
        "fuzzy_match", *sides, key="text", **fuzzy
    )
    assert score("typed_value_match", *sides).passed is unit("typed_value_match", *sides)


numbers = st.integers(-30, 30) | st.sampled_from(["7", 12.5])


@settings(deadline=None)
@given(numbers, numbers)
def test_actions_get_the_verdict_of_the_unit_metric(one: Any, other: Any) -> None:
    sides = {"amount": one}, {"amount": other}
    assert score("scroll_amount", *sides).passed is unit("scroll_amount", *sides)
    sides = {"bbox": {"x": 0, "y": one, "width": 5, "height": 10}}, {"x": 3, "y": other}
    assert score("action_within_bbox", *sides).passed is unit("action_within_bbox", *sides)


def test_directions() -> None:
    assert score("scroll_direction", {"direction": "up"}, {"direction": "up"}).passed is True
    assert score("scroll_direction", {"direction": "up"}, {"direction": "Up"}).passed is False
    with pytest.raises(LookupError, match="none of up, down, left, right"):
        score("scroll_direction", {"direction": "Up"}, {"direction": "Up"})


def test_a_parameter_out_of_range_is_refused() -> None:
    with pytest.raises(registry.UserError, match="threshold"):
        bind_scorer(registry.scorer.get("sygra.fuzzy_match"), params={"threshold": 2})
    with pytest.raises(registry.UserError, match="needs the parameter 'k'"):
        bind_metric(type="sygra.pass@k")


def test_in_an_ordinary_config(tmp_path: Any) -> None:
    lab = Lab(tmp_path)
    lab.rows[0]["ground_truth"] = {"answer": "another"}
    lab.config["evaluation_methods"] = [{"name": "exact", "type": "sygra.exact_match"}]
    plain = ("accuracy", "precision", "recall", "f1_score", "step_efficiency")
    lab.config["metrics"] = [f"sygra.{name}" for name in plain]
    lab.config["metrics"] += [
        {"name": name, "type": f"sygra.{name}", "params": {"k": 2}} for name in ("pass@k", "pass^k")
    ]
    lab.run()
    found = {row["metric_type"].removeprefix("sygra."): row for row in lab.read("metrics.jsonl")}
    assert found["accuracy"]["value"] == found["accuracy"]["accuracy"] == 0.75
    assert found["precision"]["precision_per_class"] == {"1": 0.0, "2": 1.0, "3": 1.0, "4": 1.0}
    assert found["recall"]["recall_per_class"] == {"another": 0.0, "2": 1.0, "3": 1.0, "4": 1.0}
    assert found["f1_score"]["average_f1_score"] == pytest.approx(0.75)
    assert found["pass@k"]["pass@2"] == pytest.approx(1 - 1 / 28)
    assert found["pass^k"]["pass^2"] == pytest.approx(0.75**2)
    assert found["step_efficiency"]["value"] == 0.75
