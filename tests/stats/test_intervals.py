"""Intervals against scipy and statsmodels as oracles, and their coverage by simulation."""

import time
import warnings
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from assay.stats.intervals import (
    Interval,
    bootstrap_mean,
    clopper_pearson,
    cluster_fields,
    intraclass,
    item_contributions,
    item_weights,
    mean_interval,
    skewed_interval,
    wilson,
    wilson_of_items,
)
from assay.stats.student import beta_quantile, binomial_quantile, t_quantile
from benchmarks.coverage import GRID, Kind, covered


@pytest.mark.parametrize("freedom", [1, 2, 3, 4.5, 10, 29, 100, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.995, 0.9995, 0.025])
def test_t_quantile_is_scipys(probability: float, freedom: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), rel=1e-9, abs=1e-12
    )


@pytest.mark.parametrize(
    ("passes", "n"), [(0, 1), (0, 10), (10, 10), (7, 30), (4, 9), (99_000, 100_000)]
)
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_is_statsmodels(passes: int, n: int, level: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = proportion_confint(passes, n, alpha=1 - level, method="wilson")
    assert wilson(passes, n, level) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("passes", "n"), [(1, 70), (69, 70), (1, 10), (2, 500)])
def test_near_the_ends_wilson_reaches_as_far_as_the_exact_interval(passes: int, n: int) -> None:
    plain = proportion_confint(passes, n, method="wilson")
    exact = proportion_confint(passes, n, alpha=0.1, method="beta")
    expected = (exact[0], plain[1]) if 2 * passes < n else (plain[0], exact[1])
    assert wilson(passes, n) == pytest.approx(expected, abs=1e-12)
    assert wilson(passes, n) != pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize(("passes", "n"), [(0, 1), (0, 10), (10, 10), (3, 20), (499, 500)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_clopper_pearson_is_statsmodels(passes: int, n: int, level: float) -> None:
    expected = proportion_confint(passes, n, alpha=1 - level, method="beta")
    assert clopper_pearson(passes, n, level) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 3), (40, 2), (2000, 30.5)])
def test_quantiles_of_beta_and_binomial_are_scipys(a: float, b: float) -> None:
    for probability in (0.01, 0.025, 0.5, 0.975):
        expected = stats.beta.ppf(probability, a, b)
        assert beta_quantile(probability, a, b) == pytest.approx(expected, abs=1e-12)
        for n, share in ((20, 0.99), (50, 0.5), (1000, 0.05)):
            assert binomial_quantile(probability, n, share) == stats.binom.ppf(
                probability, n, share
            )


def test_without_skewness_the_interval_of_a_mean_is_students() -> None:
    half = np.random.default_rng(3).normal(7, 2, 20)
    values = np.concatenate([half, 14 - half])
    expected = stats.t.interval(0.9, 39, values.mean(), stats.sem(values))
    assert skewed_interval(values, 0.9) == pytest.approx(expected, rel=1e-9)


def test_skewed_values_move_an_end_out_and_never_in() -> None:
    values = np.random.default_rng(4).lognormal(0, 1, 50)
    low, high = stats.t.interval(0.95, 49, values.mean(), stats.sem(values))
    moved, strict = skewed_interval(values), skewed_interval(values, strict=True)
    assert moved[0] == pytest.approx(low)
    assert high < moved[1] < strict[1]
    mirrored = skewed_interval(-values)
    assert mirrored == pytest.approx((-moved[1], -moved[0]))


@pytest.mark.parametrize(("n", "least"), [(20, 0.915), (50, 0.93), (200, 0.935)])
def test_coverage_of_lognormal_means(n: int, least: float) -> None:
    """Student's holds 86, 90 and 93 % of them."""
    draws = np.random.default_rng(n).lognormal(0, 1, (3000, n))
    held = [low <= np.exp(0.5) <= high for low, high in map(skewed_interval, draws)]
    assert np.mean(held) >= least


@pytest.mark.parametrize("n", [30, 50, 200])
def test_strict_intervals_of_lognormal_means_err_rarely_on_each_side(n: int) -> None:
    draws = np.random.default_rng(n).lognormal(0, 1, (4000, n))
    ends = np.array([skewed_interval(values, strict=True) for values in draws])
    assert np.mean(ends[:, 0] > np.exp(0.5)) <= 0.025 + 0.005
    assert np.mean(ends[:, 1] < np.exp(0.5)) <= 0.025 + 0.005


def test_bootstrap_agrees_with_scipys_percentile_bootstrap() -> None:
    values = np.random.default_rng(5).binomial(4, 0.3, 80) / 4
    expected = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=1
    ).confidence_interval
    assert bootstrap_mean(values) == pytest.approx(tuple(expected), abs=0.005)


