"""Confidence intervals of statistics that are not means over items: averages of classes,
coefficients of agreement, scores of a corpus.

Nothing is drawn at random. The statistic is computed anew without each item (the jackknife), which
tells how much items move it, and the interval is the set of values that the statistic does not
contradict, if its variance grows and shrinks towards the ends of its scale as that of a rate does:
Wilson's interval, of any statistic.
"""

from collections.abc import Callable

import numpy as np

from assay.interfaces import FloatArray, IntArray, Integers, Resampled, Scale
from assay.stats.intervals import Interval, codes_of, few_units, no_interval
from assay.stats.student import t_quantile

Ints = IntArray
_MOST_UNITS = 1000  # more are left out in groups


def statistic_interval(
    resampled: Resampled, level: float = 0.95, clusters: Integers | None = None
) -> Interval:
    """Return the interval of a statistic; `clusters` has the cluster of each item, in the order of
    the items.

    How much items vary is told by the items and `resampled.unseen`, so that a class that was always
    right, or never, does not pass for one that always will be. The value itself is that of the
    items alone.
    """
    items = int(resampled.counts.sum())
    units = items if clusters is None else len(np.unique(clusters))
    if units < 2:
        return no_interval("an interval needs at least two items")
    variance, freedom = _relative_variance(resampled, units, clusters)
    if not variance:
        return no_interval("no item changes the value")
    value = float(resampled.statistic(resampled.counts[None, :])[0])
    t = t_quantile((1 + level) / 2, freedom)
    ends = scaled_ends(value, t * t * variance, resampled.scale)
    return Interval(*ends, f"jackknife{few_units(items, units)}")


def scaled_ends(value: float, squared: float, scale: Scale) -> tuple[float, float]:
    """Return the ends of the values whose squared distance from this one is at most `squared` times
    what `_room` is there."""
    roots = np.roots(np.array([1.0, -2 * value, value**2]) - squared * _room(scale)).real
    least, most = (np.nan if end is None else end for end in scale)
    low = np.fmax(min(value, *roots), least)
    high = np.fmin(max(value, *roots), most)
    return float(low), float(high)


def _relative_variance(
    resampled: Resampled, units: int, clusters: Integers | None
) -> tuple[float, float]:
    """Return the variance as a multiple of what `_room` is, and its degrees of freedom: those of a
    variance that a few units may make (Satterthwaite, from the kurtosis of what they
    contribute)."""
    centre, changes, times = influences(resampled, clusters)
    total = float(times.sum())
    spread = float(times @ changes**2)
    room = room_at(centre, resampled.scale)
    if not (spread > 0 and room > 0):  # as if each item were right or wrong
        return 0.0 if resampled.scale[0] is None else 1 / units, units - 1
    kurtosis = total * float(times @ changes**4) / spread**2
    freedom = min(units - 1, 2 * total / max(kurtosis - 1, 1e-9))
    return spread * total / (total - len(resampled.unseen)) / room, max(freedom, 2.0)


def influences(
    resampled: Resampled, clusters: Integers | None = None
) -> tuple[float, FloatArray, FloatArray]:
    """Return the value with what was not seen, by how much each unit changes it, and how many there
    are of each.

    A unit is an item of each kind; with clusters, or very many kinds, a cluster or group of items.
    """
    unit, kind, times = _units(resampled, clusters)
    whole = np.bincount(kind, times[unit], len(resampled.counts)) * 1.0
    centre = float(resampled.statistic(whole[None, :])[0])
    changes = np.empty(len(times))
    for at in range(len(times)):
        less = whole - np.bincount(kind[unit == at], minlength=len(whole))
        changes[at] = centre - float(resampled.statistic(less[None, :])[0])
    changes = np.where(np.isfinite(changes), changes, 0.0)
    return centre, changes - times @ changes / times.sum(), times


def _units(resampled: Resampled, clusters: Integers | None) -> tuple[Ints, Ints, FloatArray]:
    """Return the unit and the kind of each of their items, and how many there are of each unit."""
    counts = resampled.counts
    unseen = np.asarray(resampled.unseen, np.int64)
    if clusters is None and len(counts) <= _MOST_UNITS:
        times = counts + np.bincount(unseen, minlength=len(counts)) * 1.0
        kinds = np.flatnonzero(times)
        return np.arange(len(kinds)), kinds, times[kinds]
    kind = resampled.kind
    if kind is None:
        kind = np.repeat(np.arange(len(counts)), counts)
    code = np.arange(len(kind)) if clusters is None else clusters
    unit = codes_of(code)
    number = min(int(unit.max()) + 1, _MOST_UNITS)
    more = number + np.arange(len(unseen))
    return (
        np.append(unit % number, more),
        np.append(kind, unseen),
        np.ones(number + len(unseen)),
    )


def room_at(value: float, scale: Scale) -> float:
    """Return what the variance of a statistic with this value is taken to be proportional to."""
    return float(np.polyval(_room(scale), value))


def _room(scale: Scale) -> FloatArray:
    """Return the polynomial that the variance of a statistic on this scale is taken to be
    proportional to: the distance to its lower end, times that to its upper end."""
    low, high = scale
    if low is None:
        return np.array([0.0, 0.0, 1.0])
    return np.array([0.0, 1.0, -low] if high is None else [-1.0, low + high, -low * high])


def of_cells(
    item: Integers,
    cell: Ints,
    unseen: int,
    statistic: Callable[[FloatArray], FloatArray],
    scale: Scale,
) -> Resampled:
    """Return how a statistic of the number of rows in each cell changes with the items of the rows.
    The last `unseen` cells belong to no row: an item each that was not seen."""
    place = codes_of(item)
    items = int(place.max()) + 1
    kind = cell.copy()
    made = statistic
    if items + unseen == len(cell):
        kind[place] = cell[:items]
    else:
        profiles = np.zeros((items + unseen, cell.max() + 1))
        np.add.at(profiles, (np.append(place, items + np.arange(unseen)), cell), 1)
        kinds, kind = np.unique(profiles, axis=0, return_inverse=True)
        kind, made = kind.reshape(-1), lambda weights: statistic(weights @ kinds)
    counts = np.bincount(kind[:items], minlength=kind.max() + 1)
    return Resampled(counts, made, unseen=kind[items:], scale=scale, kind=kind[:items])
