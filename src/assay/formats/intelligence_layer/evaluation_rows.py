"""Results of examples ⇄ our evaluation rows."""

import time
from typing import Any
from uuid import uuid4

import msgspec

from assay.formats.intelligence_layer.domain import Evaluation, ExampleEvaluation, FailedExampleEvaluation
from assay.formats.intelligence_layer.elo import ComparisonEvaluation, Matches
from assay.formats.intelligence_layer.types import from_json, to_json
from assay.records import Evaluation as Row
from assay.store.keys import canonical, digest

LABEL = "evaluation"


class StoredResult(msgspec.Struct, gc=False):
    """What is needed of a row to have the result again."""

    item_id: str
    key: str = ""
    outcome: str = "scored"
    error: str | None = None
    value: Any = None
    detailed_results: dict[str, Any] = {}
    players: tuple[str, str] | None = None

    @property
    def has_value(self) -> bool:
        """Whether this is the first row of a result."""
        return self.detailed_results.get("match", 0) == 0

    @property
    def place(self) -> tuple[Any, ...]:
        """What a later result must share to take this one's place. Each failure is kept: several records of one
        example may fail."""
        if self.outcome == "errored":
            return (self.item_id, self.key)
        return (self.item_id,) if "match" in self.detailed_results else (self.item_id, self.players)


def rows_of(example_evaluation: ExampleEvaluation[Any]) -> list[Row]:
    """The rows of one result, which belong into one commit."""
    result = example_evaluation.result
    if isinstance(result, FailedExampleEvaluation):
        row = _row(example_evaluation, uuid4().hex)
        row.outcome, row.error, row.error_kind = "errored", result.error_message, "permanent"
        return [row]
    if isinstance(result, ComparisonEvaluation):
        rows = [_played(example_evaluation, result)]
    elif isinstance(result, Matches) and result.comparison_evaluations:
        rows = [_played(example_evaluation, match) for match in result.comparison_evaluations]
        for number, row in enumerate(rows):
            row.detailed_results = {"match": number}
    else:
        rows = [_row(example_evaluation, "")]
    rows[0].value = to_json(result)
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


def _row(example_evaluation: ExampleEvaluation[Any], *apart: str) -> Row:
    parts = (example_evaluation.evaluation_id, example_evaluation.example_id, *apart)
    return Row(
        item_id=example_evaluation.example_id,
        label=LABEL,
        scorer=LABEL,
        timestamp=time.time(),
        key=digest("intelligence-layer", canonical(parts)).hex(),
        responses=list(example_evaluation.response_keys.values()),
    )


def _played(example_evaluation: ExampleEvaluation[Any], match: ComparisonEvaluation) -> Row:
    """The row of a match: players in canonical order, and the payoff of the first of them."""
    first, second, keys = match.first_player, match.second_player, example_evaluation.response_keys
    players = (first, second) if first <= second else (second, first)
    row = _row(example_evaluation, *players)
    row.players = players
    row.responses = [keys[player] for player in players if player in keys]
    row.model_name = " vs ".join(players)
    row.score = match.outcome.payoff[players != (first, second)]
    row.passed = row.score > 0.5
    return row
