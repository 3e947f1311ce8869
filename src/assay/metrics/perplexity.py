"""How surprised a model is by texts, for each word, byte or token of them."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray, Group, Values
from assay.metrics._likelihoods import DETAILS, numbers, per_item_sums, value_of
from assay.registry import metric

Per = Literal["word", "byte", "character", "token", "text"]
COLUMNS = [DETAILS + name for name in ("logprob", "words", "bytes", "characters", "tokens")]


@metric(columns=COLUMNS, verdicts=False, lower_is_better=True)
def perplexity(group: Group, *, per: Per = "word") -> Values:
    """exp(-Σ log p / Σ n) over all texts of a group, n being their lengths: as if they were one long text.

    The label is that of `text_likelihood`. Only lengths in words, bytes and characters can be compared between models
    with different tokenizers. Intervals are made by the bootstrap over items. Compare models by `bits_per_byte`: the
    perplexity by byte is 2 to the power of it.

    Parameters:
    per: what the lengths are counted in; `text` counts each as 1, as for the last word of a passage
    """
    rows, logprobs = numbers(group, "logprob")
    counts = {"per": per, "text_count": len(rows), "ignored_count": len(group.item) - len(rows)}
    if not rows:
        return Values(value=None, fields=counts, reason="only labels of text_likelihood have it")
    column = [1.0] * len(group.item) if per == "text" else group.columns[f"{DETAILS}{per}s"]
    lengths = np.array([float(column[at]) for at in rows])
    sums, sizes = per_item_sums(group, rows, logprobs, lengths)

    def statistic(weights: npt.NDArray[np.int64]) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(-(weights @ sums) / (weights @ sizes))

    found = value_of(statistic, len(sums), rows, counts)
    if not np.isfinite(found.value or 0.0):
        return Values(value=None, fields=counts, reason="it is beyond the range of numbers")
    return found
