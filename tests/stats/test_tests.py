"""P-values against scipy and statsmodels."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from assay.stats.student import holm, mcnemar, t_tail


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_statsmodels_exact_test(gained: int, lost: int) -> None:
    expected = 1.0
    if gained + lost:
        expected = float(statsmodels_mcnemar([[5, gained], [lost, 5]], exact=True).pvalue)
    assert mcnemar(gained, lost) == pytest.approx(min(1.0, expected), rel=1e-9)


@pytest.mark.parametrize(
    ("gained", "lost"), [(50_300, 49_700), (10_000, 10_500), (100_000, 90_000)]
)
def test_mcnemar_of_many_items(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-6, abs=1e-200)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_holm_of_nothing() -> None:
    assert holm([]) == []


@pytest.mark.parametrize("t", [-3.0, -0.2, 0.0, 0.4, 2.5, 30.0])
def test_t_tail_is_scipys(t: float) -> None:
    assert t_tail(t, 59) == pytest.approx(float(stats.t.sf(t, 59)), rel=1e-9)
