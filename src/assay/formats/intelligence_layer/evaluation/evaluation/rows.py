"""Results of examples ⇄ our evaluation rows.

A result is one row whose `value` it is. Matches are a row each, with players and payoff as everywhere in Assay, so that
`assay rank` reads them; the first of these rows has the whole value. A later row with the key of an earlier one
replaces it: the key is the example, and for a single match its players as well.
"""

import time
from typing import Any
from uuid import uuid4

import msgspec

from assay.formats.intelligence_layer.evaluation.evaluation.comparison import ComparisonEvaluation, Matches
from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    ExampleEvaluation,
    FailedExampleEvaluation,
)
from assay.formats.intelligence_layer.types import from_json, to_json
from assay.records import Evaluation as Row
from assay.store.keys import canonical, digest

LABEL = "evaluation"


class StoredResult(msgspec.Struct, gc=False):
    """What is needed of a row to have the result again."""

    item_id: str
    key: str = ""
    part: tuple[int, int] = (0, 1)
    outcome: str = "scored"
    error: str | None = None
    value: Any = None


def rows_of(example_evaluation: ExampleEvaluation[Any]) -> list[Row]:
    """The rows of one result, which belong into one commit."""
    result = example_evaluation.result
    if isinstance(result, FailedExampleEvaluation):
        key = uuid4().hex  # each failure is kept: several records of one example may fail
        row = Row(item_id=example_evaluation.example_id, label=LABEL, scorer=LABEL, key=key, timestamp=time.time())
        row.outcome, row.error, row.error_kind = "errored", result.error_message, "permanent"
        return [row]
    matches = _matches(result)
    apart = (result.first_player, result.second_player) if isinstance(result, ComparisonEvaluation) else None
    key = digest("intelligence-layer", canonical((example_evaluation.example_id, apart))).hex()
    rows: list[Row] = []
    for number in range(max(1, len(matches))):
        row = Row(item_id=example_evaluation.example_id, label=LABEL, scorer=LABEL, key=key, timestamp=time.time())
        row.part = number, max(1, len(matches))
        row.value = to_json(result) if number == 0 else None
        if matches:
            row.players, row.score = _played(matches[number])
            row.passed = row.score > 0.5
            row.model_name = " vs ".join(row.players)
        rows.append(row)
    return rows


def result_of(
    row: StoredResult, evaluation_id: str, evaluation_type: type[Evaluation]
) -> ExampleEvaluation[Evaluation]:
    """The result again; a ValueError (pydantic's for its models) if it is not of this type."""
    if row.outcome == "errored":
        result: Any = FailedExampleEvaluation(error_message=row.error or "")
    else:
        result = from_json(row.value, evaluation_type)
    return ExampleEvaluation(evaluation_id=evaluation_id, example_id=row.item_id, result=result)


def _matches(result: Any) -> list[ComparisonEvaluation]:
    if isinstance(result, Matches):
        return list(result.comparison_evaluations)
    return [result] if isinstance(result, ComparisonEvaluation) else []


def _played(match: ComparisonEvaluation) -> tuple[tuple[str, str], float]:
    """The players in canonical order, and the payoff of the first of them."""
    first, second = match.first_player, match.second_player
    if first <= second:
        return (first, second), match.outcome.payoff[0]
    return (second, first), match.outcome.payoff[1]
