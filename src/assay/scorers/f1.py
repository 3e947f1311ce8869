"""How many words an answer shares with the best of the accepted answers."""

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.scorers._parameters import Texts
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted
from assay.text.normalise import Normalisation, Stemming, normaliser
from assay.text.rouge import overlap


@scorer(reads="ground_truth", params=Texts, version=1)
def f1(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    response_field: str | None = None,
    normalize: Normalisation = "squad",
    case_sensitive: bool = True,
    stemming: Stemming = False,
    threshold: float = 0.0,
    strip_reasoning: bool = False,
) -> Score:
    """The F1 of the words that the answer shares with an accepted answer, the best over the accepted answers.

    Score: 2·p·r / (p + r), where p and r are the shared words (counted as often as both have them) divided by the
    words of the answer, and by those of the accepted answer: 2·shared / (words + words). Both empty: 1. One empty: 0.
    Rajpurkar et al. 2016 (SQuAD). Passes above 0, or from `threshold` on. Precision and recall are in
    `detailed_results`.
    """
    answers = [expected_content] if expected_content is not None else accepted(item.ground_truth, expected)
    comparable = normaliser(normalize, case_sensitive, True, stemming)
    try:
        text = comparable(answer_of(response, response_field, strip_reasoning))
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    best = max(overlap(text, comparable(answer)) for answer in answers)
    details = {"precision": best.precision, "recall": best.recall}
    return Score(passed=best.f1 >= threshold and best.f1 > 0, score=best.f1, details=details)
