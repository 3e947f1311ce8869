"""What a number of items can show: the smallest difference, and the items that a difference would take.

Student's quantiles stand in for the noncentral t distribution; from 20 items on they agree within two percent.
"""

import math
from collections.abc import Callable

from assay.stats.student import t_quantile

POWER = 0.8
_MOST_ITEMS = 10**9


def smallest_difference(deviation: float, n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """The true mean difference that a two-sided paired test of n items finds with this power."""
    freedom = max(n - 1, 1)
    return (t_quantile(1 - alpha / 2, freedom) + t_quantile(power, freedom)) * deviation / math.sqrt(n)


def items_for_difference(deviation: float, difference: float, alpha: float = 0.05, power: float = POWER) -> int | None:
    """How many items find a true `difference`; None if none would."""
    if difference == 0:
        return None
    return _fewest(lambda n: smallest_difference(deviation, n, alpha, power) <= abs(difference))


def items_for_equivalence(
    deviation: float, difference: float, margin: float, alpha: float = 0.05, power: float = POWER
) -> int | None:
    """How many items show that a true `difference` lies within ±margin; None if none would."""
    room = margin - abs(difference)
    if room <= 0:
        return None
    needed = (1 + power) / 2 if difference == 0 else power  # at zero both of the one-sided tests must succeed

    def enough(n: int) -> bool:
        freedom = max(n - 1, 1)
        return (t_quantile(1 - alpha, freedom) + t_quantile(needed, freedom)) * deviation / math.sqrt(n) <= room

    return _fewest(enough)


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The smallest n of at least 2 that is enough, where every larger one is, too."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST_ITEMS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
