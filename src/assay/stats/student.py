"""Student's t distribution without scipy, which costs more to import than a whole aggregation; and hypothesis tests as
pure functions: p-values of small, exact pieces, and Holm's correction for asking often."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

POWER = 0.8
_MOST_ITEMS = 10**9


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """The t with P(T <= t) = probability, for probability in (0, 1)."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    if probability == 0.5:
        return 0.0
    normal = NormalDist().inv_cdf(probability)
    if freedom > 1e7:  # the next term of the expansion is below the precision of a float
        return normal + (normal**3 + normal) / (4 * freedom)
    low, high = 0.0, max(2 * normal, 1.0)
    while _upper_tail(high, freedom) > 1 - probability:
        low, high = high, 2 * high
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _upper_tail(middle, freedom) > 1 - probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _upper_tail(t: float, freedom: float) -> float:
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised I_x(a, b)."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    logs = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return math.exp(logs) * _fraction(a, b, x) / a
    return 1 - math.exp(logs) * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    result = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


# ---- tests


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p-value of McNemar's test: only items that changed tell, and each way is as likely."""
    changed, fewer = gained + lost, min(gained, lost)
    if 2 * fewer >= changed - 1:
        return 1.0
    return min(1.0, 2 * _incomplete_beta(changed - fewer, fewer + 1, 0.5))


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number (Holm 1979): the chance of any false alarm among them stays below alpha."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def t_tail(t: float, freedom: float) -> float:
    """P(T >= t)."""
    tail = _upper_tail(abs(t), freedom)
    return tail if t > 0 else 1 - tail


# ---- power: what a number of items can show

# Student's quantiles stand in for the noncentral t distribution; from 20 items on they agree within two percent.


def smallest_difference(
    deviation: float, n: int, alpha: float = 0.05, power: float = POWER
) -> float:
    """The true mean difference that a two-sided paired test of n items finds with this power."""
    freedom = max(n - 1, 1)
    return (
        (t_quantile(1 - alpha / 2, freedom) + t_quantile(power, freedom)) * deviation / math.sqrt(n)
    )


def items_for_difference(
    deviation: float, difference: float, alpha: float = 0.05, power: float = POWER
) -> int | None:
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
    # at zero both of the one-sided tests must succeed
    needed = (1 + power) / 2 if difference == 0 else power

    def enough(n: int) -> bool:
        freedom = max(n - 1, 1)
        return (
            t_quantile(1 - alpha, freedom) + t_quantile(needed, freedom)
        ) * deviation / math.sqrt(n) <= room

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
