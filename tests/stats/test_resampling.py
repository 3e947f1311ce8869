"""Intervals of statistics that are not means: oracles of the jackknife and of DeLong's variance, and for every statistic
that its interval has a width, holds the value and keeps to its scale; coverage by simulation (benchmarks/coverage.py)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay.interfaces import Resampled
from assay.stats import resampling
from assay.stats.classification import area, binned_error
from assay.stats.intervals import Interval, wilson
from assay.stats.resampling import influences, statistic_interval
from benchmarks.coverage import (
    AREAS,
    AVERAGES,
    CALIBRATION,
    OTHERS,
    RARE_ROWS,
    Cell,
    covered,
    measured as of_metric,
)

ALL = [*RARE_ROWS, *AVERAGES, *AREAS, *OTHERS, *CALIBRATION]


def mean_of(values: Any, **more: Any) -> Resampled:
    values = np.asarray(values, np.float64)
    counts = np.ones(len(values), np.int64)
    return Resampled(counts, lambda weights: weights @ values / weights.sum(axis=1), **more)


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


# ---- the jackknife


def test_of_a_mean_it_is_the_usual_variance() -> None:
    values = np.random.default_rng(1).normal(5, 2, 200)
    _, changes, times = influences(mean_of(values))
    assert (times @ changes**2) * 199 / 200 == pytest.approx(values.var(ddof=1) / 200)
    low, high = ends(statistic_interval(mean_of(values)))
    assert (low + high) / 2 == pytest.approx(values.mean())
    assert high - low == pytest.approx(2 * 1.97 * values.std(ddof=1) / 200**0.5, rel=0.03)


def test_of_verdicts_it_is_near_wilson() -> None:
    for passes in (20, 60, 130):
        verdicts = np.arange(200) < passes
        found = ends(statistic_interval(mean_of(verdicts, scale=(0.0, 1.0))))
        assert found == pytest.approx(wilson(passes, 200), abs=0.006)


def test_kinds_are_as_good_as_items() -> None:
    """Equal items may be one kind, and what each is may be said in any order."""
    values, counts = np.array([0.1, 0.5, 0.9, 0.2]), np.array([10, 25, 5, 0])
    kinds = Resampled(counts, lambda weights: weights @ values / weights.sum(axis=1))
    items = mean_of(np.repeat(values, counts))
    assert ends(statistic_interval(kinds)) == pytest.approx(ends(statistic_interval(items)))


def test_each_item_a_cluster_changes_nothing_and_copies_are_one() -> None:
    random = np.random.default_rng(2)
    kind = random.integers(0, 3, 90)
    values = np.array([0.0, 0.4, 1.0])
    plain = Resampled(
        np.bincount(kind), lambda weights: weights @ values / weights.sum(axis=1), kind=kind
    )
    alone = statistic_interval(plain, clusters=random.permutation(90))
    assert ends(alone) == pytest.approx(ends(statistic_interval(plain)))
    copies = Resampled(3 * plain.counts, plain.statistic, kind=np.repeat(kind, 3))
    together = statistic_interval(copies, clusters=np.repeat(np.arange(90) + 1000, 3))
    assert ends(together) == pytest.approx(ends(alone))
    assert np.ptp(ends(statistic_interval(copies))) < 0.65 * np.ptp(ends(alone))


def test_many_items_are_left_out_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).normal(0, 1, 900)
    whole = ends(statistic_interval(mean_of(values)))
    monkeypatch.setattr(resampling, "_MOST_UNITS", 300)
    assert ends(statistic_interval(mean_of(values))) == pytest.approx(whole, rel=0.1, abs=0.01)


def test_what_has_no_interval_says_why() -> None:
    assert statistic_interval(mean_of([0.5])).method == "none: an interval needs at least two items"
    assert statistic_interval(mean_of([0.5] * 9)).method == "none: no item changes the value"
    few = statistic_interval(mean_of(np.arange(9.0)))
    assert few.method == "jackknife; weak: fewer than 30 items"


def test_at_the_end_of_the_scale_items_count_as_verdicts() -> None:
    low, high = ends(statistic_interval(mean_of([1.0] * 40, scale=(0.0, 1.0))))
    assert (low, high) == (pytest.approx(wilson(40, 40)[0], abs=0.01), 1.0)
    low, high = ends(statistic_interval(mean_of([0.0] * 40, scale=(0.0, None))))
    assert low == 0 < high < 0.2


# ---- AUROC and calibration


def delong_by_pairs(score: Any, positive: Any) -> tuple[float, float]:
    """The area and DeLong's (1988) variance by their definition over all pairs."""
    above, below = score[positive][:, None], score[~positive][None, :]
    wins = (above > below) + 0.5 * (above == below)
    first, second = wins.mean(axis=1), wins.mean(axis=0)
    return wins.mean(), first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=6, max_size=40).filter(
        lambda pairs: 2 <= sum(one for _, one in pairs) <= len(pairs) - 2
    )
)
def test_the_variance_of_the_area_is_delongs(pairs: list[tuple[int, bool]]) -> None:
    from assay.stats.classification import _delong

    score = np.array([one for one, _ in pairs], np.float64)
    positive = np.array([one for _, one in pairs])
    found = _delong(score, positive, np.arange(len(pairs)))
    assert found == pytest.approx(delong_by_pairs(score, positive))
    value, (low, high, _) = area(score, positive, np.arange(len(pairs)), 0.95)
    assert low is not None
    assert high is not None
    assert 0 <= low <= value <= high <= 1
    assert high - low > 0.01
    turned, (other, _, _) = area(-score, positive, np.arange(len(pairs)), 0.95)
    assert turned == pytest.approx(1 - value)
    assert other is not None


