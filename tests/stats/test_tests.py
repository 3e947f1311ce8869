"""P-values against scipy and statsmodels."""

import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from assay.stats.student import alpha_left, holm, t_tail


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.01, 0.05, 0.2]))
def test_in_the_end_holm_compares_all_with_one_number(p_values: list[float], alpha: float) -> None:
    adjusted = holm(p_values)
    left = alpha_left(adjusted, alpha)
    assert alpha / len(p_values) <= left <= alpha
    for p, corrected in zip(p_values, adjusted, strict=True):
        if corrected != pytest.approx(alpha):
            assert (corrected < alpha) == (p < left)


def test_holm_of_nothing() -> None:
    assert holm([]) == []


@pytest.mark.parametrize("t", [-3.0, -0.2, 0.0, 0.4, 2.5, 30.0])
def test_t_tail_is_scipys(t: float) -> None:
    assert t_tail(t, 59) == pytest.approx(float(stats.t.sf(t, 59)), rel=1e-9)
