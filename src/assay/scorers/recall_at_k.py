"""How many of the relevant documents are among the first ones."""

from typing import Any

from assay.scorers._parameters import RankedDocuments, passing
from assay.scorers._retrieved import Cutoff
from assay.sdk import Item, Response, Score, scorer


@scorer(params=RankedDocuments, verdicts="threshold", version=1)
def recall_at_k(
    item: Item, response: Response, *, k: Cutoff = 10, threshold: float = 0.0, **ranked: Any
) -> Score:
    """The share of the relevant documents that are among the first k retrieved ones.

    Score: relevant documents among the first k / all relevant documents. Passes from `threshold` on, if it is set. Where
    documents and relevance come from is on [the page about text metrics](text-metrics.md#retrieved-documents).
    """
    ranks, wanted = RankedDocuments(**ranked).grades(item, response, k)
    recall = sum(grade > 0 for grade in ranks) / len(wanted)
    return passing(recall, threshold)
