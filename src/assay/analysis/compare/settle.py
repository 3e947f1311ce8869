"""What would settle an inconclusive gate: more items, or more samples of those that there are."""

import math
from collections.abc import Sequence

import numpy as np

from assay.analysis.compare.measured import Measured
from assay.stats.student import POWER, items_for_difference, t_quantile


def settling(sides: Sequence[Measured], n: int, deviation: float, room: float, level: float) -> str:
    """A sentence about a value of `n` items that lies `room` from its bound; `deviation` is that of its items. What it
    names finds out 4 times in 5, if the value is the true one."""
    needed = items_for_difference(deviation, room, 1 - level)
    if needed is None:
        return "; the value is at the bound, and no number of items would settle it"
    ways = [f"about {max(needed - n, 1):,} more items"]
    more = _more_samples(sides, n, deviation, room, level)
    if more:
        ways.append(f"{more:,} more samples of each item")
    return f"; {' or '.join(ways)} would settle it"


def _more_samples(sides: Sequence[Measured], n: int, deviation: float, room: float, level: float) -> int | None:
    """None where samples are one each, or where items differ so much that samples do not help."""
    within = sum(side.within for side in sides)
    each = min(side.row["total_sample_count"] / max(side.row["total_item_count"], 1) for side in sides)
    freedom = max(n - 1, 1)
    reach = t_quantile((1 + level) / 2, freedom) + t_quantile(POWER, freedom)
    spare = room**2 * n / reach**2 - (deviation**2 - within)
    if not within or not np.isfinite(within) or spare <= 0:
        return None
    return max(math.ceil(each * within / spare - each), 1)
