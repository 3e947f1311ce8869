"""How far a sum with random signs goes, without drawing signs: the saddlepoint approximation of its tail (Daniels 1987;
Barndorff-Nielsen 1986). Its relative error is small even far out, where resampling sees nothing, and it costs no more
than some sums over the distinct sizes.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray

Counts = npt.NDArray[np.int64]
_EXACT = 15  # parts: up to this many, all sign patterns are listed
_FINEST = 1000  # steps of a lattice in the largest size; a finer one is as good as none


class _Tilted(NamedTuple):
    """The cumulant generating function at θ with its first two derivatives."""

    value: float
    slope: float
    curve: float


def flipped_tail(sizes: FloatArray, counts: Counts, observed: float) -> float:
    """P(|Σ ± sizes| >= observed), where each of `counts` parts of each size above 0 has either sign by chance."""
    parts, most = int(counts.sum()), float(sizes @ counts)
    if observed >= most * (1 - 1e-9):
        return 2.0 ** (1 - parts)
    if parts <= _EXACT:
        sums = np.zeros(1)
        for size in np.repeat(sizes, counts):
            sums = np.concatenate([sums + size, sums - size])
        return float(np.mean(np.abs(sums) >= observed * (1 - 1e-9)))
    unit = _unit(sizes)
    sought = observed - unit  # sums lie two units apart: the correction for continuity
    if sought <= 0:
        return 1.0
    theta = 0.0
    for _ in range(200):  # the slope is concave, so Newton's steps from below never go too far
        at = _signs(sizes, counts, theta)
        step = (sought - at.slope) / at.curve
        theta += step
        if step <= 1e-12 * theta:
            break
    at = _signs(sizes, counts, theta)
    wide = math.sinh(theta * unit) / unit if 0 < theta * unit < 300 else theta
    tail = math.erfc(_modified_root(theta * sought - at.value, wide * math.sqrt(at.curve)) / math.sqrt(2))
    return min(1.0, max(tail, 2.0 ** (1 - parts)))


def _signs(sizes: FloatArray, counts: Counts, theta: float) -> _Tilted:
    bent = np.tanh(theta * sizes)
    cosh = np.logaddexp(theta * sizes, -theta * sizes) - math.log(2)
    return _Tilted(float(cosh @ counts), float(sizes * bent @ counts), float(sizes**2 * (1 - bent**2) @ counts))


def _unit(sizes: FloatArray) -> float:
    """The largest number that all sizes are multiples of; 0 where it would be too small to matter."""
    largest = float(sizes.max())
    unit = largest
    for size in sizes.tolist():
        while size > 1e-9 * largest:
            unit, size = size, math.fmod(unit, size)
            if size > unit - 1e-9 * largest:
                size = 0.0
        if unit < largest / _FINEST:
            return 0.0
    return unit


def _modified_root(distance: float, width: float) -> float:
    """r* = r + log(u / r) / r, where r² is twice the `distance` and u the `width`."""
    root = math.sqrt(max(2 * distance, 0.0))
    if root < 1e-4 or width <= 0:
        return root
    return root + math.log(width / root) / root
