"""What the scorers of rankings share."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta

Gain = Literal["linear", "exponential"]
Cutoff = Annotated[int, Meta(ge=1)]


def grades(ranked: Sequence[str], graded: Mapping[str, float], k: int | None = None) -> list[float]:
    """The grade at each of the first k places; 0 for what is not relevant or stood there before."""
    seen: set[str] = set()
    ranks: list[float] = []
    for id in ranked[:k]:
        ranks.append(0.0 if id in seen else graded.get(id, 0.0))
        seen.add(id)
    return ranks


def reciprocal_rank(ranks: Sequence[float]) -> float:
    """1 / the place of the first relevant document; 0 if there is none."""
    return next((1 / place for place, grade in enumerate(ranks, 1) if grade > 0), 0.0)


def average_precision(ranks: Sequence[float]) -> float:
    """The mean, over the places with a relevant document, of the share of relevant ones up to there."""
    hits, total = 0, 0.0
    for place, grade in enumerate(ranks, 1):
        if grade > 0:
            hits += 1
            total += hits / place
    return total / hits if hits else 0.0


def ndcg(ranks: Sequence[float], graded: Mapping[str, float], k: int, gain: Gain = "linear") -> float:
    """Discounted cumulative gain as a share of that of the best possible ranking."""
    best = _discounted(sorted(graded.values(), reverse=True)[:k], gain)
    return _discounted(ranks[:k], gain) / best


def _discounted(ranks: Sequence[float], gain: Gain) -> float:
    gains = ranks if gain == "linear" else [2**grade - 1 for grade in ranks]
    return sum(value / math.log2(place + 1) for place, value in enumerate(gains, 1))
