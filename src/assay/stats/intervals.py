"""Confidence intervals of a mean over items.

The unit is the item, never the sample: samples of one item are correlated, and counting them as independent makes
every interval too narrow.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.student import t_quantile

_DRAWS = 1 << 20  # numbers drawn at once: 8 MB
_MOST_DISTINCT = 1000
_FEW = 30  # items: below, t and bootstrap intervals of skewed values are too narrow
_SKEWED = 0.05  # skewness² / items: above, the same


class Interval(NamedTuple):
    """`method` names how it was made; where none can be made, low and high are None and it says why."""

    low: float | None
    high: float | None
    method: str


def wilson(passes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a proportion; right at 0 % and 100 %, where the usual one has no width."""
    return _score_interval(passes / n, n, NormalDist().inv_cdf((1 + level) / 2))


def wilson_of_items(
    values: FloatArray, level: float = 0.95, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Wilson's interval of the mean of per-item values in [0, 1], with the effective number of observations.

    That number is the number of items over the design effect s² / p(1-p); t replaces the normal quantile because s is
    estimated (Kott and Liu 2009; Dean and Pagano 2015). Scores that vary little make it larger than the number of
    items. With `weights` (see `item_weights`) both are of as many items of equal weight as would tell as much.
    """
    p = min(max(float(values.mean()), 0.0), 1.0)
    items, effect = _design(values, p, weights)
    return _score_interval(p, items / effect, t_quantile((1 + level) / 2, max(items - 1, 1)))


def interval_of_share(
    below: FloatArray, share: float, level: float, weights: FloatArray | None
) -> tuple[float, float, float]:
    """Like `wilson_of_items` around a share that is set, with the effective number of observations."""
    items, effect = _design(below, share, weights)
    low, high = _score_interval(
        share, items / effect, t_quantile((1 + level) / 2, max(items - 1, 1))
    )
    return low, high, items / effect


def effective_samples(values: FloatArray, samples: int) -> float:
    """How many independent verdicts would tell as much about the mean of per-item pass rates, at most the samples."""
    items, effect = _design(values, min(max(float(values.mean()), 0.0), 1.0), None)
    return min(items / effect, float(samples))


def _design(values: FloatArray, p: float, weights: FloatArray | None) -> tuple[float, float]:
    """The number of items of equal weight, and the design effect.

    Where most items have one and the same value, only the few that differ tell how much items vary. So the effect is
    drawn towards 1, that of plain verdicts, with the weight of 1.5 such items times the share of the commonest value.
    Without that, intervals of 30 items at 5 % with a correlation of 0.6 hold the truth 87 % of the time; the weight
    was chosen by such simulations. Values that are all different are left as they are.
    """
    n, alike = len(values), 1.0
    own, shares = values, np.full(n, 1 / n)
    if weights is not None:
        alike = float((weights**2).mean())
        own, shares = p + (values - p) / weights, weights / n
    if n < 2 or not 0 < p < 1:
        return n / alike, 1.0
    _, kind = cast(
        "tuple[object, npt.NDArray[np.int64]]", np.unique(np.round(own, 9), return_inverse=True)
    )
    commonest = float(np.bincount(kind, shares).max())
    telling, drawn = n / alike * (1 - commonest), 1.5 * commonest
    variance = float(values.var(ddof=1)) / alike
    return n / alike, (telling * variance / (p * (1 - p)) + drawn) / (telling + drawn)


def _score_interval(p: float, n: float, z: float) -> tuple[float, float]:
    shrink = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / shrink
    half = z / shrink * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)))
    return (0.0 if p == 0 else max(0.0, centre - half), 1.0 if p == 1 else min(1.0, centre + half))


def t_interval(values: FloatArray, level: float = 0.95) -> tuple[float, float]:
    """The cluster-robust t interval of the mean of per-item values, for any scale."""
    n = len(values)
    mean = float(values.mean())
    half = t_quantile((1 + level) / 2, n - 1) * float(values.std(ddof=1)) / n**0.5
    return mean - half, mean + half


def bootstrap_mean(
    values: FloatArray, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """The percentile bootstrap of the mean over items.

    A resample of items is a multinomial draw over the distinct values, so its cost does not depend on the number of
    items. With more than 1,000 distinct values there are items enough for the t interval, which is returned instead.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return float(distinct[0]), float(distinct[0])
    if len(distinct) > _MOST_DISTINCT:
        return t_interval(np.sort(values), level)
    random = np.random.default_rng(seed)
    means = np.empty(resamples)
    piece = max(1, _DRAWS // len(distinct))
    for start in range(0, resamples, piece):
        part = means[start : start + piece]
        part[:] = (
            random.multinomial(len(values), counts / len(values), len(part))
            @ distinct
            / len(values)
        )
    low, high = np.quantile(means, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def bootstrap_statistic(
    counts: npt.NDArray[np.int64],
    statistic: Callable[[npt.NDArray[np.int64]], FloatArray],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """The percentile bootstrap over items of any statistic of how many items there are of each kind.

    Resamples for which the statistic is undefined (not finite) are left out; where most are, there is no interval.
    """
    n = int(counts.sum())
    if n < 2:
        return Interval(None, None, "none: an interval needs at least two items")
    random = np.random.default_rng(seed)
    values = np.empty(resamples)
    piece = max(1, _DRAWS // len(counts))
    for start in range(0, resamples, piece):
        part = values[start : start + piece]
        part[:] = statistic(random.multinomial(n, counts / n, len(part)))
    defined = values[np.isfinite(values)]
    if len(defined) < resamples / 2:
        return Interval(None, None, "none: most resamples have no value")
    low, high = np.quantile(defined, ((1 - level) / 2, (1 + level) / 2))
    return Interval(float(low), float(high), f"bootstrap{_few(n)}")


def mean_interval(
    values: FloatArray,
    *,
    samples: int,
    bounded: bool | None = None,
    level: float = 0.95,
    bootstrap: bool = False,
    weights: FloatArray | None = None,
) -> Interval:
    """The interval of the mean of per-item values that came from `samples` samples, by the first rule that fits.

    `bounded`: the mean cannot leave [0, 1] although a value here may (weighted values of unequal items); False: it can,
    although no value here does (seconds); None: as the values are. `weights` are those of `item_weights`. The order of
    the values does not matter, not even to the last bit. Where the interval is known to be wrong more often than it
    says, the method ends in `; weak:` and why.
    """
    if weights is None:
        values = np.sort(values)
    else:
        order = np.lexsort((weights, values))
        values, weights = values[order], weights[order]
    n = len(values)
    if n < 2:
        return Interval(None, None, "none: an interval needs at least two items")
    low, high = float(values.min()), float(values.max())
    unit = low >= 0 and high <= 1 if bounded is None else bounded
    if unit and samples == n and _binary(values):
        return Interval(*wilson(float(values.sum()), n, level), "wilson")
    if low == high and not unit:
        return Interval(None, None, "none: all items have the same value")
    if bootstrap and low != high and len(np.unique(values)) <= _MOST_DISTINCT:
        return Interval(*bootstrap_mean(values, level), f"bootstrap{weakness(values)}")
    if unit:
        alike = low == high and 0 < low < 1
        weak = "; weak: all items have the same value" if alike else _few(n)
        return Interval(*wilson_of_items(values, level, weights), f"wilson_of_items{weak}")
    return Interval(*t_interval(values, level), f"cluster_t{weakness(values)}")


def _few(items: int) -> str:
    return f"; weak: fewer than {_FEW} items" if items < _FEW else ""


def weakness(values: FloatArray, counts: npt.NDArray[np.int64] | None = None) -> str:
    """What a symmetric interval or test suffers from: few items, or a spread that a few of many items make."""
    counts = np.ones(len(values), np.int64) if counts is None else counts
    n = int(counts.sum())
    off = values - float(values @ counts) / n
    third, second = float(off**3 @ counts), float(off**2 @ counts)
    if not _few(n) and third**2 > _SKEWED * second**3:  # skewness² is n Σd³² / Σd²³
        return "; weak: a few items make most of the spread"
    return _few(n)


def _binary(values: FloatArray) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def item_contributions(item: npt.NDArray[np.integer], values: FloatArray) -> FloatArray:
    """Per-item values whose mean is the plain mean of all `values`, also when items have unequal numbers of them.

    With equal numbers these are the items' means; otherwise the linearised ratio, x̄ + (nᵢ/n̄)(x̄ᵢ - x̄), whose
    variance over items is the cluster-robust one.
    """
    if _one_each(item):  # the usual case, without a copy
        return np.asarray(values, np.float64)
    _, inverse = cast("tuple[object, npt.NDArray[np.int64]]", np.unique(item, return_inverse=True))
    counts = np.bincount(inverse)
    means = np.bincount(inverse, weights=values) / counts
    if counts.min() == counts.max():
        return means
    overall = values.mean()
    return overall + counts / counts.mean() * (means - overall)


def item_weights(item: npt.NDArray[np.integer]) -> FloatArray | None:
    """How much each item weighs in `item_contributions`, 1 on average; None where all weigh the same."""
    if _one_each(item):
        return None
    counts = np.unique(item, return_counts=True)[1]
    return None if counts.min() == counts.max() else counts / counts.mean()


def _one_each(item: npt.NDArray[np.integer]) -> bool:
    return bool(len(item)) and bool((item[1:] > item[:-1]).all())


def quantile_interval(
    item: npt.NDArray[np.integer], values: FloatArray, share: float, level: float = 0.95
) -> Interval:
    """The interval of the value that this share of the rows does not exceed (Woodruff 1952): the share itself is a mean
    over items, and the ends of its interval are looked up among the values. No shape of their distribution is assumed.
    """
    if len(np.unique(item)) < 2:
        return Interval(None, None, "none: an interval needs at least two items")
    if not 0 < share < 1:
        return Interval(None, None, "none: the rows say nothing about what lies beyond them")
    below = item_contributions(item, (values <= np.quantile(values, share)).astype(np.float64))
    low, high, n = interval_of_share(below, share, level, item_weights(item))
    ends = np.quantile(values, low, method="lower"), np.quantile(values, high, method="higher")
    beyond = max(share**n, (1 - share) ** n) > (1 - level) / 2
    weak = "; weak: the values end before the interval does" if beyond else ""
    return Interval(float(ends[0]), float(ends[1]), f"woodruff{weak}")
