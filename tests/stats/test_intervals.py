"""Intervals against scipy and statsmodels as oracles, and their coverage by simulation."""

import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from assay.stats.intervals import (
    bootstrap_mean,
    item_contributions,
    item_weights,
    mean_interval,
    t_interval,
    wilson,
    wilson_of_items,
)
from assay.stats.student import t_quantile
from benchmarks.coverage import GRID, WEAK, Kind, covered


@pytest.mark.parametrize("freedom", [1, 2, 3, 4.5, 10, 29, 100, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.995, 0.9995, 0.025])
def test_t_quantile_is_scipys(probability: float, freedom: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize(
    ("passes", "n"), [(0, 1), (0, 10), (10, 10), (1, 2), (7, 30), (99_000, 100_000)]
)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_is_statsmodels(passes: int, n: int, level: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = proportion_confint(passes, n, alpha=1 - level, method="wilson")
    assert wilson(passes, n, level) == pytest.approx(expected, abs=1e-12)


def test_t_interval_is_scipys() -> None:
    values = np.random.default_rng(3).normal(7, 2, 41)
    expected = stats.t.interval(0.9, 40, values.mean(), stats.sem(values))
    assert t_interval(values, 0.9) == pytest.approx(expected, rel=1e-12)


def test_bootstrap_agrees_with_scipys_percentile_bootstrap() -> None:
    values = np.random.default_rng(5).binomial(4, 0.3, 80) / 4
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=1
    ).confidence_interval
    assert bootstrap_mean(values, resamples=20_000) == pytest.approx(tuple(expected), abs=0.005)


def test_bootstrap_of_many_distinct_values_is_the_t_interval() -> None:
    values = np.random.default_rng(6).normal(0, 1, 10_000)
    assert bootstrap_mean(values) == pytest.approx(t_interval(values), abs=1e-12)
    assert bootstrap_mean(values[:900], resamples=2000) == pytest.approx(
        t_interval(values[:900]), abs=0.01
    )


def test_bootstrap_cost_does_not_depend_on_the_number_of_items() -> None:
    values = np.random.default_rng(7).binomial(1, 0.4, 100_000).astype(float)
    started = time.process_time()
    low, high = bootstrap_mean(values, resamples=10_000)
    # drawing indices would need a billion random numbers
    assert time.process_time() - started < 0.5
    assert (low, high) == pytest.approx(wilson(float(values.sum()), 100_000), abs=5e-4)


unit_values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=2, max_size=40)


@settings(max_examples=40, deadline=None)
@given(unit_values, st.randoms(use_true_random=False), st.booleans())
def test_order_does_not_matter(values: list[float], random: object, bootstrap: bool) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    made = [
        mean_interval(np.array(each), samples=4 * len(each), bootstrap=bootstrap)
        for each in (values, shuffled)
    ]
    assert made[0] == made[1]


@given(unit_values)
def test_unit_intervals_stay_inside_and_hold_the_mean(values: list[float]) -> None:
    low, high = wilson_of_items(np.array(values))
    assert 0 <= low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= high <= 1


def test_which_method_is_used() -> None:
    zeros, mixed = np.zeros(10), np.array([0.0, 0.5, 1.0, 0.5])
    assert mean_interval(zeros, samples=10).method == "wilson"
    few = "; weak: fewer than 30 items"
    assert mean_interval(zeros, samples=50).method == f"wilson_of_items{few}"
    assert mean_interval(mixed, samples=8).method == f"wilson_of_items{few}"
    assert mean_interval(mixed, samples=8, bootstrap=True).method == f"bootstrap{few}"
    assert mean_interval(mixed * 5, samples=8).method == f"cluster_t{few}"
    assert mean_interval(np.tile(mixed, 10), samples=80).method == "wilson_of_items"
    assert mean_interval(np.tile(mixed * 5, 10), samples=80).method == "cluster_t"
    assert mean_interval(mixed[:1], samples=2) == (
        None,
        None,
        "none: an interval needs at least two items",
    )
    assert mean_interval(np.full(9, 3.0), samples=9) == (
        None,
        None,
        "none: all items have the same value",
    )


@pytest.mark.parametrize("samples", [30, 480])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_the_ends_keep_an_honest_width(samples: int, bootstrap: bool) -> None:
    """30 items without a failure do not prove perfection, however many samples each had."""
    low, high, _ = mean_interval(np.ones(30), samples=samples, bootstrap=bootstrap)
    assert high == 1.0
    assert low is not None
    assert 0.85 < low < 0.9
    assert mean_interval(np.zeros(30), samples=samples, bootstrap=bootstrap)[0] == 0.0


