"""Paired differences: oracles, coverage and false alarms by seeded simulation, order, cost."""

import time
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.interfaces import FloatArray
from assay.stats.intervals import t_interval
from assay.stats.paired import Differences, equivalent, flipped_tail, interval, significance
from assay.stats.student import mcnemar

REPEATS = 300


def most(share: float) -> int:
    """The most events of this chance among REPEATS: only one simulation in ten thousand has more."""
    return int(stats.binom.ppf(0.9999, REPEATS, share))


def simulated(
    random: np.random.Generator, n: int, p: float, q: float, shared: float, samples: int
) -> FloatArray:
    """Differences of two sides with pass rates p and q; `shared` is how much the items' difficulty explains."""
    difficulty = random.normal(size=(n, 1)) * shared**0.5

    def side(rate: float) -> FloatArray:
        noise = random.normal(size=(n, samples)) * (1 - shared) ** 0.5
        return (difficulty + noise < NormalDist().inv_cdf(rate)).mean(axis=1)

    return side(p) - side(q)


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize(("n", "shared"), [(30, 0.6), (150, 0.0)])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.95, 0.95), (0.9, 0.8), (0.97, 0.93)])
def test_coverage_and_false_alarms(n: int, shared: float, samples: int, p: float, q: float) -> None:
    random = np.random.default_rng(17)
    alarms = too_high = too_low = 0
    for _ in range(REPEATS):
        found = Differences(simulated(random, n, p, q, shared, samples))
        low, high = interval(found)
        too_high += low > p - q
        too_low += high < p - q
        alarms += significance(found, binary=samples == 1).p < 0.05
    assert too_high + too_low <= most(0.05)
    # a gate errs on one side: it passes what is worse than the bound, or fails what is better
    assert max(too_high, too_low) <= most(0.025)
    if p == q:
        assert alarms <= most(0.05)


def test_sign_flips_are_scipys_permutation_test() -> None:
    random = np.random.default_rng(4)
    for shift in (0.0, 0.06, 0.12):
        differences = np.round(random.normal(shift, 0.3, 50) * 4) / 4
        expected = stats.permutation_test(
            (differences,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1
        ).pvalue
        found = significance(Differences(differences), binary=False)
        assert found.method == "sign_flips"
        assert found.p == pytest.approx(float(expected), abs=0.012)


def test_sign_flips_of_binary_differences_are_mcnemars_test() -> None:
    differences = Differences(np.array([1.0] * 14 + [-1.0] * 5 + [0.0] * 40))
    exact = significance(differences, binary=True)
    assert exact == (mcnemar(14, 5), "mcnemar")
    assert significance(differences, binary=False).p == pytest.approx(exact.p, rel=0.02)


def test_the_interval_of_many_changed_items_is_the_t_interval() -> None:
    values = np.random.default_rng(5).normal(0.1, 1, 3000)
    low, high = t_interval(values)
    assert interval(Differences(values, 8.0)) == pytest.approx((low, high), abs=1e-3)
    assert interval(Differences(np.round(values, 1), 8.0)) == pytest.approx((low, high), abs=5e-3)
    expected = stats.ttest_1samp(values, 0).pvalue
    assert significance(Differences(values, 8.0), binary=False).p == pytest.approx(
        expected, rel=0.05
    )


def test_a_few_gains_prove_nothing() -> None:
    """Four gains and no loss among 100 items: p is 0.125, so the interval must not exclude zero."""
    found = Differences(np.array([1.0] * 4 + [0.0] * 96))
    low, high = interval(found)
    assert low <= 0 < found.mean == 0.04 < high
    assert significance(found, binary=True).p == pytest.approx(0.125)


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_items_without_a_change_leave_room_for_one(n: int) -> None:
    low, high = interval(Differences(np.zeros(n)))
    assert low == pytest.approx(-high, abs=0.4 / n)
    assert 1 / n < high < 5 / n
    assert significance(Differences(np.zeros(n)), binary=False).p == 1.0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, -0.3, 0.0, 0.1 + 0.2, 0.75]), min_size=1, max_size=50),
    st.randoms(),
)
def test_order_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (Differences(np.array(each)) for each in (values, shuffled))
    assert interval(first) == interval(second)
    assert significance(first, binary=False) == significance(second, binary=False)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_interval_holds_the_mean_and_keeps_the_scale(values: list[float]) -> None:
    found = Differences(np.array(values))
    low, high = interval(found)
    assert -1 <= low <= found.mean <= high <= 1


