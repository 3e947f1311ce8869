"""Whether a relevant document is among the first ones."""

from typing import Any

from assay.scorers._parameters import RankedDocuments, verdict
from assay.scorers._retrieved import Cutoff
from assay.sdk import Item, Response, Score, scorer


@scorer(params=RankedDocuments, version=1)
def hit_at_k(item: Item, response: Response, *, k: Cutoff = 10, **ranked: Any) -> Score:
    """One of the first k retrieved documents is relevant.

    Score: 1 if it is so, else 0. Its mean is the hit rate, also called success@k. Where documents and relevance come
    from is on [the page about text metrics](text-metrics.md#retrieved-documents).
    """
    ranks, _ = RankedDocuments(**ranked).grades(item, response, k)
    return verdict(any(ranks))
