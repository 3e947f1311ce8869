"""How many runs of letters an answer shares with a reference."""

from typing import Annotated, Any

from msgspec import Meta

from assay.scorers._parameters import MeasuredTexts, reads_answer
from assay.scorers.bleu import check, measure_pair
from assay.sdk import Item, Response, Score, scorer


@scorer(reads="ground_truth", check=check, params=MeasuredTexts, verdicts="threshold", version=1)
@reads_answer
def chrf(
    item: Item,
    response: Response,
    *,
    char_order: Annotated[int, Meta(ge=1)] = 6,
    word_order: Annotated[int, Meta(ge=0)] = 0,
    beta: Annotated[int, Meta(ge=1)] = 2,
    lowercase: bool = False,
    whitespace: bool = False,
    **texts: Any,
) -> Score:
    """Character overlap by chrF, the best over the accepted answers, by sacreBLEU (the extra `text`).

    Score: (1 + β²) · P · R / (β² · P + R), averaged over the orders, where P and R are the shares of the answer's and
    of the accepted answer's runs of n letters that the other has. Popović 2015; with `word_order: 2` it is chrF++
    (2017). A share of 1, not of 100. [corpus_score](metric-reference.md#corpus_score) makes the chrF of all answers.

    Parameters:
    char_order: the longest runs of letters
    word_order: the longest runs of words, counted as well
    beta: how many times more recall weighs
    lowercase: ignore case
    whitespace: count spaces as letters
    """
    options = {
        "char_order": char_order,
        "word_order": word_order,
        "beta": beta,
        "lowercase": lowercase,
        "whitespace": whitespace,
    }
    return measure_pair(item, response, MeasuredTexts(**texts), "chrf", options)