def test_contributions_have_the_plain_mean_and_the_cluster_robust_variance() -> None:
    import statsmodels.api as sm

    random = np.random.default_rng(8)
    item = np.sort(random.integers(0, 40, 300))
    values = random.normal(0, 1, 300) + random.normal(0, 1, 40)[item]
    made = item_contributions(item, values)
    n = len(made)
    fit = sm.OLS(values, np.ones(300)).fit(
        cov_type="cluster", cov_kwds={"groups": item, "use_correction": False}
    )
    assert made.mean() == pytest.approx(values.mean(), abs=1e-12)
    assert np.sqrt(made.var(ddof=0) / n) == pytest.approx(float(fit.bse[0]), rel=1e-9)


@pytest.mark.parametrize("samples", [2, 16])
@pytest.mark.parametrize("n", [30, 100])
def test_coverage_of_several_samples(n: int, samples: int) -> None:
    """At least 93 % at 5 % to 95 % and within-item correlations of 0 to 0.9 (beta-binomial items)."""
    random = np.random.default_rng(11)
    for p in (0.05, 0.2, 0.5, 0.95):
        for correlation in (0.0, 0.3, 0.6, 0.9):
            spread = (1 - correlation) / correlation if correlation else 0
            chance = (
                random.beta(p * spread, (1 - p) * spread, (1500, n))
                if correlation
                else np.full((1500, n), p)
            )
            data = random.binomial(samples, chance) / samples
            intervals = (mean_interval(values, samples=n * samples) for values in data)
            assert np.mean([low <= p <= high for low, high, _ in intervals]) >= 0.93, (
                p,
                correlation,
            )


@pytest.mark.parametrize("n", [30, 40, 100, 200])
def test_coverage_of_one_sample(n: int) -> None:
    """Exact, by summing over all counts: Wilson's interval averages 95 % and dips to 92.8 % at single points."""
    intervals = [wilson(passes, n) for passes in range(n + 1)]
    grid = np.arange(0.05, 0.951, 0.05)
    weights = stats.binom.pmf(np.arange(n + 1)[:, None], n, grid)
    covered = np.array([[low <= p <= high for p in grid] for low, high in intervals])
    coverage = (weights * covered).sum(axis=0)
    assert coverage.min() > 0.928
    assert coverage.mean() == pytest.approx(0.95, abs=0.01)


# ---- graded scores: coverage and width over a grid, the same as in docs/statistics.md (benchmarks/coverage.py)


def test_coverage_over_the_grid() -> None:
    shares = {kind.name: covered(kind, 50, repeats=300).share for kind in GRID}
    assert np.mean(list(shares.values())) >= 0.93
    assert min(shares.values()) >= 0.90, shares


@pytest.mark.parametrize(
    "kind", [kind for kind in GRID if kind.name.startswith("Beta")], ids=lambda kind: kind.name
)
@pytest.mark.parametrize("n", [20, 50])
def test_graded_scores_are_as_wide_as_the_t_interval(kind: Kind, n: int) -> None:
    assert 0.9 <= covered(kind, n, repeats=200).width_to_t <= 1.15


@pytest.mark.parametrize("correlation", [0.5, 1.0])
def test_verdicts_are_as_wide_as_wilson(correlation: float) -> None:
    """Two equal samples of each item are one; half equal ones lie between one and two."""
    random = np.random.default_rng(2)
    for p in (0.1, 0.5, 0.8):
        first = random.random((50, 60)) < p
        second = np.where(random.random((50, 60)) < correlation, first, random.random((50, 60)) < p)
        for values in (first + second) / 2.0:
            low, high, _ = mean_interval(values, samples=120)
            widest = wilson(float(values.sum()), 60)
            assert high - low <= 1.15 * (widest[1] - widest[0])


def test_weak_spots_are_said_and_no_worse_than_the_docs_say() -> None:
    lognormal = next(kind for kind in WEAK if kind.name == "lognormal")
    random = np.random.default_rng(5)
    methods = [mean_interval(lognormal.draw(random, 50)[0], samples=50).method for _ in range(50)]
    assert sum("; weak: a few items" in method for method in methods) >= 35
    plain = [mean_interval(random.normal(5, 1, 50), samples=50).method for _ in range(50)]
    assert set(plain) == {"cluster_t"}
    assert (
        mean_interval(np.full(40, 0.7), samples=40).method
        == "wilson_of_items; weak: all items have the same value"
    )
    low, high, _ = mean_interval(np.full(40, 0.7), samples=40)
    assert (low, high) == pytest.approx(wilson(28, 40), abs=0.01)


def test_weights_are_those_of_the_contributions() -> None:
    item = np.array([0, 0, 0, 1, 2, 2])
    weights = item_weights(item)
    assert weights is not None
    assert weights.tolist() == [1.5, 0.5, 1.0]
    assert item_weights(np.array([0, 0, 1, 1])) is None
    assert item_weights(np.array([3, 5, 9])) is None
