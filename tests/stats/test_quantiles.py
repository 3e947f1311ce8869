"""Intervals of quantiles: scipy's order statistics as oracle, and their coverage where rows share items."""

import numpy as np
import pytest
from scipy import stats

from assay.stats.intervals import quantile_interval


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("n", [50, 200, 999])
def test_one_row_each_is_scipys_order_statistics(share: float, n: int) -> None:
    values = np.random.default_rng(1).lognormal(0, 1, n)
    found = quantile_interval(np.arange(n), values, share)
    expected = [
        stats.quantile_test(values, p=share, alternative=side).confidence_interval(0.975)
        for side in ("greater", "less")
    ]
    ends = expected[0].low, expected[1].high
    assert found.method == "order_statistics"
    assert found[:2] == tuple(None if np.isnan(end) else end for end in ends)


@pytest.mark.parametrize("n", [20, 50, 100, 200, 500])
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_each_end_errs_at_most_as_often_as_it_says(n: int, share: float) -> None:
    """Exact: the number of rows below the true quantile is binomial."""
    ranks = np.arange(1.0, n + 1)
    low, high, _ = quantile_interval(np.arange(n), ranks, share)
    if low is not None:
        assert stats.binom.cdf(low - 1, n, share) <= 0.025
    if high is not None:
        assert stats.binom.sf(high - 1, n, share) <= 0.025


@pytest.mark.parametrize(("share", "truth"), [(0.5, 0.0), (0.9, stats.norm.ppf(0.9) * 2**0.5)])
def test_rows_that_share_items_are_not_independent(share: float, truth: float) -> None:
    random = np.random.default_rng(2)
    item = np.repeat(np.arange(60), 5)
    held = 0
    for _ in range(400):
        values = random.normal(size=60)[item] + random.normal(size=300)
        low, high, _ = quantile_interval(item, values, share)
        held += low <= truth <= high
    assert held / 400 >= 0.92


def test_where_the_values_end_before_the_interval_does_it_is_open() -> None:
    values = np.random.default_rng(3).random(20)
    low, high, method = quantile_interval(np.arange(20), values, 0.99)
    assert (high, method) == (None, "order_statistics")
    assert low is not None
    assert quantile_interval(np.arange(20), values, 0.01).low is None
    assert quantile_interval(np.zeros(20, int), values, 0.5).low is None
    assert quantile_interval(np.arange(20), values, 1.0).method.startswith("none: ")
