"""Whether what was retrieved holds the answer at all."""

from assay.scorers._parameters import Texts, verdict
from assay.scorers._retrieved import flat, holds, retrieved, texts
from assay.sdk import Item, Response, Score, scorer
from assay.text.expected import accepted


@scorer(params=Texts, version=1)
def answer_in_context(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    documents: str | None = None,
    whole_words: bool = True,
    shortest: int = 1,
) -> Score:
    """An accepted answer stands in the retrieved passages: whatever reads them could have known.

    Score: 1 if a passage, or several in a row, hold an accepted answer; both in lower case and without punctuation. It
    says nothing about the model's answer. Where passages come from is on
    [the page about text metrics](text-metrics.md#retrieved-documents).

    Parameters:
    whole_words: "art" is not in "party"
    shortest: accepted answers with fewer letters do not count
    """
    answers = [flat(answer) for answer in accepted(item.ground_truth, expected)]
    context = flat(" ".join(texts(retrieved(item, response, documents))))
    found = any(
        holds(context, answer, whole_words) for answer in answers if len(answer) >= max(1, shortest)
    )
    return verdict(found)
