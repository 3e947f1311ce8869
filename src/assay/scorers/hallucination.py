"""Whether an answer says what the retrieved passages do not."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from assay.scorers._grounding import Grounds, check, score_grounds
from assay.scorers._parameters import Grounded, ScorerCase
from assay.sdk import Score, scorer

_CONTRADICTED = 0.7  # a passage that contradicts the answer so surely outweighs one that entails it


@scorer(batch=64, check=check, params=Grounded, lower_is_better=True, version=1)
def hallucination(
    cases: Sequence[ScorerCase],
    *,
    threshold: float = 0.5,
    **reading: Any,
) -> list[Score]:
    """How much of the answer the retrieved passages do not support. Lower is better.

    Score: with `token_overlap`, the share of the answer's different content words that no passage has; with `nli`, the
    greatest probability that a passage contradicts the answer if it is above 0.7, else 1 − the greatest probability
    that one entails it (`pip install 'assay-eval[neural]'`). An empty answer scores 0;
    else nothing retrieved scores 1. Passes below `threshold`. Where passages come from is on
    [the page about text metrics](text-metrics.md#retrieved-documents). A row that counts as wrong has the score 1.

    Parameters:
    threshold: the score from which an answer fails
    """
    return score_grounds(cases, Grounded(**reading), partial(_score_of, threshold))


def _score_of(threshold: float, grounds: Grounds) -> Score:
    score = _hallucination(grounds)
    return Score(score=round(score, 6), passed=score < threshold, details=dict(grounds.details))


def _hallucination(grounds: Grounds) -> float:
    if not grounds.answer.strip():
        return 0.0
    if not grounds.passages:
        return 1.0
    if not grounds.judgements:
        return 0.0 if grounds.share is None else 1.0 - grounds.share
    contradicted = max(judgement.contradiction for judgement in grounds.judgements)
    if contradicted > _CONTRADICTED:
        return contradicted
    return 1.0 - max(judgement.entailment for judgement in grounds.judgements)
