"""Pass@k against exhaustive enumeration."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from assay.metrics._samples import pass_at_k


def test_equals_the_share_of_all_subsets_that_hold_a_pass() -> None:
    for n in range(1, 9):
        for c in range(n + 1):
            outcomes = [True] * c + [False] * (n - c)
            for k in range(1, n + 1):
                expected = np.mean([any(subset) for subset in combinations(outcomes, k)])
                assert pass_at_k(np.array([n]), np.array([c]), k)[0] == pytest.approx(
                    expected, abs=1e-12
                )


def test_large_numbers_neither_overflow_nor_cancel() -> None:
    n, c, k = 10_000, 3, 5_000
    exact = 1 - comb(n - c, k) / comb(n, k)
    assert pass_at_k(np.array([n]), np.array([c]), k)[0] == pytest.approx(exact, rel=1e-12)


def test_items_with_too_few_samples_have_no_value() -> None:
    found = pass_at_k(np.array([2, 5, 3]), np.array([2, 1, 0]), 3)
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx([0.6, 0.0])


def test_no_items() -> None:
    none = np.array([], dtype=np.int64)
    assert len(pass_at_k(none, none, 1)) == 0
