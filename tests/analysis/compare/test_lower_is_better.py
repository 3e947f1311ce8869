"""Whatever scorer or metric declares that less is better is treated so by every verb, over the whole registry."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay import registry
from assay.analysis.compare.compare import compare
from assay.analysis.compare.gate import gate
from assay.engine.aggregate.aggregate import Aggregator
from assay.engine.aggregate.measure import bind_metric
from assay.engine.evaluate.bind import bind_scorer
from assay.engine.evaluate.directions import LOWER, Directions
from assay.engine.evaluate.evaluate import scorer_plan
from assay.errors import UserError
from assay.metrics.best_of_k import best_of_k
from assay.records import Manifest
from assay.reports.compare import compare_view
from assay.store.stores import MemoryStore
from tests.analysis.rows import rows_of, save
from tests.metrics.rows import group


def scorers() -> dict[str, Any]:
    """Every scorer that ships, those of formats too."""
    for format in registry.formats("scorer"):
        registry.scorer.of_format(f"{format}.any")
    named = {name: registry.scorer.get(name) for name in registry.scorer.names()}
    return named | {
        name: function for name, function in registry.scorer._found.items() if "." in name
    }


DECLARED = sorted(name for name, function in scorers().items() if function.__assay__.get(LOWER))


def test_what_says_that_lower_is_better_declares_it() -> None:
    assert {"ter", "wer", "cer", "hallucination", "ragicamp.hallucination"} <= set(DECLARED)
    for name, function in scorers().items():
        if function.__module__.startswith("assay."):
            assert ("lower is better" in (function.__doc__ or "").lower()) is (name in DECLARED), (
                name
            )
            assert Directions([]).lower([name]) is (name in DECLARED), name


def graded(seed: int, mean: float, **more: Any) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return rows_of(
        {f"q{n}": float(v) for n, v in enumerate(random.beta(10 * mean, 10 - 10 * mean, 60))},
        **more,
    )


@pytest.mark.parametrize("scorer", DECLARED)
def test_every_verb_respects_it(tmp_path: Path, scorer: str) -> None:
    named = {"scorer": scorer, "label": "found"}
    low, high = (
        save(tmp_path / "low", graded(1, 0.2, **named)),
        save(tmp_path / "high", graded(2, 0.6, **named)),
    )
    comparison = compare([high, low])
    (pair,) = comparison.pairs
    assert (comparison.lower_is_better, pair.verdict) == (True, "better")
    assert pair.difference < 0 < pair.gained
    assert pair.gained > pair.lost
    assert [(standing.name, standing.ranks) for standing in comparison.standings] == [
        ("low", (1, 1)),
        ("high", (2, 2)),
    ]
    assert "lower is better" in compare_view(comparison).form("markdown")
    assert comparison.pairs[0].flips[0].item_id
    table = compare([high, low], all_labels=True)
    assert (table.sides["low"]["found"].best, table.sides["high"]["found"].best) == (True, False)
    assert table.lower == ["found"]
    assert gate(low, baseline=high, max_drop=0.02).outcome == "passed"
    assert gate(high, baseline=low, max_drop=0.02).outcome == "failed"


@pytest.mark.parametrize("scorer", DECLARED)
def test_a_refused_row_has_the_worst_value(tmp_path: Path, scorer: str) -> None:
    rows = rows_of(
        {"a": 0.25, "b": 0.25, "c": "refused", "d": "errored"}, scorer=scorer, label="found"
    )
    rows[0]["score"] = 1.5  # some rates exceed 1
    folder = save(tmp_path / "e", rows)
    store = MemoryStore()
    store.log("evaluation", "e").append((folder / "evaluation_results.jsonl").read_bytes())
    (row,) = Aggregator(store).aggregate(["e"], [bind_metric(type="mean")])
    assert row["value"] == pytest.approx((1.5 + 0.25 + 1.5) / 3)
    assert row["value_if_missing_wrong"] == pytest.approx((1.5 + 0.25 + 1.5 + 1.5) / 4)
    assert row["value_if_missing_right"] == pytest.approx((1.5 + 0.25 + 1.5 + 0) / 4)
    (standing, _) = compare([folder, save(tmp_path / "f", rows)]).standings
    assert standing.value == row["value"]


def test_pass_rates_are_better_when_higher_whatever_the_score(tmp_path: Path) -> None:
    """A row of `ter` passes when its rate is low."""
    few, many = (
        save(
            tmp_path / name,
            rows_of({f"q{n}": float(n < passes) for n in range(80)}, scorer="ter", label="ter"),
        )
        for name, passes in (("few", 20), ("many", 60))
    )
    assert compare([few, many], metric="pass_rate").pairs[0].verdict == "better"
    assert compare([few, many], metric="mean").pairs[0].verdict == "worse"


def test_a_label_named_by_the_user(tmp_path: Path) -> None:
    first, second = save(tmp_path / "a", graded(1, 0.2)), save(tmp_path / "b", graded(2, 0.6))
    assert compare([first, second]).pairs[0].verdict == "better"
    assert compare([first, second], lower=["match"]).pairs[0].verdict == "worse"
    with pytest.raises(UserError, match="no row has the label 'mach'"):
        compare([first, second], lower=["mach"])


def test_a_scorer_of_ones_own_declares_it() -> None:
    @registry.scorer(lower_is_better=True, name="distance_of_lengths")
    def distance(item: Any, response: Any) -> float:
        return float(abs(len(response.response) - len(str(item.ground_truth))))

    bound = bind_scorer(distance)
    assert bound.lower_is_better
    assert scorer_plan(bound)[LOWER] is True
    manifest = Manifest(
        kind="evaluation", id="e", plan={"scorers": [scorer_plan(bound) | {"name": "renamed"}]}
    )
    assert Directions([manifest]).lower(["renamed"])
    assert not Directions([manifest]).lower(["renamed", "exact_match"])


def test_the_best_of_k_is_the_lowest() -> None:
    made = group([0.2, 0.8])
    assert best_of_k(made, k=2).value == 0.8
    made.lower_is_better = True
    assert best_of_k(made, k=2).value == 0.2


@pytest.mark.parametrize("name", registry.metric.names())
def test_every_metric_says_how_it_is_better(name: str) -> None:
    """Metrics of passes are better when higher, those of costs and errors when lower, others as their label."""
    declared = registry.metric.get(name).__assay__.get(LOWER)
    spent, errors = (
        ("latency", "cost", "tokens", "ttft", "time_between_tokens"),
        ("brier_score", "calibration_error"),
    )
    if name in (*spent, *errors, "perplexity", "bits_per_byte"):
        assert declared is True
    elif name in ("mean", "median", "percentile", "min", "max", "best_of_k", "corpus_score"):
        assert declared is None
    # of which more or less is neither
    elif name not in ("count", "std", "position_bias", "agreement", "entropy"):
        assert declared is False
