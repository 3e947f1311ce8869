"""How much of the relevance comes early."""

from typing import Any

from assay.scorers._parameters import RankedDocuments, passing
from assay.scorers._retrieved import Cutoff, Gain, ndcg
from assay.sdk import Item, Response, Score, scorer


@scorer(params=RankedDocuments, verdicts="threshold", version=1)
def ndcg_at_k(
    item: Item,
    response: Response,
    *,
    k: Cutoff = 10,
    gain: Gain = "linear",
    threshold: float = 0.0,
    **ranked: Any,
) -> Score:
    """The normalised discounted cumulative gain of the first k retrieved documents.

    Score: DCG / the DCG of the best possible ranking, where DCG is the sum of gain / log2(rank + 1) over the first k.
    The gain is the grade of a document (1 where relevance has no grades), as in Järvelin and Kekäläinen 2002 and in
    scikit-learn, or 2^grade − 1 with `exponential` (Burges et al. 2005). Passes from `threshold` on, if it is set. Where
    documents and relevance come from is on [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    gain: what a grade is worth
    """
    ranks, wanted = RankedDocuments(**ranked).grades(item, response, k)
    return passing(ndcg(ranks, wanted, k, gain), threshold)
