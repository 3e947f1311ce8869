"""P-values against scipy and statsmodels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from assay.stats.student import equivalence, holm, mcnemar, t_test


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_statsmodels_exact_test(gained: int, lost: int) -> None:
    expected = 1.0
    if gained + lost:
        expected = float(statsmodels_mcnemar([[5, gained], [lost, 5]], exact=True).pvalue)
    assert mcnemar(gained, lost) == pytest.approx(min(1.0, expected), rel=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(50_300, 49_700), (10_000, 10_500), (100_000, 90_000)])
def test_mcnemar_of_many_items(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-6, abs=1e-200)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_holm_of_nothing() -> None:
    assert holm([]) == []


@pytest.mark.parametrize("shift", [0.0, 0.02, -0.05, 0.3])
@pytest.mark.parametrize("margin", [0.01, 0.05, 0.2])
def test_equivalence_and_t_test_are_those_of_the_oracles(shift: float, margin: float) -> None:
    random = np.random.default_rng(3)
    first = random.normal(0.5, 0.2, 60)
    second = first + random.normal(shift, 0.1, 60)
    differences = first - second
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / 60**0.5
    expected = float(ttost_paired(first, second, -margin, margin)[0])
    assert equivalence(mean, error, 59, margin) == pytest.approx(expected, rel=1e-9)
    assert t_test(mean, error, 59) == pytest.approx(float(stats.ttest_rel(first, second).pvalue), rel=1e-9)


def test_differences_that_do_not_vary() -> None:
    assert t_test(0.0, 0.0, 9) == 1.0
    assert t_test(0.1, 0.0, 9) == 0.0
    assert equivalence(0.01, 0.0, 9, 0.02) == 0.0
    assert equivalence(0.02, 0.0, 9, 0.02) == 1.0
