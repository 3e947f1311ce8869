"""What scorers of many cases at a time share: a case that cannot be scored must not cost the others their scores."""

from collections.abc import Sequence
from typing import Protocol

from assay.interfaces import Score
from assay.records import Item, Response
from assay.scorers._parameters import Pair, Texts
from assay.text.answers import Unparsed


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
        except (LookupError, Unparsed) as error:
            made.append(failed(error))
    return made


def failed(error: LookupError | Unparsed) -> Score:
    """The row that the engine makes of what a scorer raises."""
    if isinstance(error, Unparsed):
        return Score(outcome="unparsed", error=str(error))
    return Score(outcome="errored", error=f"{type(error).__name__}: {error}")
