"""How many of the retrieved passages were worth retrieving, and whether they come first."""

from assay.scorers._parameters import Texts, passing
from assay.scorers._retrieved import (
    Document,
    average_precision,
    flat,
    grades,
    holds,
    relevant,
    retrieved,
    shared_words,
)
from assay.sdk import Item, Response, Score, scorer
from assay.text.expected import accepted


@scorer(params=Texts, verdicts="threshold", version=1)
def context_precision(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    documents: str | None = None,
    relevant_ids: str | None = None,
    overlap: float = 0.8,
    ranked: bool = True,
    threshold: float = 0.0,
) -> Score:
    """How many of the retrieved passages are useful, the early ones counting more.

    Score: the mean, over the places of useful passages, of the share of useful ones up to there (average precision, as
    in RAGAS, Es et al. 2024); with `ranked: false` the plain share of useful ones. A passage is useful if it holds an
    accepted answer, or at least the share `overlap` of its different words; with `relevant_ids`, if it is one of those.
    Nothing retrieved scores 0. Passes from `threshold` on, if it is set. Where passages come from is on
    [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    relevant_ids: the field of the ground truth that has the ids of the useful documents, instead of answers
    overlap: the share of an accepted answer's words that is enough
    ranked: whether the order counts
    """
    found = retrieved(item, response, documents)
    if relevant_ids is not None:
        useful = grades([document.id for document in found], relevant(item, relevant_ids))
    else:
        answers = [answer for answer in map(flat, accepted(item.ground_truth, expected)) if answer]
        useful = [float(_useful(document, answers, overlap)) for document in found]
    hits = sum(grade > 0 for grade in useful)
    score = average_precision(useful) if ranked else hits / max(1, len(useful))
    return passing(score, threshold, useful=hits, passages=len(found))


def _useful(document: Document, answers: list[str], overlap: float) -> bool:
    passage = flat(document.text)
    words = set(passage.split())
    return any(
        holds(passage, answer) or shared_words(answer, words) >= overlap for answer in answers
    )
