"""Intervals of quantiles: scipy's order statistics as oracle, and their coverage where rows share items."""

import numpy as np
import pytest
from scipy import stats

from assay.stats.intervals import quantile_interval


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_one_row_each_is_close_to_scipys_order_statistics(share: float) -> None:
    values = np.random.default_rng(1).lognormal(0, 1, 200)
    low, high, method = quantile_interval(np.arange(200), values, share)
    expected = stats.quantile_test(values, p=share).confidence_interval(0.95)
    places = [
        np.searchsorted(np.sort(values), end) for end in (low, high, expected.low, expected.high)
    ]
    assert method == "woodruff"
    assert abs(places[0] - places[2]) <= 2
    assert abs(places[1] - places[3]) <= 2


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


def test_what_the_values_cannot_show_is_said() -> None:
    values = np.random.default_rng(3).random(20)
    assert quantile_interval(np.arange(20), values, 0.99).method == (
        "woodruff; weak: the values end before the interval does"
    )
    assert quantile_interval(np.arange(20), values, 0.5).method == "woodruff"
    assert quantile_interval(np.zeros(20, int), values, 0.5).low is None
    assert quantile_interval(np.arange(20), values, 1.0).method.startswith("none: ")
