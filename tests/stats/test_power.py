"""What a number of items can show, against statsmodels."""

import pytest
from statsmodels.stats.power import TTestPower

from assay.stats.student import items_for_difference, smallest_difference


@pytest.mark.parametrize("n", [20, 50, 200, 5000])
@pytest.mark.parametrize("alpha", [0.05, 0.005])
def test_the_smallest_difference_is_statsmodels(n: int, alpha: float) -> None:
    expected = TTestPower().solve_power(nobs=n, alpha=alpha, power=0.8)
    assert smallest_difference(0.5, n, alpha) == pytest.approx(0.5 * float(expected), rel=0.02)


@pytest.mark.parametrize("effect", [0.05, 0.2, 0.5])
def test_items_for_a_difference_are_statsmodels(effect: float) -> None:
    expected = float(TTestPower().solve_power(effect_size=effect, alpha=0.05, power=0.8))
    assert items_for_difference(1.0, -effect) == pytest.approx(expected, abs=1 + 0.02 * expected)


def test_one_item_less_would_not_do() -> None:
    n = items_for_difference(0.4, 0.03)
    assert n is not None
    assert smallest_difference(0.4, n) <= 0.03 < smallest_difference(0.4, n - 1)


def test_what_no_number_of_items_shows() -> None:
    assert items_for_difference(1.0, 0.0) is None
    assert items_for_difference(1.0, 1e-9) is None
