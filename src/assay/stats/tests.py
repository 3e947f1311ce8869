"""Hypothesis tests as pure functions: p-values of small, exact pieces, and Holm's correction for asking often."""

from collections.abc import Sequence

from assay.stats.student import _incomplete_beta, _upper_tail


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


def t_test(mean: float, error: float, freedom: float) -> float:
    """The two-sided p-value of `mean` with this standard error being zero."""
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return min(1.0, 2 * _upper_tail(abs(mean) / error, freedom))


def equivalence(mean: float, error: float, freedom: float, margin: float) -> float:
    """Two one-sided tests (Schuirmann 1987): the p-value of the mean not lying within ±margin."""
    if error == 0:
        return 0.0 if abs(mean) < margin else 1.0
    t = (margin - abs(mean)) / error  # the side that the mean is nearer to has the larger p-value
    tail = _upper_tail(abs(t), freedom)
    return tail if t > 0 else 1 - tail