def test_a_hundred_thousand_items_take_milliseconds() -> None:
    values = np.random.default_rng(6).integers(-5, 6, 100_000) / 5
    began = time.process_time()
    found = Differences(values)
    interval(found)
    significance(found, binary=False)
    assert time.process_time() - began < 0.1  # drawing indices would need a billion random numbers


# ---- tails far beyond what resampling could see


@pytest.mark.parametrize("graded", [False, True])
def test_tails_are_those_of_all_sign_patterns(graded: bool) -> None:
    random = np.random.default_rng(8)
    parts = random.random(19) if graded else random.integers(1, 5, 19) / 4
    sums = np.zeros(1)
    for part in parts:
        sums = np.concatenate([sums + part, sums - part])
    sizes, counts = np.unique(parts, return_counts=True)
    for share in (0.3, 0.9, 0.99, 0.999, 0.9999):
        observed = float(np.quantile(np.abs(sums), share))
        expected = float(np.mean(np.abs(sums) >= observed * (1 - 1e-9)))
        assert flipped_tail(sizes, counts, observed) == pytest.approx(
            expected, rel=0.15 if expected < 2e-3 else 0.03
        )


def test_tails_of_one_size_are_binomial() -> None:
    for wins in (60, 80, 100, 130, 199, 200):
        found = flipped_tail(np.array([0.5]), np.array([200]), abs(2 * wins - 200) * 0.5)
        assert found == pytest.approx(stats.binomtest(wins, 200).pvalue, rel=0.01)


def test_plain_differences_survive_the_correction_for_528_pairs() -> None:
    """Holm's correction needs p-values below 0.0001; 10,000 resamples know none."""
    random = np.random.default_rng(9)
    differences = Differences(random.binomial(4, 0.7, 100) / 4 - random.binomial(4, 0.5, 100) / 4)
    p = significance(differences, binary=False).p
    expected = stats.ttest_1samp(np.repeat(differences.values, differences.counts), 0).pvalue
    assert 528 * p < 0.02
    assert np.log(p) == pytest.approx(np.log(expected), rel=0.15)


# ---- equivalence


def test_differences_are_not_shrunk() -> None:
    values = np.array([0.2] * 10 + [0.4] * 10)
    found = Differences(values)
    low, high = interval(found)
    assert found.mean == pytest.approx(0.3)
    assert (low + high) / 2 == pytest.approx(0.3, abs=0.01)


SPARSE = {
    "changes of verdicts": lambda random, n: simulated(random, n, 0.97, 0.92, 0.6, 1),
    "changes of shares": lambda random, n: simulated(random, n, 0.97, 0.92, 0.6, 4),
    "rare losses": lambda random, n: -(random.random(n) < 0.05).astype(float),
    "graded": lambda random, n: random.normal(0.05, 0.1, n).round(2),
}


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("n", [20, 60, 150])
def test_a_difference_at_the_margin_is_rarely_called_equivalent(kind: str, n: int) -> None:
    random = np.random.default_rng(10)
    called = [equivalent(Differences(SPARSE[kind](random, n)), 0.05) < 0.05 for _ in range(REPEATS)]
    assert sum(called) <= most(0.055)


def test_equivalence_of_plain_differences_is_that_of_two_t_tests() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    random = np.random.default_rng(3)
    first = random.normal(0.5, 0.2, 200)
    second = first + random.normal(0.02, 0.1, 200)
    expected = float(ttost_paired(first, second, -0.04, 0.04)[0])
    assert equivalent(Differences(first - second), 0.04) == pytest.approx(expected, rel=0.1)


def test_lopsided_differences_of_few_items_are_said_to_be_weak() -> None:
    """Seven small gains look certain; the eighth item may lose all of them."""
    few = significance(
        Differences(np.array([0.1, 0.11, 0.12, 0.1, 0.09, 0.1, 0.13, 0.1])), binary=False
    )
    assert few.p < 0.01
    assert few.method == "sign_flips; weak: fewer than 30 items"
    lopsided = significance(Differences(np.array([0.1] * 45 + [-0.9] * 5)), binary=False)
    assert lopsided.method == "sign_flips; weak: a few items make most of the spread"
