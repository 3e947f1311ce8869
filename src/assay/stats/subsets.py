"""Expectations over all subsets of k of an item's n samples, in closed form: no draws, no noise.

Of k samples drawn at once from n with c passes, the number that passes is distributed hypergeometrically.
"""

from math import comb
from typing import cast

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray

Counts = npt.NDArray[np.int64]
_TABLE = 256  # up to this many samples an item all pairs (n, c) are tabled, which is quicker than finding the distinct


def pass_at_k(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """1 - C(n-c, k) / C(n, k) for each item: the chance that k of its n samples, drawn at once, hold a pass (Chen et
    al. 2021, arXiv:2107.03374).

    NaN where an item has fewer than k samples. A product of k ratios in [0, 1] over the distinct pairs (n, c):
    no factorial, nothing that overflows or cancels.
    """
    width = int(samples.max(initial=0)) + 1
    inverse = samples * width
    inverse += passes
    if width <= _TABLE:
        pairs = np.arange(width * width)
    else:
        pairs, inverse = cast("tuple[Counts, Counts]", np.unique(inverse, return_inverse=True))
    n, c = np.divmod(pairs, width)
    none_passes = np.ones(len(pairs))
    for drawn in range(k):
        none_passes *= np.maximum(n - c - drawn, 0) / np.maximum(n - drawn, 1)
    return np.where(n >= k, 1 - none_passes, np.nan)[inverse]


def expected_pass_at_k(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """`pass_at_k`, also for items with fewer than k samples, if others have k: one that has a pass has it among any k.
    Of one that has none, its n samples failed; what k - n further ones may bring is what they bring to such others."""
    found = pass_at_k(samples, passes, k)
    full = samples >= k
    for n in np.unique(samples[~full]).tolist():
        reached = float(pass_at_k(samples[full], passes[full], n).mean())
        further = (float(found[full].mean()) - reached) / (1 - reached) if reached < 1 else 0.0
        short = samples == n
        found[short] = np.where(passes[short] > 0, 1.0, further)
    return found


def majority(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """The chance that more than half of k samples pass; a tie counts half."""
    pairs, inverse = np.unique(np.stack([samples, passes], axis=1), axis=0, return_inverse=True)
    found = np.array([_majority(n, c, k) for n, c in pairs.tolist()])
    return found[inverse.ravel()]


def _majority(n: int, c: int, k: int) -> float:
    won = sum(comb(c, j) * comb(n - c, k - j) for j in range(k // 2 + 1, min(c, k) + 1))
    tied = comb(c, k // 2) * comb(n - c, k - k // 2) if k % 2 == 0 else 0
    return (2 * won + tied) / (2 * comb(n, k))  # whole numbers until here, so nothing overflows


def expected_best(scores: FloatArray, samples: Counts, k: int, highest: float) -> FloatArray:
    """`best`, also for items with fewer than k samples, as `expected_pass_at_k`: further samples close as much of the
    gap to the highest score as they do for items that have k."""
    full = samples >= k
    if full.all():
        return best(scores, samples, k)
    found, rows = np.empty(len(samples)), np.repeat(full, samples)
    found[full] = best(scores[rows], samples[full], k)
    for n in np.unique(samples[~full]).tolist():
        reached = float(best(scores[rows], samples[full], n).mean())
        closed = (
            (float(found[full].mean()) - reached) / (highest - reached)
            if reached < highest
            else 0.0
        )
        short = samples == n
        own = best(scores[np.repeat(short, samples)], samples[short], n)
        found[short] = own + (highest - own) * closed
    return found


def best(scores: FloatArray, samples: Counts, k: int) -> FloatArray:
    """The expected highest score of k samples of each item; `scores` are those of all items, one item after another.

    In ascending order the i-th of n scores is the highest of C(i-1, k-1) of the C(n, k) subsets.
    """
    first = np.cumsum(samples) - samples
    found = np.empty(len(samples))
    for n in np.unique(samples).tolist():
        items = np.flatnonzero(samples == n)
        ordered = np.sort(scores[first[items][:, None] + np.arange(n)], axis=1)
        total = comb(n, k)
        weights = np.array([comb(i, k - 1) / total for i in range(n)])
        found[items] = (ordered * weights).sum(axis=1)
    return found
