"""The mean of paired differences, one for each item: interval, test, and how much they vary.

Everything is made from the histogram of the differences, so the order of items cannot matter, and nothing is drawn at
random.
"""

import math
from typing import cast

import numpy as np

from assay.interfaces import FloatArray, IntArray, Integers
from assay.stats.intervals import item_contributions, straightened
from assay.stats.student import POWER, t_quantile, t_tail

Counts = IntArray
_FEW_ITEMS = 30  # below, skewed differences are held less often than the level says
_FEW_CLUSTERS = 10
_FEW_CHANGED = 5  # items: below, the size of changes that differ is not known


class Differences:
    """A histogram of differences of items, or with `clusters` of what clusters of items contribute.
    `scale` is how far two values can lie apart: 1 for scores from 0 to 1; they may lie further where
    they are not `bounded`.

    A few changed items say little about how many would change: four gains among a hundred items make the plain
    standard error too small. So the spread is that of the items and up to two more around their mean: one like it, and
    one that lies off by the usual change, half above and half below (after Agresti and Min 2005). They weigh as much
    as the share of the commonest difference: where all items changed differently, nothing; where none changed, fully,
    and the usual change is then the scale. The mean itself is that of the items.
    """

    def __init__(
        self,
        differences: FloatArray,
        scale: float = 1.0,
        *,
        bounded: bool = True,
        clusters: Integers | None = None,
    ) -> None:
        self.items = len(differences)
        self.clustered = clusters is not None
        if clusters is not None:
            differences = item_contributions(clusters, differences)
        # Sums of decimals differ in their last bits; without rounding, equal differences would look distinct.
        self.values, self.counts = cast(
            "tuple[FloatArray, Counts]",
            np.unique(np.round(differences, 12) + 0.0, return_counts=True),
        )
        self.n = len(differences)
        self.scale = scale
        self.limit = scale if bounded else math.inf
        self.mean = float(self.values @ self.counts) / self.n
        self.changed = int(self.counts @ (self.values != 0))
        squares = self.values**2 @ self.counts
        self.usual = math.sqrt(squares / self.changed) if self.changed else scale
        self.alike = int(self.counts.max()) / self.n
        self.freedom = max(self.n - 1, 1)
        self.lightness = self.alike / (12 * max(self.changed, 1))
        self._set_spread()

    def _set_spread(self) -> None:
        """Set what is known about the mean from the items and those that are added to them."""
        more = self.alike
        total = self.n + 2 * more
        off = np.concatenate([self.values - self.mean, [-self.usual, 0.0, self.usual]])
        weights = np.concatenate([self.counts, [more / 2, more, more / 2]]) / total
        variance = float(off**2 @ weights)
        self.skew = float(off**3 @ weights) / variance**1.5
        self.deviation = math.sqrt(variance * total / (total - 1))
        self.error = self.deviation / math.sqrt(self.n)

    @property
    def weakness(self) -> str:
        """Return what the interval suffers from, if anything, in the words that end its method.
        Where changes go over the whole scale, even a few of them tell how large they can be."""
        few = self.changed < _FEW_CHANGED and self.usual < self.limit
        reason = f"{_FEW_CHANGED} items changed" if few else ""
        if self.items < _FEW_ITEMS:
            reason = f"{_FEW_ITEMS} items"
        if self.clustered and self.n < _FEW_CLUSTERS:
            reason = f"{_FEW_CLUSTERS} clusters"
        return f"; weak: fewer than {reason}" if reason else ""


