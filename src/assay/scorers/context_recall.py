"""How much of a reference answer stands in what was retrieved."""

from assay.scorers._parameters import Texts, passing
from assay.scorers._retrieved import flat, holds, retrieved, sentences, shared_words, texts
from assay.sdk import Item, Response, Score, scorer
from assay.text.expected import accepted

_MOST_COMPARED = 10**10  # letters that sentences are looked for in


@scorer(params=Texts, verdicts="threshold", version=1)
def context_recall(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    documents: str | None = None,
    overlap: float = 0.8,
    shortest: int = 1,
    whole_words: bool = True,
    threshold: float = 0.0,
) -> Score:
    """The share of an accepted answer's sentences that the retrieved passages hold, the best over the accepted answers.

    Score: sentences found / sentences. A sentence is found if the passages, all in lower case and without punctuation,
    contain it, or if they have at least the share `overlap` of its different words. Passes from `threshold`
    on, if it is set. After the context recall of RAGAS (Es et al. 2024), by words instead of a model. Where passages come
    from is on [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    overlap: the share of a sentence's words that is enough
    shortest: sentences with fewer words do not count; an answer with none left scores 0
    whole_words: "art" is not in "party"
    """
    context = flat(" ".join(texts(retrieved(item, response, documents))))
    words = set(context.split())
    # what the passages contain word by word, they have all words of
    words_tell = whole_words and overlap <= 1
    best = 0.0
    for answer in accepted(item.ground_truth, expected):
        parts = [
            part for part in map(flat, sentences(answer)) if len(part.split()) >= max(1, shortest)
        ]
        if not words_tell and len(parts) * len(context) > _MOST_COMPARED:
            raise ValueError(
                f"{len(parts):,} sentences are too many to look for in {len(context):,} letters"
            )
        found = sum(
            shared_words(part, words) >= overlap
            or (not words_tell and holds(context, part, whole_words))
            for part in parts
        )
        best = max(best, found / len(parts) if parts else 0.0)
    return passing(best, threshold)
