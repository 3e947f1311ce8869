"""Equality with one of the accepted answers."""

from assay.scorers._parameters import Compared, unparsed_score
from assay.sdk import Item, Response, Score, scorer
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted
from assay.text.normalise import Normalisation, Stemming, normaliser


@scorer(reads="ground_truth", params=Compared, version=1)
def exact_match(
    item: Item,
    response: Response,
    *,
    expected: str | None = None,
    expected_content: str | None = None,
    response_field: str | None = None,
    normalize: Normalisation = "none",
    case_sensitive: bool = True,
    strip_whitespace: bool = True,
    stemming: Stemming = False,
    strip_reasoning: bool = True,
) -> Score:
    """The answer equals one of the accepted answers.

    Score: 1 if norm(answer) = norm(a) for an accepted answer a, else 0. `squad` is the normalisation of Rajpurkar et
    al. 2016 (SQuAD): lower case, no ASCII punctuation, no articles, single spaces; `basic` folds case and whitespace
    and drops quotes, markdown and final punctuation around the text; `lower`, `spaces` and `lower_spaces` make small
    letters, single spaces, or both; `none` leaves both to the two flags.

    Parameters:
    normalize: how both sides are made comparable
    """
    answers = (
        [expected_content]
        if expected_content is not None
        else accepted(item.ground_truth, expected)
    )
    if response_field is None and not (strip_reasoning and "<" in response.response):
        text = response.response
    else:
        try:
            text = answer_of(response, response_field, strip_reasoning)
        except Unparsed as error:
            return unparsed_score(error)
    comparable = normaliser(normalize, case_sensitive, strip_whitespace, stemming)
    text = comparable(text)
    for answer in answers:
        if text == comparable(answer):
            return Score(passed=True, score=1.0)
    return Score(passed=False, score=0.0)
