"""The interval of a quantile of all rows, where rows belong to items."""

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray
from assay.stats.intervals import Interval, interval_of_share, item_contributions, item_weights


def quantile_interval(item: npt.NDArray[np.integer], values: FloatArray, share: float, level: float = 0.95) -> Interval:
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