def test_bootstrap_of_many_distinct_values_is_halls_interval() -> None:
    values = np.random.default_rng(6).normal(0, 1, 10_000)
    found = mean_interval(values, samples=10_000, way="bootstrap")
    assert found[:2] == pytest.approx(skewed_interval(values), abs=1e-12)
    assert found.method == "hall"
    assert mean_interval(values[:150], samples=150, way="bootstrap").method == "bootstrap"
    assert bootstrap_mean(values[:900]) == pytest.approx(skewed_interval(values[:900]), abs=0.01)


def test_bootstrap_cost_does_not_depend_on_the_number_of_items() -> None:
    values = np.random.default_rng(7).binomial(1, 0.4, 100_000).astype(float)
    started = time.process_time()
    low, high = bootstrap_mean(values)
    # drawing indices would need a billion random numbers
    assert time.process_time() - started < 0.5
    assert (low, high) == pytest.approx(wilson(float(values.sum()), 100_000), abs=5e-4)


Way = Literal["auto", "bootstrap", "strict"]
ways = st.sampled_from(["auto", "bootstrap", "strict"])
unit_values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=2, max_size=40)


@settings(max_examples=40, deadline=None)
@given(unit_values, st.randoms(use_true_random=False), ways)
def test_order_does_not_matter(values: list[float], random: object, way: Way) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    made = [
        mean_interval(np.array(each), samples=4 * len(each), way=way) for each in (values, shuffled)
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
    assert mean_interval(mixed, samples=8, way="bootstrap").method == f"bootstrap{few}"
    assert mean_interval(mixed * 5, samples=8).method == f"hall{few}"
    assert mean_interval(np.tile(mixed, 10), samples=80).method == "wilson_of_items"
    assert mean_interval(np.tile(mixed * 5, 10), samples=80).method == "hall"
    assert mean_interval(mixed[:1], samples=2) == (
        None,
        None,
        "none: an interval needs at least two items",
    )
    assert mean_interval(np.full(9, 3.0), samples=9) == (
        None,
        None,
        "none: all items have the same value, and no `scale` says how far others may lie",
    )
    assert mean_interval(zeros[:4], samples=4).method == "wilson; weak: fewer than 5 items"
    strict = mean_interval(zeros, samples=10, way="strict")
    assert strict == (*clopper_pearson(0, 10), "clopper_pearson")
    assert mean_interval(np.tile(mixed, 10), samples=80, way="strict").method == "korn_graubard"


@pytest.mark.parametrize("samples", [30, 480])
@pytest.mark.parametrize("way", ["auto", "bootstrap"])
def test_the_ends_keep_an_honest_width(samples: int, way: Way) -> None:
    """30 items without a failure do not prove perfection, however many samples each had."""
    low, high, _ = mean_interval(np.ones(30), samples=samples, way=way)
    assert high == 1.0
    assert low is not None
    assert 0.85 < low < 0.9
    assert mean_interval(np.zeros(30), samples=samples, way=way)[0] == 0.0


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
    """Exact, by summing over all counts: averages 95 %, and dips to 92 % at single points, next to 0 and 1 too."""
    intervals = [wilson(passes, n) for passes in range(n + 1)]
    grid = np.concatenate([np.arange(0.01, 8, 0.1) / n, np.arange(0.05, 0.951, 0.01)])
    weights = stats.binom.pmf(np.arange(n + 1)[:, None], n, grid)
    covered = np.array([[low <= p <= high for p in grid] for low, high in intervals])
    coverage = (weights * covered).sum(axis=0)
    assert coverage.min() > 0.92
    assert coverage[-91:].mean() == pytest.approx(0.95, abs=0.01)


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
    assert 0.85 <= covered(kind, n, repeats=200).width_to_t <= 1.15


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


def test_weak_spots_are_said() -> None:
    random = np.random.default_rng(5)
    assert mean_interval(random.lognormal(0, 1, 50), samples=50).method == "hall"
    assert mean_interval(random.normal(5, 1, 29), samples=29).method.endswith("than 30 items")
    assert (
        mean_interval(np.full(40, 0.7), samples=40).method
        == "wilson_of_items; weak: all items have the same value"
    )
    low, high, _ = mean_interval(np.full(40, 0.7), samples=40)
    assert (low, high) == pytest.approx(wilson(28, 40), abs=0.01)


# ---- scales


def test_on_its_own_scale_a_perfect_score_has_an_interval() -> None:
    fives = mean_interval(np.full(12, 5.0), samples=12, scale=(1.0, 5.0))
    assert fives[:2] == pytest.approx((1 + 4 * wilson(12, 12)[0], 5.0))
    rewards = mean_interval(np.ones(30), samples=30, scale=(-1.0, 1.0))
    assert rewards.low == pytest.approx(0.773, abs=5e-4)
    assert rewards.high == 1.0
    assert mean_interval(np.full(12, 5.0), samples=12).low is None


def test_an_open_scale_only_cuts_the_interval() -> None:
    values = np.array([0.01, 0.02, 0.01, 9.0] * 8)
    free = mean_interval(values, samples=32, scale=(None, None))
    cut = mean_interval(values, samples=32, scale=(2.0, None))
    assert cut == (max(2.0, free.low or 0), free.high, free.method)


def test_scores_beyond_their_scale_are_taken_as_they_are() -> None:
    values = np.array([7.0, 8.0] * 20)
    assert mean_interval(values, samples=40, scale=(1.0, 5.0)).method == "hall"


@pytest.mark.parametrize("n", [30, 100])
def test_near_the_good_end_a_failure_that_was_not_seen_is_reckoned_with(n: int) -> None:
    """Scores of 0.99 of which one in a hundred is 0: without that, 24 and 58 % of the intervals hold the mean."""
    random = np.random.default_rng(n)
    held: list[bool] = []
    for _ in range(1000):
        values = np.where(random.random(n) < 0.01, 0.0, random.beta(200, 2, n))
        low, high, _ = mean_interval(values, samples=n)
        assert low is not None
        assert high is not None
        held.append(low <= 0.99 * 200 / 202 <= high)
    assert np.mean(held) >= 0.93
    top = mean_interval(np.linspace(0.985, 0.995, n), samples=n)
    floor = mean_interval(np.linspace(0.005, 0.015, n), samples=n, lower_is_better=True)
    assert floor[:2] == pytest.approx((1 - (top.high or 0), 1 - (top.low or 0)))


def test_ends_follow_a_transform_and_open_ends_stay_open() -> None:
    assert Interval(1.0, 4.0, "m").transformed(lambda x: x**0.5) == (1.0, 2.0, "m")
    assert Interval(1.0, 4.0, "m").transformed(lambda x: -x) == (-4.0, -1.0, "m")
    assert Interval(None, 4.0, "m").transformed(lambda x: 2 * x) == (None, 8.0, "m")


# ---- clusters


def test_one_item_a_cluster_changes_nothing() -> None:
    values = np.random.default_rng(9).random(40)
    plain = mean_interval(values, samples=40)
    assert mean_interval(values, samples=40, clusters=np.arange(40)) == plain


@pytest.mark.parametrize(("groups", "size", "alike"), [(20, 10, 0.3), (48, 20, 0.1)])
def test_coverage_of_clusters(groups: int, size: int, alike: float) -> None:
    """Passages with questions: as if independent, 66 and 72 % of the intervals hold the rate."""
    random = np.random.default_rng(groups)
    odds, cluster = (1 - alike) / alike, np.repeat(np.arange(groups), size)
    held = 0
    for _ in range(600):
        rate = random.beta(0.7 * odds, 0.3 * odds, groups)
        values = (random.random(len(cluster)) < rate[cluster]).astype(float)
        low, high, method = mean_interval(values, samples=len(values), clusters=cluster)
        assert "weak" not in method
        held += low <= 0.7 <= high
    assert 0.92 <= held / 600 <= 0.98


def test_intraclass_correlation_is_the_analysis_of_variance() -> None:
    random = np.random.default_rng(12)
    cluster = np.sort(random.integers(0, 12, 90))
    values = random.normal(0, 1, 12)[cluster] + random.normal(0, 1, 90)
    found = intraclass(cluster, values)
    parts = [values[cluster == number] for number in np.unique(cluster)]
    sizes, ratio = [len(part) for part in parts], stats.f_oneway(*parts).statistic
    usual = (90 - sum(size**2 for size in sizes) / 90) / (len(parts) - 1)
    assert found.correlation == pytest.approx((ratio - 1) / (ratio + usual - 1))
    fields = cluster_fields("item.metadata.passage", values, cluster)
    assert fields["icc"] == found.correlation
    assert fields["cluster_count"] == len(parts)
    assert fields["design_effect"] > 2
    alike = intraclass(np.repeat([0, 1], 5), np.repeat([0.0, 1.0], 5))
    assert alike.correlation == pytest.approx(1.0)


def test_weights_are_those_of_the_contributions() -> None:
    item = np.array([0, 0, 0, 1, 2, 2])
    weights = item_weights(item)
    assert weights is not None
    assert weights.tolist() == [1.5, 0.5, 1.0]
    assert item_weights(np.array([0, 0, 1, 1])) is None
    assert item_weights(np.array([3, 5, 9])) is None