def test_a_separated_area_is_newcombes() -> None:
    """His interval of 10 and 10 that are separated begins near 0.78 by the variance of Hanley and McNeil."""
    score, positive = np.arange(20.0), np.arange(20) >= 10
    value, (low, high, method) = area(score, positive, np.arange(20), 0.95)
    assert (value, high, method) == (1.0, 1.0, "newcombe")
    assert low == pytest.approx(0.78, abs=0.04)


def test_a_calibrated_model_is_not_called_wrong_and_the_band_is_what_it_finds() -> None:
    random = np.random.default_rng(4)
    found: list[float] = []
    bands: list[tuple[float, float]] = []
    for _ in range(200):
        sure = random.uniform(0.5, 1, 100)
        right = random.random(100) < sure
        place = np.ceil(sure * 10).astype(np.int64) - 1
        _, _, method = binned_error(right, sure, place, np.arange(100), 0.95)
        text, band = method.split("; a calibrated model would have ")
        assert text == "debiased"
        low, high = map(float, band.split("–"))
        bands.append((low, high))
        gaps = np.bincount(place, right - sure)
        found.append(float(np.abs(gaps).sum()) / 100)
    held = [low <= one <= high for one, (low, high) in zip(found, bands, strict=True)]
    assert 0.9 <= np.mean(held) <= 0.99


def test_samples_of_one_item_are_no_new_evidence_of_calibration() -> None:
    random = np.random.default_rng(5)
    sure = random.uniform(0.5, 1, 100)
    right, place = random.random(100) < sure - 0.2, np.ceil(sure * 10).astype(np.int64) - 1
    once = binned_error(right, sure, place, np.arange(100), 0.95)
    four = [np.repeat(each, 4) for each in (right, sure, place, np.arange(100))]
    assert binned_error(*four, 0.95)[:2] == pytest.approx(once[:2], abs=0.02)  # type: ignore[arg-type]


# ---- every statistic, whatever the rows

STATISTICS = [
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "micro_f1",
    "weighted_f1",
    "mcc",
    "kappa",
    "precision",
    "recall",
    "f1",
    "specificity",
]
labels = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2, None])), min_size=2, max_size=40
)


def checked(interval: Interval, low: float, high: float | None) -> None:
    if interval.low is None or interval.high is None:
        assert interval.method.startswith("none: ")
        return
    assert low <= interval.low < interval.high
    assert high is None or interval.high <= high


