"""What the scorers by sacreBLEU share: the text, its references, and the counts that `corpus_score` adds up."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.interfaces import Score
from assay.records import Item, Response
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted
from assay.text.translation import Measure, require_sacrebleu, segment


class Reading(NamedTuple):
    """Where the text and its references are."""

    expected: str | None
    response_field: str | None
    strip_reasoning: bool


def check(params: Mapping[str, Any], where: str) -> None:
    require_sacrebleu(where)


def measured(item: Item, response: Response, reading: Reading, measure: Measure, options: dict[str, Any]) -> Score:
    """The score without a verdict, or why there is none."""
    references = accepted(item.ground_truth, reading.expected)
    try:
        text = answer_of(response, reading.response_field, reading.strip_reasoning)
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    found = segment(measure, options, text, references)
    counted = {"measure": measure, "options": options, "references": len(references), "counts": found.counts}
    return Score(score=found.score, details={"corpus": counted})


def passing(score: Score, threshold: float) -> Score:
    """The same with its verdict: passed from the threshold on, and never at 0."""
    if score.score is not None:
        score.passed = score.score >= threshold and score.score > 0
    return score
