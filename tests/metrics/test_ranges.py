"""Every metric of the registry, present and future: it declares its range or is on its label's scale, and its interval
never has zero width where all rows are right, never leaves that range and holds the value."""

from collections.abc import Callable
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay import registry
from assay.engine.aggregate.measure import Sample, bind_metric, measure
from assay.metrics.classification import Statistic
from assay.stats.agreement import Coefficient
from assay.text.translation import counts as counts_of

# metrics whose values are scores, and so lie where those do
ON_THE_LABELS_SCALE = {"mean", "median", "percentile", "best_of_k", "min", "max", "corpus_score"}
# the harness computes any number that a task names; a user's aggregator does as well
ANY_NUMBER = {"lm_eval.aggregate", "lm_eval.groups", "sygra.aggregator"}
UNBOUNDED = {"elo"}
# the ends are values of the rows. If the true quantile were below, all rows would hardly be alike
ORDER_STATISTICS = {"median", "percentile"}
WITHOUT_INTERVAL = {"count", "min", "max", "std"}
# formulas of SyGra's own whose values are no means over items; `sound` has the numbers with intervals
BY_ANOTHER = {f"sygra.{name}" for name in ("f1_score", "precision", "recall", "step_efficiency")}
BY_ANOTHER |= {f"sygra.{name}" for name in ("pass@k", "pass_at_k", "pass^k")}
BIASED = {"calibration_error"}  # the interval is that of the debiased error

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "agreement": [
        {"coefficient": name, "level": level}
        for name in get_args(Coefficient)
        for level in ("nominal", "interval")
        if level == "nominal" or name != "fleiss_kappa"
    ],
    "auroc": [{"predicted": "detailed_results.separating"}],
    "best_of_k": [{"k": 1}, {"k": 2}],
    "classification": [{"statistic": name, "positive": "yes"} for name in get_args(Statistic)],
    "label_scores": [{"statistic": name} for name in ("precision", "recall", "f1")],
    "latency": [{"statistic": name} for name in ("mean", "median", "p95", "p99")],
    "majority_at_k": [{}, {"k": 2}],
    "pass_at_k": [{"k": 1}, {"k": 2}, {"k": 1, "num_trials": 2, "aggregation": "median"}],
    "pass_hat_k": [{"k": 1}, {"k": 2}],
    "percentile": [{"percentile": 5}, {"percentile": 95}],
    "perplexity": [{"per": name} for name in ("word", "byte", "text")],
    "sygra.pass@k": [{"k": 1}],
    "sygra.pass_at_k": [{"k": 1}],
    "sygra.pass^k": [{"k": 1}],
}


class Row(msgspec.Struct, kw_only=True):
    """What a cell of a column is made from. `luck` is a number of its own between 0 and 1."""

    at: int
    item: int
    sample: int
    seat: int
    right: bool
    luck: float
    measure: str


def _entropy(row: Row) -> float:
    return row.luck if row.right else 0.5 + row.luck


def _corpus(row: Row) -> dict[str, Any]:
    if row.measure in ("wer", "cer", "instructions"):
        words, share = 3 + row.item % 4, 1.0 if row.right else row.luck
        count = round(words * (share if row.measure == "instructions" else 1 - share))
        return {"measure": row.measure, "options": {}, "references": 1, "counts": [count, words]}
    truth = f"the {row.item} cats sat on the mat of house number {row.sample}"
    text = truth if row.right else truth[: 20 + int(25 * row.luck)]
    options: dict[str, Any] = {"bleu": {"tokenize": "13a", "lowercase": False}}.get(row.measure, {})
    (counts,) = counts_of(row.measure, options, [text], [[truth]])  # type: ignore[arg-type]
    return {"measure": row.measure, "options": options, "references": 1, "counts": counts}


def _stream(name: str) -> dict[str, Callable[[Row], Any]]:
    return {f"response.metadata.stream.{name}": lambda row: 0.1 + row.luck}


