"""How many n-grams of an answer are in the references."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from assay.scorers._parameters import MeasuredTexts, reads_answer
from assay.sdk import Item, JsonMapping, JsonObject, Response, Score, scorer
from assay.text.translation import Measure, require_sacrebleu, segment


def check(params: JsonMapping, where: str) -> None:
    require_sacrebleu(where)


def measure_pair(
    item: Item, response: Response, texts: MeasuredTexts, measure: Measure, options: JsonObject
) -> Score:
    pair = texts.pair(item, response)
    result = segment(measure, options, pair.answer, pair.references)
    counted = {
        "measure": measure,
        "options": options,
        "references": len(pair.references),
        "counts": result.counts,
    }
    return texts.scored(result.score, corpus=counted)


@scorer(reads="ground_truth", check=check, params=MeasuredTexts, verdicts="threshold", version=1)
@reads_answer
def bleu(
    item: Item,
    response: Response,
    *,
    tokenize: Literal["13a", "intl", "zh", "char", "none"] = "13a",
    lowercase: bool = False,
    smooth: Literal["exp", "floor", "add-k", "none"] = "exp",
    order: Annotated[int, Meta(ge=1)] = 4,
    **texts: Any,
) -> Score:
    """Word overlap by BLEU with all accepted answers together, by sacreBLEU (the extra `text`).

    Score: min(1, e^(1 − r/c)) · (p₁ · … · p₄)^¼, where p_n is the share of the answer's n-grams that an accepted answer
    has (each counted no more often than there), c the answer's length and r that of the accepted answer closest to it.
    Papineni et al. 2002, Post 2018. A share of 1, not of 100. A single answer's BLEU is smoothed, and orders beyond its
    length do not count. It says little about one answer: [corpus_score](metric-reference.md#corpus_score) makes the
    BLEU of all answers, which is not the mean of these.

    Parameters:
    tokenize: how texts become words
    lowercase: ignore case
    smooth: what becomes of an order without a match
    order: the longest n-grams
    """
    options = {
        "tokenize": tokenize,
        "lowercase": lowercase,
        "smooth_method": smooth,
        "max_ngram_order": order,
    }
    return measure_pair(item, response, MeasuredTexts(**texts), "bleu", options)
