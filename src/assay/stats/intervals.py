"""Confidence intervals of a mean over items.

The unit is the item, never the sample: samples of one item are correlated, and counting them as independent makes
every interval too narrow.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from assay.interfaces import FloatArray, IntArray, Integers, Mask, Scale
from assay.records import JsonObject
from assay.stats.student import beta_quantile, binomial_quantile, f_tail, t_quantile

_RESAMPLES = 10_000
_MOST_DISTINCT = 200  # with more there are items enough for Hall's interval
_FEW = 30  # items: below, intervals of skewed values are too narrow
_FEW_VERDICTS = 5
_FEW_CLUSTERS = 10
_FEW_EVENTS = 3.5  # passes or failures: below, the end next to them needs help
_NEAR = (0.9, 0.95)  # where scores begin to be near their good end, and where they are
_ALIKE = "; weak: all items have the same value"
_UNSCALED = "and no `scale` says how far others may lie"


class Interval(NamedTuple):
    """`method` names how it was made. An end that is None is open; where no interval can be made, both are, and the
    method says why."""

    low: float | None
    high: float | None
    method: str

    def transformed(self, change: Callable[[float], float]) -> "Interval":
        """Return the interval of a monotone function of the value."""
        low, high = (None if end is None else change(end) for end in self[:2])
        if low is not None and high is not None:
            low, high = min(low, high), max(low, high)
        return Interval(low, high, self.method)


def no_interval(reason: str) -> Interval:
    return Interval(None, None, f"none: {reason}")


def wilson(passes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion; right at 0 % and 100 %, where the usual one has no width.

    With one failure of 70 its upper end is too low: a rate of 99.8 % is then held 87 % of the time. So with up to three
    passes or failures the end next to them reaches as far as the exact interval of twice the error (Brown, Cai and
    DasGupta 2001): at 95 %, every rate is held at least 90.9 % of the time from 8 items on.
    """
    return _score_interval(passes / n, n, NormalDist().inv_cdf((1 + level) / 2), level)


