"""What scorers of many cases at a time share: a case that cannot be scored must not cost the others their scores."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from assay.interfaces import Score
from assay.records import Item, Response
from assay.text.answers import Unparsed, answer_of
from assay.text.expected import accepted


class Case(Protocol):
    """An item and its response, as the engine hands them to a batch."""

    item: Item
    responses: list[Response]


class Pair(NamedTuple):
    """An answer and what it is compared with."""

    answer: str
    references: list[str]


def pairs(
    cases: Sequence[Case], expected: str | None, response_field: str | None, strip_reasoning: bool
) -> list[Pair | Score]:
    """The texts of each case, or why it has none."""
    made: list[Pair | Score] = []
    for case in cases:
        try:
            references = accepted(case.item.ground_truth, expected)
            made.append(Pair(answer_of(case.responses[0], response_field, strip_reasoning), references))
        except Unparsed as error:
            made.append(Score(outcome="unparsed", error=str(error)))
        except LookupError as error:
            made.append(failed(error))
    return made


def failed(error: LookupError) -> Score:
    """An error row, worded as the engine words what a scorer raises."""
    return Score(outcome="errored", error=f"{type(error).__name__}: {error}")
