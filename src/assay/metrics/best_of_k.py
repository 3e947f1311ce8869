"""The best of k samples by score."""

from assay.interfaces import Group, Values
from assay.metrics._samples import Positive, expected_best, over_items, too_few
from assay.registry import metric


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
    return over_items(sign * expected_best(scores, samples, k, highest), k, samples)
