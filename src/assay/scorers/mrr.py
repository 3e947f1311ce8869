"""How early the first relevant document comes."""

from typing import Any

from assay.scorers._parameters import RankedDocuments
from assay.scorers._retrieved import Cutoff, reciprocal_rank
from assay.sdk import Item, Response, Score, scorer


@scorer(params=RankedDocuments, version=1)
def mrr(item: Item, response: Response, *, k: Cutoff | None = None, **ranked: Any) -> Score:
    """The reciprocal rank of the first relevant document; its mean over items is the MRR (Voorhees 1999).

    Score: 1 / rank, or 0 if none was retrieved. Passes above 0. Where documents and relevance come from is on
    [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    k: how many documents count; all if null
    """
    ranks, _ = RankedDocuments(**ranked).grades(item, response, k)
    score = reciprocal_rank(ranks)
    return Score(passed=score > 0, score=score)
