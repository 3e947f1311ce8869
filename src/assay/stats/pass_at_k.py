"""Pass@k from the samples and passes of each item (Chen et al. 2021, arXiv:2107.03374)."""

from typing import cast

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray

_TABLE = 256  # up to this many samples an item all pairs (n, c) are tabled, which is quicker than finding the distinct

Counts = npt.NDArray[np.int64]


def pass_at_k(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """1 - C(n-c, k) / C(n, k) for each item: the chance that k of its n samples, drawn at once, hold a pass.

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
