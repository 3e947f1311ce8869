"""Whether an answer says only what the retrieved passages say."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from assay.interfaces import Score
from assay.registry import scorer
from assay.scorers._cases import Case
from assay.scorers._grounding import Grounds, Method, Reading, check, grounds
from assay.scorers._parameters import Grounded
from assay.scorers._retrieved import Words


@scorer(batch=64, check=check, params=Grounded, version=1)
def faithfulness(
    cases: Sequence[Case],
    *,
    method: Method = "token_overlap",
    documents: str | None = None,
    response_field: str | None = None,
    words: Words = "plain",
    stopwords: list[str] | None = None,
    model: str = "",
    revision: str | None = None,
    batch_size: Annotated[int, Meta(ge=1)] = 16,
    threshold: float = 0.5,
    strip_reasoning: bool = False,
) -> list[Score]:
    """How far the retrieved passages support the answer.

    Score: with `token_overlap`, the share of the answer's different content words that the passages have: cheap, and
    blind to meaning; with `nli`, the greatest probability that a passage entails the answer, by a model for natural
    language inference (`pip install 'assay[neural]'`). Nothing retrieved, or an answer without content words, scores 0.
    Passes from `threshold` on. A language model can judge it as well: [judge_faithfulness](#judge_faithfulness). Where
    passages come from is on [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    threshold: the least score that passes
    """
    reading = Reading(method, documents, response_field, words, stopwords, model, revision, batch_size, strip_reasoning)
    return [entry if isinstance(entry, Score) else _scored(entry, threshold) for entry in grounds(cases, reading)]


def _scored(grounds: Grounds, threshold: float) -> Score:
    score = max((judgement.entailment for judgement in grounds.judgements), default=grounds.share or 0.0)
    return Score(score=round(score, 6), passed=score >= threshold, details=dict(grounds.details))
