"""How surprised a model is by texts, for each word, byte or token of them."""

from typing import Literal

import numpy as np

from assay.metrics._likelihoods import DETAILS, numbers, per_item_sums
from assay.sdk import Group, Values, metric

Per = Literal["word", "byte", "character", "token", "text"]
COLUMNS = [DETAILS + name for name in ("logprob", "words", "bytes", "characters", "tokens")]


@metric(columns=COLUMNS, verdicts=False, lower_is_better=True, scale=(1, None))
def perplexity(group: Group, *, per: Per = "word") -> Values:
    """exp(-Σ log p / Σ n) over all texts of a group, n being their lengths: as if they were one long text.

    The label is that of `text_likelihood`. Only lengths in words, bytes and characters can be
    compared between models with different tokenizers. The interval is e to the power of that of -Σ
    log p / Σ n. Compare models by `bits_per_byte`: the perplexity by byte is 2 to the power of it.

    Parameters:
    per: what the lengths are counted in; `text` counts each as 1, as for the last word of a passage
    """
    rows, logprobs = numbers(group, "logprob")
    counts = {"per": per, "text_count": len(rows), "ignored_count": len(group.item) - len(rows)}
    if not rows:
        return Values(fields=counts, reason="only labels of text_likelihood have it")
    column = [1.0] * len(group.item) if per == "text" else group.columns[f"{DETAILS}{per}s"]
    lengths = np.array(column, np.float64)[rows]
    sums, sizes = per_item_sums(group, rows, logprobs, lengths)
    each = np.ones((1, len(sums)), np.int64)
    ratio = (each @ sums) / (each @ sizes)
    value = _exp(-ratio[0])
    if not np.isfinite(value):
        return Values(fields=counts, reason="it is beyond the range of numbers")
    return Values(
        value=value,
        fields=counts,
        per_item=-ratio - (sums - ratio * sizes) / sizes.mean(),
        items=group.item[rows],
        rows=rows,
        transform=_exp,
        scale=(0.0, None),
    )


def _exp(nats: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(nats))
