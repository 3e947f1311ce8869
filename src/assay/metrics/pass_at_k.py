"""Pass@k: the unbiased estimator over all samples, or EEN's trials over blocks of k samples."""

from typing import Literal

import numpy as np

from assay.metrics._samples import (
    Counts,
    Positive,
    expected_pass_at_k,
    short_fields,
    too_few,
    with_k,
)
from assay.sdk import FloatArray, Group, JsonMapping, JsonObject, Values, metric

AGGREGATE = {"mean": np.mean, "median": np.median, "max": np.max, "min": np.min}


def _needs_order(params: JsonMapping) -> bool:
    return params.get("num_trials", 1) > 1 or params.get("estimator") == "trials"


@metric(ordered=_needs_order, verdicts="needed", lower_is_better=False, scale=(0, 1))
def pass_at_k(
    group: Group,
    *,
    k: Positive = 1,
    num_trials: Positive = 1,
    aggregation: Literal["mean", "median", "max", "min"] = "mean",
    estimator: Literal["auto", "unbiased", "trials"] = "auto",
) -> Values:
    """The chance that at least one of k samples passes, averaged over items.

    `unbiased` is 1 - C(n-c, k) / C(n, k) with n samples and c passes of an item (Chen et al. 2021). `trials` cuts the
    samples of each item, in order of sample index, into num_trials blocks of k; a trial's value is the share of items
    with a pass in its block, and `aggregation` combines the trials. `auto` is `trials` only where the aggregation
    needs them (median, max, min of several trials): for the mean both estimate the same number. Null if an item has
    fewer than k samples; where the policy left some out, it is estimated.

    Parameters:
    k: how many samples may try
    num_trials: how many blocks of k samples to form; with fewer samples the row has a warning
    aggregation: how trials are combined
    estimator: over all samples, or over blocks of them
    """
    samples, passes = group.per_item()
    fields: JsonObject = {f"pass_at_{k}": None, "k": k}
    if num_trials > 1:
        fields |= {"num_trials": num_trials, "aggregation": aggregation}
    if few := too_few(group, samples, k, fields):
        return few
    fields |= short_fields(samples, k)
    enough = with_k(group, samples, k)
    blocked = samples[samples >= k]
    fewest = int(blocked.min())
    trials = min(num_trials, fewest // k)
    if trials < num_trials:
        fields["effective_num_trials"] = trials
        fields["warning"] = (
            f"{num_trials} trials of {k} need {num_trials * k} samples; an item has {fewest}"
        )
    by_trials = estimator == "trials" or (
        estimator == "auto" and num_trials > 1 and aggregation != "mean"
    )
    if by_trials:
        blocks = _blocks(enough, blocked, k, trials)
        per_item = blocks.mean(axis=1) if aggregation == "mean" else None
        value = float(AGGREGATE[aggregation](blocks.mean(axis=0)))
        reason = (
            None
            if aggregation == "mean"
            else f"the {aggregation} of trials is not a mean over items"
        )
    else:
        per_item = expected_pass_at_k(samples, passes, k)
        reason = None
        value = float(per_item.mean())
        if num_trials > 1:
            fields["pass_at_k_trials"] = float(_blocks(enough, blocked, k, trials).mean())
    fields[f"pass_at_{k}"] = value
    items = enough.item if by_trials else None
    return Values(value=value, fields=fields, per_item=per_item, reason=reason, items=items)


def _blocks(group: Group, samples: Counts, k: int, trials: int) -> FloatArray:
    """Items × trials: 1.0 where one of the k samples of the block passed."""
    first = np.cumsum(samples) - samples
    picked = group.passed[first[:, None] + np.arange(trials * k)]
    passed: FloatArray = picked.reshape(len(samples), trials, k).max(axis=2).astype(np.float64)
    return passed
