"""The best of k samples by score."""

from math import comb

import numpy as np

from assay.metrics._samples import Counts, Positive, over_items, too_few, with_short_items
from assay.sdk import FloatArray, Group, Mask, Values, metric


@metric
def best_of_k(group: Group, *, k: Positive = 1) -> Values:
    """The expected best score of k samples, averaged over items: pass@k for scores that are not only 0 and 1.

    The mean over all C(n, k) subsets of an item's n samples, exactly: with the scores in ascending order, the i-th is
    the highest of C(i-1, k-1) of them. Where lower is better, the lowest counts. Null if an item has
    fewer than k samples; where the policy left some out, it is estimated.

    Parameters:
    k: how many samples to choose from
    """
    samples, _ = group.per_item()
    if few := too_few(group, samples, k):
        return few
    sign = -1 if group.lower_is_better else 1
    scores = sign * group.score
    end = (group.scale or (0.0, 1.0))[not group.lower_is_better]
    highest = float(scores.max() if end is None else max(scores.max(), sign * end))
    return over_items(sign * _expected_best(scores, samples, k, highest), k, samples)


def _expected_best(scores: FloatArray, samples: Counts, k: int, highest: float) -> FloatArray:
    """Return `_best`, also for items with fewer than k samples, if others have k."""

    def at(items: Mask, n: int) -> FloatArray:
        return _best(scores[np.repeat(items, samples)], samples[items], n)

    return with_short_items(at, samples, k, highest)


def _best(scores: FloatArray, samples: Counts, k: int) -> FloatArray:
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
