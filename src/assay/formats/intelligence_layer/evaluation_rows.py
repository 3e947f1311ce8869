"""Results of examples ⇄ our evaluation rows, and a logic as a scorer that makes them.

A result is one commit of rows, whose first has it as `value`. A result with exactly one truth value or number has that
as verdict, so that `assay compare` and `assay gate` read it. Matches are a row each, with players and payoff as
everywhere in Assay, for `assay rank` and `assay trace`. A later result takes the place of an earlier one of the same
example, and for a single match of the same players.
"""

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import msgspec

from assay.engine.calls.stop import Stop
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.evaluate import Evaluator
from assay.errors import CallError, Interrupted, PermanentError, TransientError, UserError
from assay.formats.intelligence_layer.datasets import example_of
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    ExampleEvaluation,
    FailedExampleEvaluation,
    RunOverview,
    SuccessfulExampleOutput,
)
from assay.formats.intelligence_layer.elo import ComparisonEvaluation, Matches
from assay.formats.intelligence_layer.logics import EvaluationLogic, identity_of
from assay.formats.intelligence_layer.run_rows import value_of
from assay.formats.intelligence_layer.types import BadValue, from_json, to_json
from assay.interfaces import Score
from assay.records import Evaluation as Row
from assay.records import Item, Response
from assay.store.keys import canonical, digest
from assay.text.plain import plain

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
    part: tuple[int, int] = (0, 1)

    @property
    def has_value(self) -> bool:
        """Whether this is the first row of a result."""
        is_first = self.part[0] == 0 and self.detailed_results.get("match", 0) == 0
        return is_first and self.outcome != "skipped"

    @property
    def place(self) -> tuple[Any, ...]:
        """What a later result must share to take this one's place. Each failure is kept: several records of one
        example may fail."""
        if self.outcome == "errored":
            return (self.item_id, self.key)
        return (self.item_id,) if "match" in self.detailed_results else (self.item_id, self.players)


def scores_of(result: Any) -> list[Score]:
    """The labels of one result; a TypeError where JSON cannot hold it."""
    value = to_json(result)
    if isinstance(result, ComparisonEvaluation):
        scores = [_match(result, {})]
    elif isinstance(result, Matches) and result.comparison_evaluations:
        scores = [
            _match(match, {"match": number})
            for number, match in enumerate(result.comparison_evaluations)
        ]
    else:
        verdict = _verdict(value)
        is_truth = isinstance(verdict, bool)
        scores = [
            Score(
                passed=verdict if is_truth else None,
                score=None if verdict is None else float(verdict),
            )
        ]
    scores[0].value = value
    return scores


def _match(match: ComparisonEvaluation, details: dict[str, Any]) -> Score:
    return Score(
        score=match.outcome.payoff[0],
        players=(match.first_player, match.second_player),
        details=details,
    )


def _verdict(value: Any) -> bool | float | None:
    """The one truth value or number of a result, itself or in a field."""
    fields = value.values() if isinstance(value, dict) else [value]
    numbers = [field for field in fields if isinstance(field, (bool, int, float))]
    return numbers[0] if len(numbers) == 1 and numbers[0] - numbers[0] == 0 else None


def rows_of(example_evaluation: ExampleEvaluation[Any]) -> list[Row]:
    """The rows of a result that was not scored by the engine; they belong into one commit."""
    result = example_evaluation.result
    if isinstance(result, FailedExampleEvaluation):
        row = _row(
            example_evaluation, Score(outcome="errored", error=result.error_message), uuid4().hex
        )
        row.error_kind = "permanent"
        return [row]
    return [_row(example_evaluation, score) for score in scores_of(result)]


def rows_of_original(file: dict[str, Any]) -> list[Row]:
    """The rows of a result as the original wrote it; by their fields, matches are told from other results."""
    value = json.loads(file["json_result"])
    types = (FailedExampleEvaluation,) if file["is_exception"] else (ComparisonEvaluation, Matches)
    fields: set[str] = set(value) if isinstance(value, dict) else set()
    type = next((type for type in types if fields == type.__dataclass_fields__.keys()), Any)
    result = from_json(value, type)
    evaluation_id, example_id = file["evaluation_id"], file["example_id"]
    return rows_of(
        ExampleEvaluation(evaluation_id=evaluation_id, example_id=example_id, result=result)
    )


def _row(example_evaluation: ExampleEvaluation[Any], score: Score, *apart: str) -> Row:
    players, payoff, passed = score.players, score.score, score.passed
    # in canonical order, with the payoff of the first
    if players is not None and payoff is not None:
        if players[0] > players[1]:
            players, payoff = (players[1], players[0]), 1.0 - payoff
        passed = payoff > 0.5
    elif payoff is not None and passed is None:
        passed = payoff > 0
    parts = (example_evaluation.evaluation_id, example_evaluation.example_id, *(players or apart))
    return Row(
        item_id=example_evaluation.example_id,
        label=LABEL,
        model_name=" vs ".join(players or ()),
        passed=passed,
        score=payoff,
        detailed_results=score.details,
        timestamp=time.time(),
        key=digest("intelligence-layer", canonical(parts)).hex(),
        scorer=LABEL,
        outcome=score.outcome,
        error=score.error,
        value=score.value,
        players=players,
    )


