"""SQuAD's measures under their own names: `squad.exact_match` and `squad.f1`, ours with SQuAD's defaults and shapes.

The ground truth may be a list of answers, `{"text": [...], "answer_start": [...]}` or that in a field `answers`. An
empty list is a question that cannot be answered: then only the empty answer is right, as in SQuAD 2.0.
"""

from assay.scorers.exact_match import exact_match as core_exact_match
from assay.scorers.f1 import f1 as core_f1
from assay.sdk import Item, Response, Score, scorer
from assay.text.expected import answers_listed


@scorer(name="squad.exact_match", reads="ground_truth", version=1)
def exact_match(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    normalize: bool = True,
    stemming: bool = False,
    strip_reasoning: bool = True,
) -> Score:
    """The answer equals an accepted one; case, ASCII punctuation, articles and runs of spaces do not count.

    Parameters:
    expected: the field of the ground truth that has the accepted answers
    normalize: false compares the texts as they are
    stemming: compare the stems of English words, as NLTK's Porter stemmer gives them
    strip_reasoning: look only at what follows `</think>`
    """
    return core_exact_match(
        answers_listed(item, expected),
        response,
        normalize="squad" if normalize else "none",
        strip_whitespace=normalize,
        stemming="nltk" if normalize and stemming else False,
        strip_reasoning=strip_reasoning,
    )


@scorer(name="squad.f1", reads="ground_truth", verdicts=False, version=1)
def f1(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    normalize: bool = True,
    stemming: bool = False,
    strip_reasoning: bool = True,
) -> Score:
    """Word overlap: the F1 of the words shared with an accepted answer, the best over the accepted ones.

    Parameters:
    expected: the field of the ground truth that has the accepted answers
    normalize: false only folds case and splits at spaces, and an empty answer shares nothing even with an empty one:
      how RAGiCamp's first version counted
    stemming: compare the stems of English words, as NLTK's Porter stemmer gives them
    strip_reasoning: look only at what follows `</think>`
    """
    found = core_f1(
        answers_listed(item, expected),
        response,
        normalize="squad" if normalize else "lower_spaces",
        stemming="nltk" if normalize and stemming else False,
        strip_reasoning=strip_reasoning,
    )
    if not normalize and not response.response.split():
        return Score(passed=False, score=0.0)
    return found
