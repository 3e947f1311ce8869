"""Strict intervals, which gates decide by: with the truth at the bound each side errs at most 2.5 % of the time."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import beta

from assay.stats.intervals import mean_interval, skewed_interval, wilson_of_items
from assay.stats.paired import Differences, interval, strict_interval
from benchmarks.gates import (
    ALLOWED,
    DROPS,
    MEANS,
    RATES,
    Truth,
    errors,
    exact_drop,
    exact_quantile,
    exact_rates,
)

REPEATS = 600
MARGIN = 3.5 * (ALLOWED * (1 - ALLOWED) / REPEATS) ** 0.5


@pytest.mark.parametrize("n", [20, 50, 100, 200, 500])
def test_rates_err_as_rarely_as_they_say(n: int) -> None:
    assert max(max(wrong) for wrong in exact_rates(n, RATES)) <= ALLOWED


@pytest.mark.parametrize("n", [20, 30, 100])
@pytest.mark.parametrize(
    ("drop", "churn"), [(0, 0.1), (0.02, 0.05), (0.05, 0.05), (0.05, 0.1), (0.1, 0.2), (0.1, 0.3)]
)
def test_drops_of_verdicts_err_as_rarely_as_they_say(n: int, drop: float, churn: float) -> None:
    assert max(exact_drop(n, drop, churn)) <= ALLOWED


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_err_as_rarely_as_they_say(share: float) -> None:
    assert max(max(exact_quantile(n, share)) for n in range(20, 501, 10)) <= ALLOWED


@pytest.mark.parametrize("kind", MEANS + DROPS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [30, 100])
def test_other_numbers_err_as_rarely_as_they_say(kind: Truth, n: int) -> None:
    assert max(errors(kind, n, REPEATS)) <= ALLOWED + MARGIN


def test_one_verdict_an_item_is_clopper_and_pearsons() -> None:
    values = np.repeat([1.0, 0.0], [97, 3])
    low, high, method = mean_interval(values, samples=100, scale=(0.0, 1.0), way="strict")
    assert (low, high) == pytest.approx((beta.ppf(0.025, 97, 4), beta.ppf(0.975, 98, 3)))
    assert method == "clopper_pearson"


def test_all_right_in_several_samples_is_as_all_right_in_one() -> None:
    several = mean_interval(np.ones(40), samples=160, scale=(0.0, 1.0), way="strict")
    one = mean_interval(np.ones(40), samples=40, scale=(0.0, 1.0), way="strict")
    assert several[:2] == pytest.approx(one[:2])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=60))
def test_the_strict_interval_of_a_mean_is_the_outermost(scores: list[float]) -> None:
    values = np.array(scores)
    low, high, _ = mean_interval(values, samples=2 * len(values), scale=(0.0, 1.0), way="strict")
    assert low is not None
    assert high is not None
    assert 0 <= low <= values.mean() + 1e-12
    assert values.mean() - 1e-12 <= high <= 1
    for way in (wilson_of_items, skewed_interval):
        ends = way(np.sort(values), strict=True)
        assert low <= max(ends[0], 0) + 1e-9
        assert high >= min(ends[1], 1) - 1e-9


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=2, max_size=80))
def test_the_strict_interval_of_a_difference_holds_the_usual_one(steps: list[float]) -> None:
    differences = Differences(np.array(steps))
    low, high = strict_interval(differences)
    usual = interval(differences)
    assert -1 <= low <= usual[0] + 1e-12
    assert usual[1] - 1e-12 <= high <= 1
    mirrored = strict_interval(Differences(-np.array(steps)))
    assert mirrored == pytest.approx((-high, -low))
    wider = strict_interval(differences, 0.99)
    assert wider[0] <= low
    assert high <= wider[1]
