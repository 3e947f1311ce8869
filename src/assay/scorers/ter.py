"""How many words must change to make an answer a reference."""

from typing import Any

from assay.scorers._parameters import MeasuredTexts, reads_answer
from assay.scorers.bleu import check, measure_pair
from assay.sdk import Item, Response, Score, scorer


@scorer(
    reads="ground_truth",
    check=check,
    params=MeasuredTexts,
    lower_is_better=True,
    scale=(0, None),
    version=1,
)
@reads_answer
def ter(
    item: Item,
    response: Response,
    *,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
    **texts: Any,
) -> Score:
    """The translation edit rate of the answer, by sacreBLEU (the extra `text`). Lower is better.

    Score: edits / length, where the edits are the fewest insertions, deletions, replacements of words and shifts of
    runs of words that make the answer an accepted one, and the length is the accepted answers' mean number of words.
    Snover et al. 2006. It can exceed 1. Passes up to `threshold`.
    [corpus_score](metric-reference.md#corpus_score) makes the rate of all answers together. A row that counts as wrong
    has the worst rate: 1, or the highest of its group. Texts that would take longer than some seconds (of more than
    30,000 words, or of thousands that are all the same) are an error.

    Parameters:
    normalized: split punctuation off and unescape HTML
    no_punct: ignore punctuation
    asian_support: split Chinese and Japanese letters
    case_sensitive: whether case counts
    threshold: the greatest score that passes
    """
    options = {
        "normalized": normalized,
        "no_punct": no_punct,
        "asian_support": asian_support,
        "case_sensitive": case_sensitive,
    }
    reading = MeasuredTexts(**texts)
    found = measure_pair(item, response, reading, "ter", options)
    found.passed = float(found.score or 0) <= reading.threshold
    return found
