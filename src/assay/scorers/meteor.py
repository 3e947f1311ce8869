"""How many words an answer shares with a reference, by themselves and by their stems, and how well in order."""

from assay.interfaces import Score
from assay.records import Item, Response
from assay.registry import scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted
from assay.text.meteor import meteor as meteor_of
from assay.text.meteor import words


@scorer(reads="ground_truth", version=1)
def meteor(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    response_field: str | None = None,
    alpha: float = 0.9,
    beta: float = 3.0,
    gamma: float = 0.5,
    threshold: float = 0.0,
    strip_reasoning: bool = False,
) -> Score:
    """METEOR of the answer by equal words and equal stems, the best over the accepted answers. English.

    Score: (1 − γ · (chunks / m)^β) · P·R / (α·P + (1 − α)·R), where m words match, P = m / words of the answer, R = m /
    words of the accepted answer, and chunks are the runs of matches in the same order. Lavie and Agarwal 2007, matched
    as NLTK does. METEOR's third way to match, synonyms, is left out: it needs the WordNet database, which would have to
    be downloaded. So a score is at most that of a METEOR with synonyms, and equal where no synonym matches: compare it
    only with scores from here.

    Parameters:
    expected: the field of the ground truth that has the accepted answers
    response_field: score this field (a dotted path) of the JSON in the answer
    alpha: how much more recall weighs than precision
    beta: how fast the penalty grows with the number of chunks
    gamma: the greatest penalty
    threshold: the least score that passes; 0 stands for any score above 0
    strip_reasoning: look only at what follows `</think>`
    """
    references = accepted(item.ground_truth, expected)
    try:
        given = words(answer_of(response, response_field, strip_reasoning))
    except Unparsed as error:
        return Score(outcome="unparsed", error=str(error))
    best = max(meteor_of(given, words(each), alpha=alpha, beta=beta, gamma=gamma) for each in references)
    return Score(passed=best >= threshold and best > 0, score=best)