def clopper_pearson(passes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a proportion (1934): on neither side is it wrong more often than it says."""
    tail = (1 - level) / 2
    low = beta_quantile(tail, passes, n - passes + 1) if passes > 0 else 0.0
    return low, beta_quantile(1 - tail, passes + 1, n - passes) if passes < n else 1.0


def wilson_of_items(
    values: FloatArray,
    level: float = 0.95,
    weights: FloatArray | None = None,
    *,
    strict: bool = False,
) -> tuple[float, float]:
    """Wilson's interval of the mean of per-item values in [0, 1], with the effective number of observations.

    That number is the number of items over the design effect s² / p(1-p); t replaces the normal quantile because s is
    estimated (Kott and Liu 2009; Dean and Pagano 2015). Scores that vary little make it larger than the number of
    items. With `weights` (see `item_weights`) both are of as many items of equal weight as would tell as much. The
    `strict` one is the exact interval of that many observations (Korn and Graubard 1998).
    """
    p = min(max(float(values.mean()), 0.0), 1.0)
    items, effect = _design(values, p, weights)
    t = t_quantile((1 + level) / 2, max(items - 1, 1))
    if strict:  # where all values are at one end, no spread is estimated
        n = items / effect
        n *= (NormalDist().inv_cdf((1 + level) / 2) / t) ** 2 if 0 < p < 1 else 1
        return clopper_pearson(p * n, n, level)
    return _score_interval(p, items / effect, t, level)


def effective_samples(values: FloatArray, samples: int) -> float:
    """Return how many independent verdicts would tell as much about the mean of per-item pass
    rates, at most the samples."""
    items, effect = _design(values, min(max(float(values.mean()), 0.0), 1.0), None)
    return min(items / effect, float(samples))


def _design(values: FloatArray, p: float, weights: FloatArray | None) -> tuple[float, float]:
    """The number of items of equal weight, and the design effect.

    Where most items have one and the same value, only the few that differ tell how much items vary. So the effect is
    drawn towards 1, that of plain verdicts, with the weight of 1.5 such items times the share of the commonest value.
    Without that, intervals of 30 items at 5 % with a correlation of 0.6 hold the truth 87 % of the time; the weight
    was chosen by such simulations. Values that are all different are left as they are.
    """
    n = len(values)
    alike = 1.0
    own = values
    shares = np.full(n, 1 / n)
    if weights is not None:
        alike = float((weights**2).mean())
        own = p + (values - p) / weights
        shares = weights / n
    if n < 2 or not 0 < p < 1:
        return n / alike, 1.0
    commonest = float(np.bincount(codes_of(np.round(own, 9)), shares).max())
    telling = n / alike * (1 - commonest)
    drawn = 1.5 * commonest
    variance = float(values.var(ddof=1)) / alike
    return n / alike, (telling * variance / (p * (1 - p)) + drawn) / (telling + drawn)


def _score_interval(p: float, n: float, z: float, level: float) -> tuple[float, float]:
    shrink = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z / shrink * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    low = 0.0 if p == 0 else centre - half
    high = 1.0 if p == 1 else centre + half
    if 0 < n * min(p, 1 - p) < _FEW_EVENTS and level > 0.5:
        exact = clopper_pearson(p * n, n, 2 * level - 1)
        low, high = (min(low, exact[0]), high) if p < 0.5 else (low, max(high, exact[1]))
    return max(low, 0.0), min(high, 1.0)


def skewed_interval(
    values: FloatArray, level: float = 0.95, *, strict: bool = False
) -> tuple[float, float]:
    """Return Student's interval of the mean, each end moved out as far as skewed values ask for (Hall 1992).

    A sample shows less skewness than there is, because the rare large values are missing from it. So `strict` assumes
    up to twice as much: then lognormal means lie above the interval at most 2.5 % of the time from 30 values on. The
    more values are one and the same, the less it adds: samples of verdicts show how skewed they are.
    """
    n = len(values)
    mean = float(values.mean())
    deviation = float(values.std(ddof=1))
    skew = 0.0
    if deviation > 1e-12 * abs(mean):
        skew = float((((values - mean) / deviation) ** 3).mean())
    if strict:
        skew *= 2 - int(np.unique(np.round(values, 9), return_counts=True)[1].max()) / n
    reach = t_quantile((1 + level) / 2, n - 1) / n**0.5
    low, high = (
        mean - deviation * end(straightened(side, skew, n), side)
        for side, end in ((reach, max), (-reach, min))
    )
    return low, high


def straightened(bent: float, skew: float, n: int) -> float:
    """Return (mean - true mean) / s of Hall's transformation of it, which has no skewness."""
    if abs(skew) < 1e-6:
        return bent
    return 3 / skew * (math.cbrt(1 + skew * (bent - skew / (6 * n))) - 1)


def bootstrap_mean(values: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """The percentile bootstrap of the mean over items.

    A resample of items is a multinomial draw over the distinct values, so its cost does not depend on the number of
    items.
    """
    distinct, counts = np.unique(values, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(len(values), counts / len(values), _RESAMPLES)
    means = drawn @ distinct / len(values)
    low, high = np.quantile(means, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def mean_interval(
    values: FloatArray,
    *,
    samples: int,
    scale: Scale | None = None,
    level: float = 0.95,
    weights: FloatArray | None = None,
    clusters: Integers | None = None,
    lower_is_better: bool = False,
    way: Literal["auto", "bootstrap", "strict"] = "auto",
) -> Interval:
    """Return the interval of the mean of per-item values that came from `samples` samples, by the first rule that fits.

    `scale` has the ends between which the mean must lie; without one it is 0 to 1 if all values are. `weights` are
    those of `item_weights`; `clusters` has the cluster of each item. The order of the values does not matter, not even
    to the last bit. A `strict` interval errs at most (1 - level) / 2 of the time on each side, as gates promise. Where
    the interval is known to be wrong more often than it says, the method ends in `; weak:` and why.
    """
    units = _Units.of(values, samples, weights, clusters)
    values = units.values
    strict = way == "strict"
    if len(values) < 2:
        named = "items" if clusters is None else "clusters"
        return no_interval(f"an interval needs at least two {named}")
    low, high = scale or ((0.0, 1.0) if values[0] >= 0 and values[-1] <= 1 else (None, None))
    if units.is_alike and low is not None and high is None:  # as if no value could be far worse
        units = units._replace(few=_ALIKE)
        high = low + 1
    if way == "bootstrap" and units.can_be_drawn():
        return Interval(*bootstrap_mean(values, level), f"bootstrap{units.few}")
    if low is None or high is None or not low <= float(values.mean()) <= high:
        return units.open_interval(low, level, strict=strict)
    bad, good = (high, low) if lower_is_better else (low, high)
    return units.interval_between(bad, good, level, strict=strict)


class _Units(NamedTuple):
    """Items or clusters in the order of their values. `plain`: each is one verdict, if all are 0 or 1; `few` is what
    is weak about their number."""

    values: FloatArray
    weights: FloatArray | None
    plain: bool
    few: str

    @classmethod
    def of(
        cls,
        values: FloatArray,
        samples: int,
        weights: FloatArray | None,
        clusters: Integers | None,
    ) -> "_Units":
        items = len(values)
        if clusters is not None:
            weights = item_weights(clusters, weights)
            values = item_contributions(clusters, values)
        n = len(values)
        few = few_units(items, n)
        if weights is None:
            return cls(np.sort(values), None, samples == n, few)
        order = np.lexsort((weights, values))
        return cls(values[order], weights[order], False, few)

    @property
    def is_alike(self) -> bool:
        return bool(self.values[0] == self.values[-1])

    def can_be_drawn(self) -> bool:
        """Return whether resamples of the values would tell more than a formula: not of plain verdicts."""
        verdicts = self.plain and _binary(self.values)
        return not verdicts and 1 < len(np.unique(self.values)) <= _MOST_DISTINCT

    def open_interval(self, least: float | None, level: float, *, strict: bool) -> Interval:
        """Return the interval of the mean of values that may lie anywhere from `least` on."""
        if self.is_alike:
            return no_interval(f"all items have the same value, {_UNSCALED}")
        low, high = skewed_interval(self.values, level, strict=strict)
        return Interval(low if least is None else max(low, least), high, f"hall{self.few}")

    def interval_between(self, bad: float, good: float, level: float, *, strict: bool) -> Interval:
        """Return the interval of the mean of values on a scale with two ends."""
        shares = self
        if (bad, good) != (0.0, 1.0):
            shares = self._replace(values=(self.values - bad) / (good - bad))
        found = shares.share_interval(level, strict=strict)
        if {bad, good} != {0.0, 1.0}:
            found = found._replace(method=f"scaled_{found.method}")
        return found.transformed(lambda end: bad + (good - bad) * end)

    def share_interval(self, level: float, *, strict: bool) -> Interval:
        """Return the interval of the mean of values from 0, the bad end, to 1, the good one."""
        values = self.values
        n = len(self.values)
        if self.plain and _binary(values):
            passes = float(values.sum())
            if strict:
                return Interval(*clopper_pearson(passes, n, level), "clopper_pearson")
            weak = f"; weak: fewer than {_FEW_VERDICTS} items" if n < _FEW_VERDICTS else ""
            return Interval(*wilson(passes, n, level), f"wilson{weak}")
        few = _ALIKE if self.is_alike and 0 < values[0] < 1 else self.few
        if strict:
            return Interval(*self._strict(level), f"korn_graubard{few}")
        low, high = wilson_of_items(values, level, self.weights)
        return Interval(min(low, self._with_unseen(level)), high, f"wilson_of_items{few}")

    def _strict(self, level: float) -> tuple[float, float]:
        """Return the outermost of three intervals: the exact one of the effective number of observations, Hall's of
        skewed values, and one with a share of values at the end of the scale that is so small that none need be seen,
        as `clopper_pearson` has it where all verdicts are alike."""
        values = self.values
        mean = float(self.values.mean())
        unseen = 1 - ((1 - level) / 2) ** (1 / len(values))
        low, high = wilson_of_items(values, level, self.weights, strict=True)
        bent = skewed_interval(values, level, strict=True)
        low = max(0.0, min(low, bent[0], mean - unseen * mean))
        return low, min(1.0, max(high, bent[1], mean + unseen * (1 - mean)))

    def _with_unseen(self, level: float) -> float:
        """Return how low the mean may be with one more item that fails wholly, where it is near the good end.

        Scores of 0.99 that hardly vary say nothing about the answer in a hundred that is 0. The term has its full
        weight from 0.95 on and none below 0.9: there, scores that vary little are the rule.
        """
        n = len(self.values)
        mean = float(self.values.mean())
        near = min((mean - _NEAR[0]) / (_NEAR[1] - _NEAR[0]), 1.0)
        if near <= 0:
            return mean
        error = math.hypot(float(self.values.std(ddof=1)) / n**0.5, near * mean / n)
        return max(mean - t_quantile((1 + level) / 2, n - 1) * error, 0.0)


def few_units(items: int, units: int) -> str:
    """Return what is weak about an interval of so many items in so many units, which are items or clusters."""
    if units < min(items, _FEW_CLUSTERS):
        return f"; weak: fewer than {_FEW_CLUSTERS} clusters"
    return f"; weak: fewer than {_FEW} items" if items < _FEW else ""


def _binary(values: FloatArray) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def codes_of(values: Any) -> IntArray:
    """Return the number of each value among the distinct ones, in their order. Values that are sorted already, as the
    items of a group are, take a quarter of the memory."""
    if isinstance(values, np.ndarray) and len(values) and bool((values[1:] >= values[:-1]).all()):
        begins = np.append(False, values[1:] != values[:-1])
        return np.cumsum(begins)
    return np.unique(values, return_inverse=True)[1]


def item_contributions(item: Integers, values: FloatArray | Mask) -> FloatArray:
    """Per-item values whose mean is the plain mean of all `values`, also when items have unequal numbers of them.

    With equal numbers these are the items' means; otherwise the linearised ratio, x̄ + (nᵢ/n̄)(x̄ᵢ - x̄), whose
    variance over items is the cluster-robust one.
    """
    if _one_each(item):  # the usual case, without a copy
        return np.asarray(values, np.float64)
    inverse = codes_of(item)
    counts = np.bincount(inverse)
    means = np.bincount(inverse, weights=values) / counts
    if counts.min() == counts.max():
        return means
    overall = values.mean()
    return overall + counts / counts.mean() * (means - overall)


def item_weights(item: Integers, weights: FloatArray | None = None) -> FloatArray | None:
    """Return how much each item weighs in `item_contributions`, 1 on average; None where all weigh the same. With
    `weights` those of rows that weigh differently, as items do in clusters."""
    if _one_each(item):
        return weights
    counts = np.bincount(codes_of(item), weights=weights)
    return None if counts.min() == counts.max() else counts / counts.mean()


def cluster_fields(name: str, per_item: FloatArray | None, clusters: Integers) -> JsonObject:
    """Return what a row says about its clusters: their number, how much items of one are alike (the intraclass
    correlation, by analysis of variance), and by how much that multiplies the variance of the mean."""
    fields: JsonObject = {"cluster_by": name, "cluster_count": len(np.unique(clusters))}
    if per_item is None or not 1 < fields["cluster_count"] < len(per_item):
        return fields
    effect = float(item_contributions(clusters, per_item).var(ddof=1)) / fields["cluster_count"]
    plain = float(per_item.var(ddof=1)) / len(per_item)
    icc = intraclass(clusters, per_item).correlation
    return fields | {"icc": icc, "design_effect": effect / plain if plain else None}


class Intraclass(NamedTuple):
    """The correlation of two items of a cluster, None where nothing varies; and how likely one as
    large would be if clusters were made at random."""

    correlation: float | None
    p: float


def intraclass(clusters: Integers, values: FloatArray) -> Intraclass:
    """Return how much the values of a cluster are alike (Donner 1986)."""
    inverse = codes_of(clusters)
    n = len(values)
    counts = np.bincount(inverse)
    off = values - values.mean()
    means = np.bincount(inverse, weights=off) / counts
    between = float(counts @ means**2) / (len(counts) - 1)
    within = float(((off - means[inverse]) ** 2).sum()) / max(n - len(counts), 1)
    usual = (n - float(counts @ counts) / n) / (len(counts) - 1)
    total = between + (usual - 1) * within
    if not total:
        return Intraclass(None, 1.0)
    ratio = between / within if within else math.inf
    p = f_tail(ratio, len(counts) - 1, max(n - len(counts), 1))
    few = float((off**2).sum()) ** 2 < _FEW * float((off**4).sum())  # items make the spread
    return Intraclass((between - within) / total, 1.0 if few else p)


def _one_each(item: Integers) -> bool:
    return bool(len(item)) and bool((item[1:] > item[:-1]).all())


def quantile_interval(
    unit: Integers, values: FloatArray, share: float, level: float = 0.95
) -> Interval:
    """Return the interval of the value that this share of the rows does not exceed: two of the values themselves, whose
    ranks are those that a binomial number of rows below the true one leaves open. No shape of the distribution is
    assumed; where there is no such value, the end is open. Rows of one unit count as fewer (Woodruff 1952).
    """
    rows = len(values)
    if len(np.unique(unit)) < 2:
        return no_interval("an interval needs at least two items")
    if not 0 < share < 1:
        return no_interval("the rows say nothing about what lies beyond them")
    n = _effective_rows(unit, values, share, level)
    tail = (1 - level) / 2
    below = binomial_quantile(tail, n, share)
    above = binomial_quantile(1 - tail, n, share) + 1
    ordered = np.sort(values)
    value = np.quantile(values, share)
    return Interval(
        float(min(ordered[below * rows // n - 1], value)) if below else None,
        float(max(ordered[-(-above * rows // n) - 1], value)) if above <= n else None,
        "order_statistics",
    )


def _effective_rows(unit: Integers, values: FloatArray, share: float, level: float) -> int:
    """Return how many rows of units of their own would tell as much about this quantile."""
    rows = len(values)
    if _one_each(unit):
        return rows
    below = item_contributions(unit, (values <= np.quantile(values, share)).astype(np.float64))
    units, effect = _design(below, share, item_weights(unit))
    spare = NormalDist().inv_cdf((1 + level) / 2) / t_quantile((1 + level) / 2, units - 1)
    return min(rows, max(1, int(units / effect * spare**2)))