COLUMNS: dict[str, Callable[[Row], Any]] = {
    "response": lambda row: row.at,
    "responses": lambda row: [f"{row.at:016x}"],
    "response.cost": lambda row: 0.001 * row.luck,
    "response.inference_time": lambda row: 0.1 + row.luck,
    "response.prompt_tokens": lambda row: 10 + row.item,
    "response.completion_tokens": lambda row: 1 + row.at,
    "response.total_tokens": lambda row: 11 + row.item + row.at,
    **_stream("ttft"),
    **_stream("generation_speed"),
    **_stream("time_between_tokens"),
    "detailed_results.expected": lambda row: "yes" if row.item % 2 else "no",
    "detailed_results.predicted": lambda row: "yes" if bool(row.item % 2) is row.right else "no",
    **{f"detailed_results.{flag}": lambda row: None for flag in ("tp", "tn", "fp", "fn")},
    "detailed_results.separating": lambda row: (
        row.luck / 2 + (0.5 if bool(row.item % 2) is row.right else 0.0)
    ),
    "detailed_results.confidence": lambda row: 0.5 + row.luck / 2,
    "detailed_results.brier": lambda row: 0.0 if row.right else 2 * row.luck,
    "detailed_results.entropy": _entropy,
    "detailed_results.logprob": lambda row: -5 * row.luck - (0 if row.right else 20),
    "detailed_results.words": lambda row: 1 + row.item % 3,
    "detailed_results.bytes": lambda row: 5 + row.item % 7,
    "detailed_results.characters": lambda row: 5 + row.item % 7,
    "detailed_results.tokens": lambda row: 2 + row.item % 3,
    "detailed_results.corpus": _corpus,
    "detailed_results.votes": lambda row: {
        "a": float(row.item % 2),
        "b": float(row.item % 2 if row.right else 1 - row.item % 2),
    },
    "detailed_results.judge": lambda row: {"id": "judge"},
    "detailed_results.problem": lambda row: f"problem {row.item}",
    "detailed_results.metadata": lambda row: None,
    "seat": lambda row: row.seat,
    "players": lambda row: None,
    "outcome": lambda row: "scored",
    "item": lambda row: f"{row.item:032x}",
    "item.metadata.problem_type": lambda row: "free-form",
    "item.metadata.benchmark_name": lambda row: "boolq",
    "item.metadata.content": lambda row: f"{row.item:032x}",
}
MATCHES = ["players", "seat", "outcome"]  # of the metrics of matches
CALIBRATION = {
    "judge": "judge",
    "labels": 40,
    "confusion": {"tp": 18.0, "fp": 2.0, "fn": 1.0, "tn": 19.0},
}


def names() -> list[str]:
    """Every metric that ships, those of formats too."""
    for format in registry.formats("metric"):
        registry.metric.of_format(f"{format}.any")
    found = {*registry.metric.names(), *(name for name in registry.metric._found if "." in name)}
    return sorted(
        name for name in found if registry.metric.get(name).__module__.startswith("assay.")
    )


def variants(name: str) -> list[dict[str, Any]]:
    if name == "corpus_score":
        measures = ("wer", "cer", "instructions", "bleu", "chrf", "ter")
        return [{"measure": each} for each in measures]
    return VARIANTS.get(name, [{}])


CASES = [
    pytest.param(name, variant, id="-".join([name, *map(str, variant.values())]))
    for name in names()
    if name not in ANY_NUMBER
    for variant in variants(name)
]


