"""What scorers of many cases at a time share: a case that cannot be scored must not cost the others their scores."""

from collections.abc import Sequence
from typing import Protocol

from assay.interfaces import Score
from assay.records import Item, Response
from assay.scorers._parameters import Pair, Texts


class Case(Protocol):
    """An item and its response, as the engine hands them to a batch."""

    item: Item
    responses: list[Response]


def pairs(cases: Sequence[Case], texts: Texts) -> list[Pair | Score]:
    """The texts of each case, or why it has none."""
    made: list[Pair | Score] = []
    for case in cases:
        try:
            made.append(texts.pair(case.item, case.responses[0]))
        except LookupError as error:
            made.append(failed(error))
    return made


def failed(error: LookupError) -> Score:
    """An error row, worded as the engine words what a scorer raises."""
    return Score(outcome="errored", error=f"{type(error).__name__}: {error}")
