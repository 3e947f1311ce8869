"""Maj@k: whether a vote among k samples is right."""

from collections import Counter
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from msgspec.json import Encoder

from assay.metrics._samples import Counts, Positive, over_items, too_few
from assay.sdk import FloatArray, Group, JsonMapping, Values, metric

_text = Encoder(order="sorted").encode


def _answer(params: JsonMapping) -> list[str]:
    return [params["answer"]] if params.get("answer") else []


@metric(
    scale=(0, 1),
    columns=_answer,
    ordered=lambda params: bool(params.get("answer")),
    verdicts="needed",
    lower_is_better=False,
)
def majority_at_k(group: Group, *, k: Positive | None = None, answer: str = "") -> Values:
    """The chance that a majority of k samples is right, averaged over items.

    Without `answer`, the votes are passes and failures: the chance that more than half of k samples pass, over all
    subsets of an item's samples, a tie counting half. With `answer`, the field that holds the extracted answer, the
    first k samples vote and the most frequent answer counts (self-consistency, Wang et al. 2022, arXiv:2203.11171);
    of tied answers the share that passed. Samples without an answer do not vote. Null if an item has
    fewer than k samples; where the policy left some out, it is estimated.

    Parameters:
    k: how many samples vote; all that every item has if null
    answer: the field of the evaluation row that holds the answer, such as `detailed_results.predicted`
    """
    samples, passes = group.per_item()
    k = int(samples.min()) if k is None else k
    if few := too_few(group, samples, k):
        return few
    if answer:
        return over_items(_votes_right(group, samples, k, group.columns[answer]), k, samples)
    missing = np.maximum(k - samples, 0)  # half of what the two bounds say about them
    votes = [_majorities(samples + missing, passes + right * missing, k) for right in (0, 1)]
    return over_items((votes[0] + votes[1]) / 2, k, samples)


def _votes_right(group: Group, samples: Counts, k: int, answers: list[Any]) -> FloatArray:
    found = np.zeros(len(samples))
    for item, start in enumerate((np.cumsum(samples) - samples).tolist()):
        rows = [
            at for at in range(start, start + min(k, int(samples[item]))) if answers[at] is not None
        ]
        votes = Counter(_text(answers[at]) for at in rows)
        most = max(votes.values(), default=0)
        right = {_text(answers[at]): bool(group.passed[at]) for at in rows}
        winners = [right[text] for text, count in votes.items() if count == most]
        found[item] = np.mean(winners) if winners else 0.0
    return found


def _majorities(samples: Counts, passes: Counts, k: int) -> FloatArray:
    """The chance that more than half of k samples pass; a tie counts half."""
    pairs = zip(samples.tolist(), passes.tolist(), strict=True)
    return np.array([_majority(n, c, k) for n, c in pairs])


@lru_cache(4096)
def _majority(n: int, c: int, k: int) -> float:
    won = sum(comb(c, j) * comb(n - c, k - j) for j in range(k // 2 + 1, min(c, k) + 1))
    tied = comb(c, k // 2) * comb(n - c, k - k // 2) if k % 2 == 0 else 0
    return (2 * won + tied) / (2 * comb(n, k))  # whole numbers until here, so nothing overflows