def sample_of(
    name: str, columns: list[str], items: int, samples: int, right: list[bool], measure: str = ""
) -> Sample:
    """Rows that have what a metric reads. `right` is repeated."""
    seats = 2 if columns == MATCHES else 1
    luck = np.random.default_rng(items).random(items * samples * seats)
    places = [
        (item, sample, seat)
        for item in range(items)
        for sample in range(samples)
        for seat in range(seats)
    ]
    rows = [
        Row(
            at=at,
            item=item,
            sample=sample,
            seat=seat,
            right=right[at // seats % len(right)],
            luck=float(luck[at]),
            measure=measure,
        )
        for at, (item, sample, seat) in enumerate(places)
    ]
    recipes = dict(COLUMNS)
    if seats == 2:
        recipes["players"] = lambda row: ["a", "b"]
    missing = [column for column in columns if column not in recipes]
    assert not missing, f"{name} reads {missing}: add how such a column is made to COLUMNS here"
    passed = np.array([row.right for row in rows])
    return Sample(
        label="label",
        facets={},
        item=np.array([row.item for row in rows], np.int32),
        sample=np.array([row.sample for row in rows], np.int32),
        passed=passed,
        score=passed.astype(np.float64),
        outcome=np.zeros(len(rows), np.int8),
        load=lambda: [{"item_id": str(row.item)} for row in rows],
        take=lambda column: [recipes[column](row) for row in rows],
        calibration=CALIBRATION,
        scale=(0.0, None) if measure in ("wer", "cer", "ter") else None,
    )


def check(name: str, params: dict[str, Any], items: int, samples: int, right: list[bool]) -> None:
    """Where a metric has no value it says why, which must not be where all rows are right."""
    told = f"{name} {params} of {items} × {samples} rows, right {right}"
    measure_name = params.get("measure", "") if name == "corpus_score" else ""
    bound = bind_metric(type=name, params={} if measure_name else params)
    sample = sample_of(name, bound.columns, items, samples, right, measure_name)
    for row in measure(bound, sample):
        value, low, high = row["value"], row["ci_low"], row["ci_high"]
        assert "error" not in row, (told, row["error"])
        if value is None:
            assert not all(right) or params.get("k", 1) > samples, (told, row["reason"])
            continue
        least, most = bound.scale or sample.scale or (0.0, 1.0)
        if name in UNBOUNDED:
            least = most = None
        least, most = (-np.inf if least is None else least, np.inf if most is None else most)
        assert least - 1e-9 <= value <= most + 1e-9, (told, "the value leaves the range", value)
        shown = (told, value, low, high, row["ci_method"])
        if low is None and high is None:
            open_ends = row["ci_method"] == "order_statistics"  # of too few rows for the quantile
            known = name in WITHOUT_INTERVAL | BY_ANOTHER or params.get("aggregation") == "median"
            assert open_ends or known or items < 5, ("there is no interval", *shown)
            assert open_ends or row["ci_method"].startswith("none: "), shown
            continue
        assert low is None or least <= low, ("the interval leaves the range", *shown)
        assert high is None or high <= most, ("the interval leaves the range", *shown)
        if low is not None and high is not None:
            assert low < high or (name in ORDER_STATISTICS and low == high), ("no width", *shown)
        if name not in BIASED:
            assert low is None or low <= value + 1e-9, ("the value is below", *shown)
            assert high is None or value <= high + 1e-9, ("the value is above", *shown)


@pytest.mark.parametrize("name", names())
def test_every_metric_declares_its_range_or_follows_its_label(name: str) -> None:
    declares = "scale" in registry.metric.get(name).__assay__
    assert declares is (name not in ON_THE_LABELS_SCALE | ANY_NUMBER | UNBOUNDED), (
        f"{name} must declare its range, @metric(scale=(0, 1)), or be in ON_THE_LABELS_SCALE here"
    )


@pytest.mark.parametrize(("name", "params"), CASES)
@pytest.mark.parametrize(("items", "samples"), [(2, 1), (5, 1), (12, 1), (40, 1), (12, 3)])
def test_all_right(name: str, params: dict[str, Any], items: int, samples: int) -> None:
    check(name, params, items, samples, [True])


@pytest.mark.parametrize(("name", "params"), CASES)
def test_all_wrong(name: str, params: dict[str, Any]) -> None:
    check(name, params, 12, 1, [False])


@pytest.mark.parametrize(("name", "params"), CASES)
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    items=st.integers(5, 40),
    samples=st.integers(1, 3),
    right=st.lists(st.booleans(), min_size=2, max_size=41),
)
def test_random_rows(
    name: str, params: dict[str, Any], items: int, samples: int, right: list[bool]
) -> None:
    check(name, params, items, samples, right)
