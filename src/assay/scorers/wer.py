"""How many words must change to make an answer, such as a transcript, a reference."""

from typing import Any

from assay.scorers._parameters import MeasuredTexts, reads_answer
from assay.sdk import Item, JsonObject, Response, Score, scorer
from assay.text.error_rate import Unit, error_rate, without_punctuation


def rate_answer(
    item: Item,
    response: Response,
    unit: Unit,
    case_sensitive: bool,
    no_punct: bool,
    texts: MeasuredTexts,
) -> Score:
    """The lowest rate over the accepted answers, with the counts that make the rate of a corpus."""
    pair = texts.pair(item, response)

    def comparable(text: str) -> str:
        text = text if case_sensitive else text.casefold()
        return without_punctuation(text) if no_punct else text

    answer = comparable(pair.answer)
    rates = [error_rate(answer, comparable(reference), unit) for reference in pair.references]
    best = min(rates, key=lambda rate: (rate.share(), -rate.length))
    options = {"case_sensitive": case_sensitive, "no_punct": no_punct}
    counted: JsonObject = {"options": options, "references": len(rates), "counts": [*best]}
    measure = {"word": "wer", "character": "cer"}[unit]
    passed = best.share() <= texts.threshold
    return Score(
        passed=passed, score=best.share(), details={"corpus": {"measure": measure, **counted}}
    )


@scorer(
    reads="ground_truth", params=MeasuredTexts, lower_is_better=True, scale=(0, None), version=1
)
@reads_answer
def wer(
    item: Item,
    response: Response,
    *,
    case_sensitive: bool = True,
    no_punct: bool = False,
    **texts: Any,
) -> Score:
    """The word error rate of the answer, such as a transcript of speech. Lower is better.

    Score: edits / words of the accepted answer, where the edits are the fewest insertions, deletions and replacements
    of words that make the answer an accepted one; the lowest over the accepted answers. Words are what whitespace
    separates. It can exceed 1; of an empty reference it is the number of words. Passes up to `threshold`.
    [corpus_score](metric-reference.md#corpus_score) makes the rate of all answers together, the sum of the edits
    divided by the sum of the lengths, which is what papers report. A row that counts as wrong has the worst rate: 1, or
    the highest of its group. Texts that would take longer than some seconds are an error.

    Parameters:
    case_sensitive: whether case counts
    no_punct: ignore punctuation, except inside a word or a number
    threshold: the greatest score that passes
    """
    return rate_answer(item, response, "word", case_sensitive, no_punct, MeasuredTexts(**texts))
