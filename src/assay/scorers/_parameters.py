"""The parameters that scorers share, described once (see `assay.parameters`), and what they mean for a response."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, Protocol

from msgspec import Meta, Struct

from assay.scorers._retrieved import Words, grades, relevant, retrieved
from assay.sdk import Item, Response, Score
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted
from assay.text.normalise import Normalisation

LONGEST = 200_000  # letters of a text that is measured against another
P = ParamSpec("P")


def reads_answer(function: Callable[P, Score]) -> Callable[P, Score]:
    """Return the scorer as one to which an answer that does not hold what is looked for is unparsed."""

    @wraps(function)
    def scored(*args: P.args, **params: P.kwargs) -> Score:
        try:
            return function(*args, **params)
        except Unparsed as error:
            return unparsed_score(error)

    return scored


def unparsed_score(error: Exception) -> Score:
    return Score(outcome="unparsed", error=str(error))


def field_of(item: Item, name: str, kind: type) -> Any:
    """Return what stands under a name anywhere in an item, if it is of this kind; None if nothing is."""
    for place in (item.data, item.ground_truth, item.extra, item.metadata):
        if isinstance(place, dict) and isinstance(place.get(name), kind):
            return place[name]
    return None


def verdict(passed: bool, **details: Any) -> Score:
    """Return a label whose score is 1 or 0."""
    return Score(passed=passed, score=float(passed), details=details)


class Pair(NamedTuple):
    """An answer and what it is compared with."""

    answer: str
    references: list[str]


class Answered(Struct, frozen=True):
    """Which part of a response is the answer.

    Parameters:
    response_field: use only this field (a dotted path) of the JSON in the answer
    strip_reasoning: look only at what follows `</think>`
    documents: the field that has the passages, such as `item.data.context`; by default a usual one
    """

    response_field: str | None = None
    strip_reasoning: bool = True

    def answer(self, response: Response) -> str:
        """Its text; Unparsed if it has no such field."""
        return answer_of(response, self.response_field, self.strip_reasoning)


class Texts(Answered, frozen=True):
    """An answer that is compared with the accepted ones.

    Parameters:
    expected: the field of the ground truth that has the accepted answers
    expected_content: the answer itself, for all items
    normalize: how both sides are made comparable; see [exact_match](#exact_match)
    case_sensitive: with `none`, whether case counts
    strip_whitespace: with `none`, whether whitespace around the text is dropped
    stemming: compare the stems of English words (Porter 1980); `nltk` with the changes of the NLTK package
    threshold: the least score that passes, 0 for any above 0; without it a label is only a score
    """

    expected: str | None = None

    def references(self, item: Item) -> list[str]:
        return accepted(item.ground_truth, self.expected)

    def pair(self, item: Item, response: Response) -> Pair:
        """Both texts; Unparsed if the answer does not hold what is looked for."""
        references = self.references(item)
        return Pair(self.answer(response), references)


class Compared(Texts, frozen=True):
    """Texts that are made comparable first."""

    expected_content: str | None = None
    normalize: Normalisation = "none"
    case_sensitive: bool = True

    def references(self, item: Item) -> list[str]:
        return (
            super().references(item) if self.expected_content is None else [self.expected_content]
        )


class MeasuredTexts(Texts, frozen=True):
    """Texts whose likeness is a number. Measures cost more than their texts are long: what has more than `LONGEST`
    letters is an error."""

    threshold: float = 0.0

    def pair(self, item: Item, response: Response) -> Pair:
        pair = super().pair(item, response)
        longest = max(map(len, (pair.answer, *pair.references)))
        if longest > LONGEST:
            raise ValueError(
                f"a text of {longest:,} letters is too long: {LONGEST:,} can be compared"
            )
        return pair

    def scored(self, score: float, **details: Any) -> Score:
        return passing(score, self.threshold, **details)


def passing(score: float, threshold: float, **details: Any) -> Score:
    """A score that passes from the threshold on, and never at 0."""
    return Score(passed=score >= threshold and score > 0, score=score, details=details)


class RankedDocuments(Struct, frozen=True):
    """Documents that were retrieved, best first.

    Parameters:
    documents: the field that has the ranked documents, such as `response.output.docs`; by default a usual one
    relevant: the field of the ground truth that has the relevant ids, or ids and grades; by default a usual one
    k: how many documents count
    threshold: the least score that passes, 0 for any above 0; without it a label is only a score
    """

    documents: str | None = None
    relevant: str | None = None

    def grades(
        self, item: Item, response: Response, k: int | None
    ) -> tuple[list[float], dict[str, float]]:
        """The grade at each place of the ranking, and the grades of all relevant documents."""
        wanted = relevant(item, self.relevant)
        return grades(
            [document.id for document in retrieved(item, response, self.documents)], wanted, k
        ), wanted


class Encoded(MeasuredTexts, frozen=True, kw_only=True):
    """Texts that become vectors.

    Parameters:
    model: a folder with a model of the transformers library, or the name of one on the Hugging Face hub
    revision: the commit, tag or branch on the hub
    batch_size: how many texts go through the model at a time
    """

    model: str
    revision: str | None = None
    batch_size: Annotated[int, Meta(ge=1)] = 64


class Grounded(Answered, frozen=True):
    """How far retrieved passages support an answer.

    Parameters:
    method: how support is measured
    model: with `nli`, a folder with a model, or the name of one on the Hugging Face hub
    revision: with `nli`, the commit, tag or branch on the hub
    batch_size: with `nli`, how many passages go through the model at a time
    stopwords: with `token_overlap`, the words that do not count; by default English function words
    words: with `token_overlap`, runs of letters and digits, or `split` at spaces, so that "Paris." is not "Paris"
    """

    method: Literal["token_overlap", "nli"] = "token_overlap"
    documents: str | None = None
    words: Words = "plain"
    stopwords: list[str] | None = None
    model: str = ""
    revision: str | None = None
    batch_size: Annotated[int, Meta(ge=1)] = 16


# ---- many cases at a time: one that cannot be scored must not cost the others their scores


class ScorerCase(Protocol):
    """An item and its response, as the engine hands them to a batch."""

    item: Item
    responses: list[Response]


def pairs(cases: Sequence[ScorerCase], texts: Texts) -> list[Pair | Score]:
    """The texts of each case, or why it has none."""
    made: list[Pair | Score] = []
    for case in cases:
        try:
            made.append(texts.pair(case.item, case.responses[0]))
        except Unparsed as error:
            made.append(unparsed_score(error))
        except LookupError as error:
            made.append(error_score(error))
    return made


def texts_of(cases: Sequence[Pair | Score]) -> list[str]:
    """Return the texts of all cases that can be scored."""
    pairs = (pair for pair in cases if isinstance(pair, Pair))
    return [text for pair in pairs for text in (pair.answer, *pair.references)]


def error_score(error: LookupError) -> Score:
    """An error row, worded as the engine words what a scorer raises."""
    return Score(outcome="errored", error=f"{type(error).__name__}: {error}")
