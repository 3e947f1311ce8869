"""A paired comparison of many items against drawing resamples of item numbers."""

import time

import numpy as np

from assay.stats.paired import Differences, interval, significance
from benchmarks.measure import Line

ITEMS, RESAMPLES = 100_000, 10_000
DRAWN = 200  # resamples that the plain way is timed for; its time is proportional to their number


def paired() -> list[Line]:
    """Interval and test of 100,000 items with five samples on each side."""
    random = np.random.default_rng(1)
    differences = random.binomial(5, 0.62, ITEMS) / 5 - random.binomial(5, 0.6, ITEMS) / 5
    ours = min(_ours(differences) for _ in range(5))
    plain = min(_plain(differences) for _ in range(3)) * RESAMPLES / DRAWN
    detail = f"{ours * 1000:.1f} ms / {plain:.1f} s, the latter from {DRAWN} resamples"
    return [
        Line("index resamples / paired comparison, 100,000 items", plain / ours, ">=", 20, detail)
    ]


def _ours(differences: np.ndarray) -> float:
    began = time.perf_counter()
    found = Differences(differences)
    interval(found)
    significance(found)
    return time.perf_counter() - began


def _plain(differences: np.ndarray) -> float:
    random = np.random.default_rng(2)
    began = time.perf_counter()
    means = [differences[random.integers(0, ITEMS, ITEMS)].mean() for _ in range(DRAWN)]
    np.quantile(means, (0.025, 0.975))
    return time.perf_counter() - began


BENCHMARKS = [paired]
