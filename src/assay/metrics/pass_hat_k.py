"""Pass^k: how often all of k samples pass."""

from assay.metrics._samples import (
    Positive,
    expected_pass_at_k,
    over_items,
    too_few,
)
from assay.sdk import Group, Values, metric


@metric(verdicts="needed", lower_is_better=False, scale=(0, 1))
def pass_hat_k(group: Group, *, k: Positive = 1) -> Values:
    """The chance that all of k samples pass, averaged over items: reliability, where pass@k is reach.

    C(c, k) / C(n, k) for an item with n samples and c passes (Yao et al. 2024, arXiv:2406.12045). Null if an item has
    fewer than k samples; where the policy left some out, it is estimated.

    Parameters:
    k: how many samples must all pass
    """
    samples, passes = group.per_item()
    few = too_few(group, samples, k)
    return few or over_items(1 - expected_pass_at_k(samples, samples - passes, k), k, samples)
