"""How many characters must change to make an answer, such as a transcript, a reference."""

from typing import Any

from assay.scorers._parameters import MeasuredTexts, reads_answer
from assay.scorers.wer import rate_answer
from assay.sdk import Item, Response, Score, scorer


@scorer(
    reads="ground_truth", params=MeasuredTexts, lower_is_better=True, scale=(0, None), version=1
)
@reads_answer
def cer(
    item: Item,
    response: Response,
    *,
    case_sensitive: bool = True,
    no_punct: bool = False,
    **texts: Any,
) -> Score:
    """The character error rate of the answer, such as text that was read from an image. Lower is better.

    Score: edits / characters of the accepted answer, where the edits are the fewest insertions, deletions and
    replacements of characters that make the answer an accepted one; the lowest over the accepted answers. A run of
    whitespace is one space, around the text none. Otherwise like [wer](#wer).

    Parameters:
    case_sensitive: whether case counts
    no_punct: ignore punctuation, except inside a word or a number
    threshold: the greatest score that passes
    """
    return rate_answer(
        item, response, "character", case_sensitive, no_punct, MeasuredTexts(**texts)
    )