@pytest.mark.parametrize("statistic", STATISTICS)
@settings(deadline=None, max_examples=40)
@given(labels)
def test_classes(statistic: str, pairs: list[tuple[int, int | None]]) -> None:
    columns = {
        "detailed_results.expected": [true for true, _ in pairs],
        "detailed_results.predicted": [guess for _, guess in pairs],
    }
    found = of_metric("classification", columns, statistic=statistic, positive=0)
    checked(found, -1.0 if statistic in ("mcc", "kappa") else 0.0, 1.0)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_forty_of_forty_right(statistic: str) -> None:
    for names in (["a"] * 40, ["a", "b"] * 20):
        columns = {"detailed_results.expected": names, "detailed_results.predicted": names}
        found = of_metric("classification", columns, statistic=statistic, positive="a")
        one_class = "b" not in names
        if one_class and statistic == "specificity":
            assert found.method == "none: the value is not a mean over items"
            continue
        low, high = ends(found)
        if one_class and statistic in ("mcc", "kappa"):
            assert low <= 0 <= high  # as scikit-learn has it: nothing to agree beyond chance
        else:
            assert high == 1
            assert 0.5 < low < 0.96


@pytest.mark.parametrize("statistic", ["precision", "recall", "f1"])
@settings(deadline=None, max_examples=40)
@given(labels, st.data())
def test_labels(statistic: str, pairs: list[tuple[int, int | None]], data: st.DataObject) -> None:
    passed = data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    columns = {
        "detailed_results.expected": [true for true, _ in pairs],
        "detailed_results.predicted": [guess for _, guess in pairs],
    }
    checked(of_metric("label_scores", columns, passed, statistic=statistic), 0.0, 1.0)


@pytest.mark.parametrize("coefficient", ["cohen_kappa", "fleiss_kappa", "krippendorff_alpha"])
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=2, max_size=30))
def test_votes(coefficient: str, level: str, votes: list[tuple[int, int]]) -> None:
    rows = [{"a": one, "b": other} for one, other in votes]
    columns = {"detailed_results.votes": rows}
    checked(of_metric("agreement", columns, coefficient=coefficient, level=level), -1.0, 1.0)


@pytest.mark.parametrize("measure", ["wer", "cer", "instructions"])
@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(5, 9)), min_size=2, max_size=30))
def test_rates_of_a_corpus(measure: str, counts: list[tuple[int, int]]) -> None:
    entry = {"measure": measure, "options": {}, "references": 1}
    columns = {"detailed_results.corpus": [{**entry, "counts": [*row]} for row in counts]}
    checked(of_metric("corpus_score", columns), 0.0, 1.0 if measure == "instructions" else None)


@pytest.mark.parametrize("measure", ["bleu", "chrf", "ter"])
def test_a_perfect_corpus(measure: str) -> None:
    from assay.text.translation import counts

    texts = [f"the answer to question {number} is plain enough" for number in range(20)]
    entry = {"measure": measure, "options": {}, "references": 1}
    made = counts(measure, {}, texts, [texts])  # type: ignore[arg-type]
    columns = {"detailed_results.corpus": [{**entry, "counts": row} for row in made]}
    low, high = ends(of_metric("corpus_score", columns))
    assert (low, high > 0.1) == (0.0, True) if measure == "ter" else (low < 0.95, high) == (True, 1)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
def test_calibration(rows: list[tuple[float, bool]]) -> None:
    columns = {"detailed_results.confidence": [sure for sure, _ in rows]}
    checked(of_metric("calibration_error", columns, [right for _, right in rows]), 0.0, 1.0)


# ---- coverage


@pytest.mark.parametrize("cell", ALL, ids=lambda cell: cell.name)
def test_intervals_hold_the_truth(cell: Cell) -> None:
    few = cell.name.endswith("5 % positive, recall 70 %")  # of 100 rows about 5 would tell
    made = covered(cell._replace(rivals={}), cell.sizes[2 if few else 1], repeats=80)
    assert made.share >= 0.85
    assert made.weak < 0.1 or "at random" in cell.name or "perplexity" in cell.name
