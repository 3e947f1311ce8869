"""The mean of paired differences, one for each item: interval, test, and how much they vary.

Everything is made from the histogram of the differences, so the order of items cannot matter, and nothing is drawn at
random.
"""

import math
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.intervals import weakness
from assay.stats.student import mcnemar, t_quantile, t_tail

Counts = npt.NDArray[np.int64]


class Differences:
    """A histogram of differences. `scale` is how far two values can lie apart: 1 for scores from 0 to 1; they may lie
    further where they are not `bounded`.

    A few changed items say little about how many would change: four gains among a hundred items make the plain
    standard error too small. So the spread is that of the items and up to two more around their mean: one like it, and
    one that lies off by the usual change, half above and half below (after Agresti and Min 2005). They weigh as much
    as the share of the commonest difference: where all items changed differently, nothing; where none changed, fully,
    and the usual change is then the scale. The mean itself is that of the items.
    """

    def __init__(
        self, differences: FloatArray, scale: float = 1.0, *, bounded: bool = True
    ) -> None:
        # Sums of decimals differ in their last bits; without rounding, equal differences would look distinct.
        rounded = np.round(differences, 12) + 0.0
        self.values, self.counts = cast(
            "tuple[FloatArray, Counts]", np.unique(rounded, return_counts=True)
        )
        self.n = len(differences)
        self.mean = float(self.values @ self.counts) / self.n
        changed = int(self.counts[self.values != 0].sum())
        self.usual = float(np.sqrt((self.values**2) @ self.counts / changed)) if changed else scale
        self.limit = scale if bounded else math.inf
        more = int(self.counts.max()) / self.n
        total = self.n + 2 * more
        around = self.mean + self.usual * np.array([-1.0, 0.0, 1.0])
        off = np.concatenate([self.values, around]) - self.mean
        weights = np.concatenate([self.counts, more * np.array([0.5, 1.0, 0.5])]) / total
        variance = float(off**2 @ weights)
        self.skew = float(off**3 @ weights) / variance**1.5 if variance else 0.0
        self.deviation = float(np.sqrt(variance * total / max(total - 1, 1)))
        self.error = self.deviation / float(np.sqrt(self.n))
        self.freedom = max(self.n - 1, 1)

    @property
    def gained(self) -> int:
        return int(self.counts[self.values > 0].sum())

    @property
    def lost(self) -> int:
        return int(self.counts[self.values < 0].sum())


