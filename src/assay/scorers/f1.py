"""How many words an answer shares with the best of the accepted answers."""

from typing import Any

from assay.scorers._parameters import Compared, passing, reads_answer
from assay.sdk import Item, Response, Score, scorer
from assay.text.normalise import Normalisation, Stemming, normaliser
from assay.text.rouge import overlap


@scorer(reads="ground_truth", params=Compared, verdicts="threshold", version=1)
@reads_answer
def f1(
    item: Item,
    response: Response,
    *,
    normalize: Normalisation = "squad",
    stemming: Stemming = False,
    threshold: float = 0.0,
    **texts: Any,
) -> Score:
    """Word overlap: the F1 of the words shared with an accepted answer, the best over the accepted answers.

    Score: 2·p·r / (p + r), where p and r are the shared words (counted as often as both have them) divided by the
    words of the answer, and by those of the accepted answer: 2·shared / (words + words). Both empty: 1. One empty: 0.
    Rajpurkar et al. 2016 (SQuAD). Passes from `threshold` on, if it is set. Precision and recall are in
    `detailed_results`.
    """
    compared = Compared(normalize=normalize, **texts)
    pair = compared.pair(item, response)
    comparable = normaliser(normalize, compared.case_sensitive, True, stemming)
    text = comparable(pair.answer)
    best = max(overlap(text, comparable(answer)) for answer in pair.references)
    return passing(best.f1, threshold, precision=best.precision, recall=best.recall)
