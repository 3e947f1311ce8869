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
from assay.stats.paired import Differences, interval, significance
from assay.stats.student import mcnemar

REPEATS = 300


def most(share: float) -> int:
    """The most events of this chance among REPEATS: only one simulation in ten thousand has more."""
    return int(stats.binom.ppf(0.9999, REPEATS, share))


def simulated(random: np.random.Generator, n: int, p: float, q: float, shared: float, samples: int) -> FloatArray:
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
        low, high = interval(found, resamples=1000)
        too_high += low > p - q
        too_low += high < p - q
        alarms += significance(found, binary=samples == 1, resamples=499).p < 0.05
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
        found = significance(Differences(differences), binary=False, resamples=20_000)
        assert found.method == "sign_flips"
        assert found.p == pytest.approx(float(expected), abs=0.012)


def test_sign_flips_of_binary_differences_are_mcnemars_test() -> None:
    differences = Differences(np.array([1.0] * 14 + [-1.0] * 5 + [0.0] * 40))
    exact = significance(differences, binary=True)
    assert exact == (mcnemar(14, 5), "mcnemar")
    assert significance(differences, binary=False, resamples=50_000).p == pytest.approx(exact.p, abs=0.006)


def test_the_interval_of_many_changed_items_is_the_t_interval() -> None:
    values = np.random.default_rng(5).normal(0.1, 1, 3000)
    low, high = t_interval(values)
    assert interval(Differences(values, 8.0)) == pytest.approx((low, high), abs=1e-3)
    assert interval(Differences(np.round(values, 1), 8.0)) == pytest.approx((low, high), abs=5e-3)
    assert significance(Differences(values, 8.0), binary=False).method == "t"


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
@given(st.lists(st.sampled_from([-1.0, -0.3, 0.0, 0.1 + 0.2, 0.75]), min_size=1, max_size=50), st.randoms())
def test_order_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = (Differences(np.array(each)) for each in (values, shuffled))
    assert interval(first, resamples=200) == interval(second, resamples=200)
    assert significance(first, binary=False, resamples=200) == significance(second, binary=False, resamples=200)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_interval_holds_the_mean_and_keeps_the_scale(values: list[float]) -> None:
    found = Differences(np.array(values))
    low, high = interval(found, resamples=200)
    assert -1 <= low <= found.mean <= high <= 1


def test_a_hundred_thousand_items_take_milliseconds() -> None:
    values = np.random.default_rng(6).integers(-5, 6, 100_000) / 5
    began = time.process_time()
    found = Differences(values)
    interval(found)
    significance(found, binary=False)
    assert time.process_time() - began < 0.5  # drawing indices would need a billion random numbers
