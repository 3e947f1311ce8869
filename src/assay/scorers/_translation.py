"""What the scorers by sacreBLEU share: a measure, and the counts that `corpus_score` adds up."""

from collections.abc import Mapping
from typing import Any

from assay.interfaces import Score
from assay.records import Item, Response
from assay.scorers._parameters import Measured
from assay.text.translation import Measure, require_sacrebleu, segment


def check(params: Mapping[str, Any], where: str) -> None:
    require_sacrebleu(where)


def measured(item: Item, response: Response, texts: Measured, measure: Measure, options: dict[str, Any]) -> Score:
    pair = texts.pair(item, response)
    if isinstance(pair, Score):
        return pair
    found = segment(measure, options, pair.answer, pair.references)
    counted = {"measure": measure, "options": options, "references": len(pair.references), "counts": found.counts}
    return texts.scored(found.score, corpus=counted)