def interval(differences: Differences, level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean difference over items: Student's, as far as it must be moved for skewed differences
    (Hall 1992), and as far as Wilson's would go for changes of the usual size: where nothing changed, the spread says
    nothing about changes that are rare. `significance` is its inverse."""
    low, high = _ends(differences, t_quantile((1 + level) / 2, differences.freedom))
    return max(low, -differences.limit), min(high, differences.limit)


def _ends(differences: Differences, t: float) -> tuple[float, float]:
    half = _shorten(t, differences.lightness) * differences.error
    below, above = (max(half, off) for off in _reaches(differences, t))
    return differences.mean - below, differences.mean + above


def _reaches(differences: Differences, t: float, skewness: float = 1.0) -> list[float]:
    """Return how far down and up from the mean Hall's ends and those of rare changes lie."""
    n = differences.n
    mean = differences.mean
    skew = differences.skew * skewness
    return [
        max(
            side * differences.deviation * straightened(side * t / math.sqrt(n), skew, n),
            side * mean + _rare(differences, -side * mean, t),
        )
        for side in (1, -1)
    ]


def detectable_difference(differences: Differences, alpha: float) -> float:
    """Return the true difference that items like these find 4 times in 5: how far the end of the
    interval that is nearer to zero lies off if t is that of the test and of the power together."""
    freedom = differences.freedom
    mean = differences.mean
    low, high = _ends(differences, t_quantile(1 - alpha / 2, freedom) + t_quantile(POWER, freedom))
    return mean - low if mean > 0 else high - mean


def _bent(deviations: float, skew: float, n: int) -> float:
    """Hall's transformation of (mean - true mean) / s, which takes the skewness out of its distribution."""
    return deviations + skew * deviations**2 / 3 + skew**2 * deviations**3 / 27 + skew / (6 * n)


def _rare(differences: Differences, mean: float, t: float) -> float:
    """The largest true mean δ within t standard errors, were it made of changes of the usual size u alone, whose
    variance is uδ - δ²."""
    n = differences.n
    usual = differences.usual
    half = 2 * mean * n + t * t * usual
    root = half**2 - 4 * (n + t * t) * mean**2 * n
    return max(mean, (half + math.sqrt(root)) / (2 * (n + t * t))) if root > 0 else mean


def strict_interval(differences: Differences, level: float = 0.95) -> tuple[float, float]:
    """Return the interval for gates, which errs at most (1 - level) / 2 of the time on each side.

    Beyond Student's, Hall's and the rare changes of `interval` it has half a usual change more, because the mean of a
    few changes moves in steps; up to twice the skewness, of which a sample shows too little; and, on a scale with
    ends, changes as large as the scale in a share of items so small that none of them need be seen."""
    n = differences.n
    mean = differences.mean
    limit = differences.limit
    t = t_quantile((1 + level) / 2, differences.freedom)
    alike = differences.alike
    unseen = 1 - ((1 - level) / 2) ** (1 / n)
    step = alike * differences.usual / (2 * n)
    skewed = zip(_reaches(differences, t), _reaches(differences, t, 2 - alike), strict=True)
    ends: list[float] = []
    for side, reaches in zip((1, -1), skewed, strict=True):
        off = max(t * differences.error, *reaches) + step
        if limit < math.inf:
            room = limit + side * mean
            off = min(max(off, unseen * room), room)
        ends.append(mean - side * off)
    return ends[0], ends[1]


def equivalent(differences: Differences, margin: float) -> float:
    """The p-value of the mean not lying within ±margin, by two one-sided tests (Schuirmann 1987) with the spread and
    the skewness of `interval`. A mean at the margin has at least the variance of as many changes of the usual size:
    items that did not change do not prove that none would."""
    least = margin * differences.usual - margin**2
    deviation = math.sqrt(max(differences.deviation**2, least))
    if not deviation:
        return 0.0 if abs(differences.mean) < margin else 1.0
    n = differences.n
    skew = differences.skew * (differences.deviation / deviation) ** 3
    beyond: list[float] = []
    for sign in (1, -1):
        off = (sign * differences.mean - margin) / deviation
        bent = max(off, _bent(off, sign * skew, n))
        beyond.append(t_tail(-bent * math.sqrt(n), differences.freedom))
    return max(beyond)


def significance(differences: Differences) -> float:
    """Return the p-value of no difference: 1 - the highest level at which `interval` excludes zero."""
    return min(1.0, 2 * t_tail(_reach(differences), differences.freedom))


def _reach(differences: Differences) -> float:
    """Return the t at which the first of the three ends of `interval` arrives at zero."""
    n = differences.n
    mean = abs(differences.mean)
    usual = differences.usual
    skew = differences.skew * math.copysign(1, differences.mean)
    bent = _bent(mean / differences.deviation, skew, n)
    # from there on `_rare` has a solution, which is never on this side of zero
    rare = 2 * math.sqrt(n * mean * (usual + mean)) / usual
    student = mean / differences.error
    student += differences.lightness * (student**3 - 3 * student)
    return min(student, bent * math.sqrt(n), rare)


def _shorten(t: float, lightness: float) -> float:
    """Return what Student's statistic must reach, as x + lightness (x³ - 3x) is t (Cornish and Fisher
    1938): if chance decides which way each of k equal changes goes, its kurtosis is -2 / k."""
    unit = math.sqrt(1 / (3 * lightness) - 1)
    return 2 * unit * math.sinh(math.asinh(t / (2 * lightness * unit**3)) / 3)
