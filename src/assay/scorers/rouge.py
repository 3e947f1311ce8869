"""How many words, pairs of words or words in order an answer shares with a reference."""

from operator import attrgetter
from typing import Any, Literal

from assay.scorers._parameters import MeasuredTexts, unparsed_score
from assay.sdk import Item, JsonMapping, Response, Score, UserError, scorer
from assay.text.answers import Unparsed
from assay.text.rouge import Overlap, rouge_l, rouge_l_sum, rouge_n, words

Variant = int | Literal["L", "Lsum"]


def check(params: JsonMapping, where: str) -> None:
    variants: list[Variant] = params["variants"]
    bad = next((variant for variant in variants if isinstance(variant, int) and variant < 1), None)
    if bad is not None:
        raise UserError(f"there is no ROUGE-{bad}", where=where, fix="use 1, 2 …, L or Lsum")
    if not variants or len(set(variants)) < len(variants):
        raise UserError(
            "variants must name each ROUGE once", where=where, fix="leave it out for `[1, 2, L]`"
        )


@scorer(reads="ground_truth", check=check, params=MeasuredTexts, verdicts="threshold", version=1)
def rouge(
    item: Item,
    response: Response,
    *,
    variants: list[Variant] = [1, 2, "L"],  # noqa: B006
    stemming: bool = False,
    **texts: Any,
) -> list[Score]:
    """Word overlap by ROUGE: labels NAME.1, NAME.2 and NAME.L, each the best over the accepted answers by its F1.

    Score: 2·m / (words + words), where m counts, for a number n, the n-grams that both have, for L the words of their
    longest common subsequence, and for Lsum those of the union of its lines' subsequences. Lin 2004, with the words
    and stems of the `rouge-score` package: runs of a to z and 0 to 9. Texts in other scripts have none and score 0.
    Precision and recall are in `detailed_results`.

    Parameters:
    variants: which of 1, 2, 3 …, `L` and `Lsum`
    stemming: compare the stems of words from four letters on
    """
    measured = MeasuredTexts(**texts)
    try:
        pair = measured.pair(item, response)
    except Unparsed as error:
        return [unparsed_score(error)]
    labels: list[Score] = []
    for variant in variants:
        overlaps = [
            _rouge(variant, pair.answer, reference, stemming) for reference in pair.references
        ]
        best = max(overlaps, key=attrgetter("f1"))
        labels.append(measured.scored(best.f1, precision=best.precision, recall=best.recall))
        labels[-1].label = f".{variant}"
    return labels


def _rouge(variant: Variant, text: str, reference: str, stemming: bool) -> Overlap:
    if variant == "Lsum":
        return rouge_l_sum(text, reference, stemming)
    answer, wanted = words(text, stemming), words(reference, stemming)
    return rouge_l(answer, wanted) if variant == "L" else rouge_n(answer, wanted, variant)
