"""Student's t distribution without scipy, which costs more to import than a whole aggregation; Holm's correction for
asking often; and what a number of items can show."""

import math
from bisect import bisect_left
from collections.abc import Sequence
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
    low = 0.0
    high = max(2 * normal, 1.0)
    while _upper_tail(high, freedom) > 1 - probability:
        low = high
        high = 2 * high
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
    c = 1.0
    d = 1 / (1 - (a + b) * x / (a + 1) or tiny)
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


def f_tail(ratio: float, above: float, below: float) -> float:
    """Return the probability that Fisher's F with these degrees of freedom is at least so large."""
    return _incomplete_beta(below / 2, above / 2, below / (below + above * ratio))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the x with P(X <= x) = probability for the beta distribution."""
    low = 0.0
    high = 1.0
    while high - low > 1e-14:
        middle = (low + high) / 2
        if _incomplete_beta(a, b, middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def binomial_quantile(probability: float, n: int, share: float) -> int:
    """Return the fewest k with P(K <= k) >= probability, of n trials."""
    return bisect_left(
        range(n), probability, key=lambda k: _incomplete_beta(n - k, k + 1, 1 - share)
    )


# ---- tests


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number (Holm 1979): the chance of any false alarm among them stays below alpha."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def alpha_left(adjusted: Sequence[float], alpha: float) -> float:
    """Return what Holm's method compares plain p-values with in the end: it rejects those below."""
    return alpha / max(sum(p >= alpha for p in adjusted), 1)


def t_tail(t: float, freedom: float) -> float:
    """P(T >= t)."""
    tail = _upper_tail(abs(t), freedom)
    return tail if t > 0 else 1 - tail


# ---- power: what a number of items can show

# Student's quantiles stand in for the noncentral t distribution; from 20 items on they agree within two percent.


def smallest_difference(deviation: float, n: int, alpha: float = 0.05) -> float:
    """The true mean difference that a two-sided paired test of n items finds 4 times in 5."""
    freedom = max(n - 1, 1)
    reach = t_quantile(1 - alpha / 2, freedom) + t_quantile(POWER, freedom)
    return reach * deviation / math.sqrt(n)


def items_for_difference(deviation: float, difference: float, alpha: float = 0.05) -> int | None:
    """Return how many items find a true `difference`; None if none would."""

    def finds(n: int) -> bool:
        return smallest_difference(deviation, n, alpha) <= abs(difference)

    n = bisect_left(range(_MOST_ITEMS), True, lo=2, key=finds)
    return n if n < _MOST_ITEMS else None
