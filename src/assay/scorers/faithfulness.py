"""Whether an answer says only what the retrieved passages say."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from assay.scorers._grounding import Grounds, check, score_grounds
from assay.scorers._parameters import Grounded, ScorerCase
from assay.sdk import Score, scorer


@scorer(batch=64, check=check, params=Grounded, version=1)
def faithfulness(
    cases: Sequence[ScorerCase],
    *,
    threshold: float = 0.5,
    **reading: Any,
) -> list[Score]:
    """How far the retrieved passages support the answer.

    Score: with `token_overlap`, the share of the answer's different content words that the passages have: cheap, and
    blind to meaning; with `nli`, the greatest probability that a passage entails the answer, by a model for natural
    language inference (`pip install 'assay-eval[neural]'`). Nothing retrieved, or an answer
    without content words, scores 0. Passes from `threshold` on. A language model can judge it as
    well: [judge_faithfulness](#judge_faithfulness). Where passages come from is on
    [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    threshold: the least score that passes
    """
    return score_grounds(cases, Grounded(**reading), partial(_score_of, threshold))


def _score_of(threshold: float, grounds: Grounds) -> Score:
    score = max(
        (judgement.entailment for judgement in grounds.judgements), default=grounds.share or 0.0
    )
    return Score(score=round(score, 6), passed=score >= threshold, details=dict(grounds.details))