def result_of(
    row: StoredResult, evaluation_id: str, evaluation_type: type[Evaluation]
) -> ExampleEvaluation[Evaluation]:
    """The result again; a ValueError (pydantic's for its models) if it is not of this type."""
    if row.outcome == "scored":
        result: Any = from_json(row.value, evaluation_type)
    else:
        result = FailedExampleEvaluation(error_message=row.error or "")
    return ExampleEvaluation(evaluation_id=evaluation_id, example_id=row.item_id, result=result)


class ExampleScorer:
    """The user's logic as one of the engine's scorers. `failure` is the first exception that ends the evaluation: its
    example has a transient error, so that it is evaluated again when the evaluation resumes. `keep` stores a result in
    a repository of the user's own; `earlier` has results by example that need not be made again."""

    def __init__(
        self,
        logic: EvaluationLogic[Any, Any, Any, Any],
        types: tuple[Any, Any, Any],
        *,
        abort: bool,
        keep: Callable[[str, Any], None] | None,
        earlier: Mapping[str, Any],
    ) -> None:
        self.stop = Stop()
        self.failure: BaseException | None = None
        self._logic = logic
        self._input_type, self._expected_output_type, self._output_type = types
        self._abort = abort
        self._keep = keep
        self._earlier = earlier

    def bound(self, skip_failures: bool, limit: int | None) -> BoundScorer:
        return BoundScorer(
            name=LABEL,
            function=self,
            params={},
            identity=digest("scorer", canonical((LABEL, identity_of(self._logic)))),
            form="together",
            mode="thread",
            reads="item",
            takes_context=False,
            player="run",
            skip_failures=skip_failures,
            takes_sides=True,
            limit=limit,
        )

    @contextmanager
    def raising(self, engine: Evaluator) -> Generator[None]:
        """Let the scorer stop this engine, and raise `failure` where it did."""
        engine.stop = self.stop
        try:
            yield
        except UserError as error:
            raise BadValue(error.what, where=error.where, fix=error.fix) from error
        except Interrupted:
            if self.failure is None:
                raise
        if self.failure is not None:
            raise self.failure

    def __call__(self, item: Item, *responses: Response, sides: Sequence[str]) -> list[Score]:
        """In a thread: the labels of one example; `sides` are the runs of the responses. What the logic raises is its
        row's error, unless it shall abort."""
        if self.failure is not None:  # raised while this example waited for its thread
            raise TransientError("stopped")
        if item.id in self._earlier:
            return scores_of(self._earlier[item.id])
        raised: CallError | None = None
        try:
            example = example_of(item, self._input_type, self._expected_output_type)
            outputs = [
                SuccessfulExampleOutput(
                    run_id=run, example_id=item.id, output=value_of(response, self._output_type)
                )
                for run, response in zip(sides, responses, strict=True)
            ]
            result: Any
            try:
                result = self._logic.do_evaluate(example, *outputs)
            except Exception as error:
                if self._abort:
                    raise
                result = failure_of(example.id, error)
                kind = TransientError if isinstance(error, TransientError) else PermanentError
                raised = kind(result.error_message)
            if self._keep is not None:
                self._keep(item.id, result)
            scores = scores_of(result)
        except (
            BaseException
        ) as error:  # handed over to the caller of `evaluate_runs`, who raises it
            self.failure = self.failure or error
            self.stop.request()
            raise TransientError("stopped") from None
        if raised is not None:
            raise raised
        return scores


def failure_of(example_id: str, error: Exception) -> FailedExampleEvaluation:
    """What a logic raised, as a result that is also printed."""
    print(
        plain(f'FAILED EVALUATION: example "{example_id}", {type(error).__qualname__}: "{error}"')
    )
    return FailedExampleEvaluation.from_exception(error)


def work_digest(
    runs: Sequence[RunOverview],
    logic: object,
    skip_example_on_any_failure: bool,
    num_examples: int | None,
) -> str:
    """What the results of an evaluation depend on: an unfinished one continues only if this is equal."""
    parts = {
        "runs": [to_json(run, order="deterministic") for run in runs],
        "logic": identity_of(logic),
        "skip": skip_example_on_any_failure,
        "examples": num_examples,
    }
    return digest("intelligence-layer-evaluation", canonical(parts)).hex()


def stray_output(run_id: str, example_id: str) -> BadValue:
    return BadValue(
        f"the ids of example and output do not match: the run {run_id!r} has an output for {example_id!r}, "
        "which is not an example of its dataset",
        fix="run the task again on this dataset",
    )
