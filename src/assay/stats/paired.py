"""The mean of paired differences, one for each item: interval, test, and how much they vary.

Everything is made from the histogram of the differences, so the order of items cannot matter, and the cost of a
resample does not depend on their number.
"""

from statistics import NormalDist
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.student import mcnemar, t_quantile, t_test

RESAMPLES = 10_000
_DRAWS = 1 << 20  # numbers drawn at once: 8 MB
_MOST_DISTINCT = 1000

Counts = npt.NDArray[np.int64]


class Differences:
    """A histogram of differences. `scale` is how far two values can lie apart: 1 for scores from 0 to 1.

    A few changed items say little about how many would change: four gains among a hundred items make the plain
    standard error too small. So the spread is that of the items and two more: one unchanged, and one that changed by
    the usual amount, half up and half down (Agresti and Min 2005 for matched pairs of binary values). Where all
    items changed, this alters next to nothing; where none did, the amount is the scale.
    """

    def __init__(self, differences: FloatArray, scale: float = 1.0) -> None:
        # Sums of decimals differ in their last bits; without rounding, equal differences would look distinct.
        rounded = np.round(differences, 12) + 0.0
        self.values, self.counts = cast("tuple[FloatArray, Counts]", np.unique(rounded, return_counts=True))
        self.n = len(differences)
        self.mean = float(self.values @ self.counts) / self.n
        changed = int(self.counts[self.values != 0].sum())
        usual = float(np.sqrt((self.values**2) @ self.counts / changed)) if changed else scale
        self.scale = scale
        self._values = np.concatenate([self.values, [-usual, 0.0, usual]])
        self._weights = np.concatenate([self.counts, [0.5, 1.0, 0.5]]) / (self.n + 2)
        self.centre = float(self._values @ self._weights)
        variance = float((self._values - self.centre) ** 2 @ self._weights)
        self.deviation = float(np.sqrt(variance * (self.n + 2) / (self.n + 1)))
        self.error = self.deviation / float(np.sqrt(self.n))
        self.freedom = max(self.n - 1, 1)

    @property
    def gained(self) -> int:
        return int(self.counts[self.values > 0].sum())

    @property
    def lost(self) -> int:
        return int(self.counts[self.values < 0].sum())


def interval(
    differences: Differences, level: float = 0.95, seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """The bootstrap interval of the mean difference over items.

    A resample is a multinomial draw over the distinct values. Its percentiles are widened from the normal to
    Student's quantile, as plain ones are too narrow for few items (Hesterberg 2015). More than 1,000 distinct values
    mean items enough for the t interval, which is returned instead.
    """
    t = t_quantile((1 + level) / 2, differences.freedom)
    if len(differences.values) > _MOST_DISTINCT:
        low, high = differences.centre - t * differences.error, differences.centre + t * differences.error
    else:
        widened = NormalDist().cdf(t * (differences.n / differences.freedom) ** 0.5)
        means = _resampled_means(differences, seed, resamples)
        low, high = (float(q) for q in np.quantile(means, (1 - widened, widened)))
    low, high = min(low, differences.mean), max(high, differences.mean)
    return max(low, -differences.scale), min(high, differences.scale)


def _resampled_means(differences: Differences, seed: int, resamples: int) -> FloatArray:
    random = np.random.default_rng(seed)
    values, n = differences._values, differences.n
    means = np.empty(resamples)
    piece = max(1, _DRAWS // len(values))
    for start in range(0, resamples, piece):
        part = means[start : start + piece]
        part[:] = random.multinomial(n, differences._weights, len(part)) @ values / n
    return means


class Tested(NamedTuple):
    """A p-value and the name of the test that it came from."""

    p: float
    method: str


def significance(differences: Differences, *, binary: bool, seed: int = 0, resamples: int = RESAMPLES) -> Tested:
    """Whether the mean difference is zero: `binary` differences (one verdict an item on both sides) by McNemar's
    exact test, others by flipping their signs at random, which is the same test for graded values."""
    if binary:
        return Tested(mcnemar(differences.gained, differences.lost), "mcnemar")
    if len(differences.values) > _MOST_DISTINCT:
        return Tested(t_test(differences.mean, differences.error, differences.freedom), "t")
    return Tested(_sign_flips(differences, seed, resamples), "sign_flips")


def _sign_flips(differences: Differences, seed: int, resamples: int) -> float:
    sizes, inverse = cast("tuple[FloatArray, Counts]", np.unique(np.abs(differences.values), return_inverse=True))
    counts = np.bincount(inverse, weights=differences.counts).astype(np.int64)
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    if not len(sizes):
        return 1.0
    random = np.random.default_rng(seed)
    observed = abs(differences.mean) * differences.n * (1 - 1e-9)
    as_far = 0
    piece = max(1, _DRAWS // len(sizes))
    for start in range(0, resamples, piece):
        drawn = random.binomial(counts, 0.5, (min(piece, resamples - start), len(sizes)))
        as_far += int(np.count_nonzero(np.abs((2 * drawn - counts) @ sizes) >= observed))
    return (as_far + 1) / (resamples + 1)