def interval(differences: Differences, level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean difference over items: Student's, as far as it must be moved for skewed differences
    (Hall 1992), and as far as Wilson's would go for changes of the usual size: where nothing changed, the spread says
    nothing about changes that are rare."""
    n, mean = differences.n, differences.mean
    t = t_quantile((1 + level) / 2, differences.freedom)
    reach = t / math.sqrt(n)
    moved = [
        mean - differences.deviation * _straightened(end, differences.skew, n)
        for end in (reach, -reach)
    ]
    low = min(mean - t * differences.error, moved[0], -_rare(differences, -mean, t))
    high = max(mean + t * differences.error, moved[1], _rare(differences, mean, t))
    return max(low, -differences.limit), min(high, differences.limit)


def _bent(deviations: float, skew: float, n: int) -> float:
    """Hall's transformation of (mean - true mean) / s, which takes the skewness out of its distribution."""
    return deviations + skew * deviations**2 / 3 + skew**2 * deviations**3 / 27 + skew / (6 * n)


def _straightened(bent: float, skew: float, n: int) -> float:
    """The inverse of `_bent`."""
    if abs(skew) < 1e-6:
        return bent
    return 3 / skew * (math.cbrt(1 + skew * (bent - skew / (6 * n))) - 1)


def _rare(differences: Differences, mean: float, t: float) -> float:
    """The largest true mean δ within t standard errors, were it made of changes of the usual size u alone, whose
    variance is uδ - δ²."""
    n, usual = differences.n, differences.usual
    half = 2 * mean * n + t * t * usual
    root = half**2 - 4 * (n + t * t) * mean**2 * n
    return max(mean, (half + math.sqrt(root)) / (2 * (n + t * t))) if root > 0 else mean


def equivalent(differences: Differences, margin: float) -> float:
    """The p-value of the mean not lying within ±margin, by two one-sided tests (Schuirmann 1987) with the spread and
    the skewness of `interval`. A mean at the margin has at least the variance of as many changes of the usual size:
    items that did not change do not prove that none would."""
    least = margin * differences.usual - margin**2
    deviation = math.sqrt(max(differences.deviation**2, least))
    if not deviation:
        return 0.0 if abs(differences.mean) < margin else 1.0
    n, skew = differences.n, differences.skew * (differences.deviation / deviation) ** 3
    beyond: list[float] = []
    for sign in (1, -1):
        off = (sign * differences.mean - margin) / deviation
        bent = max(off, _bent(off, sign * skew, n))
        beyond.append(t_tail(-bent * math.sqrt(n), differences.freedom))
    return max(beyond)


class Tested(NamedTuple):
    """A p-value and the name of the test that it came from, which ends in `; weak:` and why where it is known to err
    more often than it says."""

    p: float
    method: str


def significance(differences: Differences, *, binary: bool) -> Tested:
    """Whether the mean difference is zero: `binary` differences (one verdict an item on both sides) by McNemar's
    exact test, others by flipping their signs at random, which is the same test for graded values. It takes
    differences as likely to be above as below their mean; lopsided ones of few items mislead it."""
    if binary:
        return Tested(mcnemar(differences.gained, differences.lost), "mcnemar")
    sizes, inverse = cast(
        "tuple[FloatArray, Counts]", np.unique(np.abs(differences.values), return_inverse=True)
    )
    counts = np.bincount(inverse, weights=differences.counts).astype(np.int64)
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    observed = abs(differences.mean) * differences.n
    p = flipped_tail(sizes, counts, observed) if len(sizes) and observed > 0 else 1.0
    return Tested(min(1.0, p), f"sign_flips{weakness(differences.values, differences.counts)}")


Counts = npt.NDArray[np.int64]
_EXACT = 15  # parts: up to this many, all sign patterns are listed
_FINEST = 1000  # steps of a lattice in the largest size; a finer one is as good as none


class _Tilted(NamedTuple):
    """The cumulant generating function at θ with its first two derivatives."""

    value: float
    slope: float
    curve: float


def flipped_tail(sizes: FloatArray, counts: Counts, observed: float) -> float:
    """P(|Σ ± sizes| >= observed), where each of `counts` parts of each size above 0 has either sign by chance: the
    saddlepoint approximation (Daniels 1987; Barndorff-Nielsen 1986), whose relative error is small even far out."""
    parts, most = int(counts.sum()), float(sizes @ counts)
    if observed >= most * (1 - 1e-9):
        return 2.0 ** (1 - parts)
    if parts <= _EXACT:
        sums = np.zeros(1)
        for size in np.repeat(sizes, counts):
            sums = np.concatenate([sums + size, sums - size])
        return float(np.mean(np.abs(sums) >= observed * (1 - 1e-9)))
    unit = _unit(sizes)
    sought = observed - unit  # sums lie two units apart: the correction for continuity
    if sought <= 0:
        return 1.0
    theta = 0.0
    for _ in range(200):  # the slope is concave, so Newton's steps from below never go too far
        at = _signs(sizes, counts, theta)
        step = (sought - at.slope) / at.curve
        theta += step
        if step <= 1e-12 * theta:
            break
    at = _signs(sizes, counts, theta)
    wide = math.sinh(theta * unit) / unit if 0 < theta * unit < 300 else theta
    tail = math.erfc(
        _modified_root(theta * sought - at.value, wide * math.sqrt(at.curve)) / math.sqrt(2)
    )
    return min(1.0, max(tail, 2.0 ** (1 - parts)))


def _signs(sizes: FloatArray, counts: Counts, theta: float) -> _Tilted:
    bent = np.tanh(theta * sizes)
    cosh = np.logaddexp(theta * sizes, -theta * sizes) - math.log(2)
    return _Tilted(
        float(cosh @ counts), float(sizes * bent @ counts), float(sizes**2 * (1 - bent**2) @ counts)
    )


def _unit(sizes: FloatArray) -> float:
    """The largest number that all sizes are multiples of; 0 where it would be too small to matter."""
    largest = float(sizes.max())
    unit = largest
    for size in sizes.tolist():
        while size > 1e-9 * largest:
            unit, size = size, math.fmod(unit, size)
            if size > unit - 1e-9 * largest:
                size = 0.0
        if unit < largest / _FINEST:
            return 0.0
    return unit


def _modified_root(distance: float, width: float) -> float:
    """r* = r + log(u / r) / r, where r² is twice the `distance` and u the `width`."""
    root = math.sqrt(max(2 * distance, 0.0))
    if root < 1e-4 or width <= 0:
        return root
    return root + math.log(width / root) / root
