"""Logistic regression against statsmodels, and where there is nothing to fit."""

import numpy as np
import pytest

from assay.analysis.judge.bias import logistic


@pytest.mark.parametrize("seed", range(4))
def test_coefficients_and_robust_errors_are_those_of_statsmodels(seed: int) -> None:
    statsmodels = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(60), 3)
    columns = np.column_stack(
        [np.ones(180), random.normal(size=180), random.normal(size=60)[cluster]]
    )
    chance = 1 / (1 + np.exp(-columns @ np.array([0.3, 1.0, -0.7])))
    outcome = random.random(180) < chance
    found = logistic(columns, outcome, cluster, np.ones(180))
    assert found is not None
    expected = statsmodels.Logit(outcome.astype(float), columns).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": cluster}
    )
    assert found.coefficients == pytest.approx(expected.params, abs=1e-6)
    assert found.covariance == pytest.approx(expected.cov_params(), rel=1e-5)


def test_weights_are_repetitions() -> None:
    random = np.random.default_rng(1)
    columns = np.column_stack([np.ones(80), random.normal(size=80)])
    outcome, times = random.random(80) < 0.4, random.integers(1, 4, 80)
    weighted = logistic(columns, outcome, np.arange(80), times.astype(float))
    again = np.repeat(np.arange(80), times)
    repeated = logistic(columns[again], outcome[again], again, np.ones(len(again)))
    assert weighted is not None
    assert repeated is not None
    assert weighted.coefficients == pytest.approx(repeated.coefficients)


def test_what_can_be_told_apart_without_error_has_no_fit() -> None:
    places = np.linspace(-1, 1, 40)
    columns = np.column_stack([np.ones(40), places])
    assert logistic(columns, places > 0, np.arange(40), np.ones(40)) is None
    assert (
        logistic(
            np.column_stack([columns, columns[:, 1]]), places > 0.3, np.arange(40), np.ones(40)
        )
        is None
    )
