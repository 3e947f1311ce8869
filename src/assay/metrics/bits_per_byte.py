"""How many bits a model needs for a byte of text."""

import math

from assay.metrics._likelihoods import numbers, per_item_sums
from assay.metrics.perplexity import COLUMNS
from assay.sdk import Group, Values, metric


@metric(columns=COLUMNS, verdicts=False, lower_is_better=True, scale=(0, None))
def bits_per_byte(group: Group) -> Values:
    """-Σ log₂ p / Σ bytes over all texts of a group: the size of the texts as the model could compress them.

    The label is that of `text_likelihood`. It can be compared between models with different tokenizers. Intervals and
    paired comparisons are made from the linearised ratio, r + (aᵢ - r bᵢ) / b̄ of each item (delta method).
    """
    rows, logprobs = numbers(group, "logprob")
    counts = {"text_count": len(rows), "ignored_count": len(group.item) - len(rows)}
    if not rows:
        return Values(fields=counts, reason="only labels of text_likelihood have it")
    lengths = numbers(group, "bytes")[1]
    bits, sizes = per_item_sums(group, rows, -logprobs / math.log(2), lengths)
    ratio = float(bits.sum() / sizes.sum())
    per_item = ratio + (bits - ratio * sizes) / sizes.mean()
    items = group.item[rows]
    return Values(value=ratio, fields=counts, per_item=per_item, items=items, rows=rows)
