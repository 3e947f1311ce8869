"""Evaluations that continue earlier ones: a run that is added later meets the earlier ones."""

from abc import abstractmethod
from itertools import combinations
from typing import Any

from assay.formats.intelligence_layer.datasets import DatasetRepository
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    Example,
    ExpectedOutput,
    SuccessfulExampleOutput,
    in_order,
)
from assay.formats.intelligence_layer.elo import ComparisonEvaluation, Matches, MatchOutcome
from assay.formats.intelligence_layer.evaluations import EvaluationRepository
from assay.formats.intelligence_layer.evaluator import DEFAULT_MAX_WORKERS, Evaluator, Items
from assay.formats.intelligence_layer.logics import EvaluationLogic
from assay.formats.intelligence_layer.runs import RunRepository
from assay.formats.intelligence_layer.types import BadValue, Input, Output


class IncrementalEvaluationLogic(EvaluationLogic[Input, Output, ExpectedOutput, Evaluation]):
    """Implement `do_incremental_evaluate`."""

    def __init__(self) -> None:
        super().__init__()
        self._previous_run_output_ids: list[set[str]] = []
        self._previous_example_ids: list[set[str]] = []

    def set_previous_run_output_ids(self, previous_run_output_ids: list[set[str]]) -> None:
        """The runs that each earlier evaluation took together."""
        self._previous_run_output_ids = previous_run_output_ids
        self._previous_example_ids = []

    def set_previous_example_ids(self, previous_example_ids: list[set[str]]) -> None:
        """The examples for which each earlier evaluation has a result; without this, all of them."""
        self._previous_example_ids = previous_example_ids

    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        seen = [
            [each for each in output if each.run_id in runs] if self._has_result(number, example.id) else []
            for number, runs in enumerate(self._previous_run_output_ids)
        ]
        return self.do_incremental_evaluate(example, list(output), seen)

    @abstractmethod
    def do_incremental_evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        outputs: list[SuccessfulExampleOutput[Output]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[Output]]],
    ) -> Evaluation:
        """The result from all outputs; `already_evaluated_outputs` has those that each earlier evaluation saw."""

    def _has_result(self, number: int, example_id: str) -> bool:
        return not self._previous_example_ids or example_id in self._previous_example_ids[number]


class IncrementalEvaluator(Evaluator[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates additional runs together with those behind earlier evaluations; `evaluate_runs` evaluates as if there
    were no earlier ones."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        incremental_evaluation_logic: IncrementalEvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        *,
        max_workers: int = DEFAULT_MAX_WORKERS,
    ) -> None:
        super().__init__(
            dataset_repository,
            run_repository,
            evaluation_repository,
            description,
            incremental_evaluation_logic,
            max_workers=max_workers,
        )
        self._earlier: tuple[list[set[str]], list[set[str]]] = [], []

    def evaluate_additional_runs(
        self,
        *run_ids: str,
        previous_evaluation_ids: list[str] | None = None,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
        description: str | None = None,
        skip_example_on_any_failure: bool = True,
        items: Items = "refuse",
        retry_errors: bool = False,
    ) -> EvaluationOverview:
        """Evaluate these runs and the ones behind the earlier evaluations, which need not be named. The earlier runs
        come first, in the order of their start, so that old and new results together are those of one evaluation."""
        earlier: list[str] = []
        runs: list[set[str]] = []
        examples: list[set[str]] = []
        for evaluation_id in dict.fromkeys(previous_evaluation_ids or []):
            overview = self._evaluation_repository.evaluation_overview(evaluation_id)
            if overview is None:
                raise BadValue(f"there is no previous evaluation {evaluation_id!r}")
            behind = [run.id for run in in_order(overview.run_overviews)]
            done = self._evaluation_repository.successful_example_evaluations(evaluation_id, self.evaluation_type())
            earlier += behind
            runs.append(set(behind))
            examples.append({each.example_id for each in done})
        self._earlier = runs, examples
        try:
            return self.evaluate_runs(
                *(run for run in earlier if run not in run_ids),
                *run_ids,
                num_examples=num_examples,
                abort_on_error=abort_on_error,
                skip_example_on_any_failure=skip_example_on_any_failure,
                description=description,
                labels=labels,
                metadata=metadata,
                items=items,
                retry_errors=retry_errors,
            )
        finally:
            self._earlier = [], []

    def _prepare_logic(self) -> None:
        runs, examples = self._earlier
        self._evaluation_logic.set_previous_run_output_ids(runs)
        self._evaluation_logic.set_previous_example_ids(examples)


class EloEvaluationLogic(IncrementalEvaluationLogic[Input, Output, ExpectedOutput, Matches]):
    """Lets every two runs meet once on each example; implement `grade`. The run that was named first is the first
    player. Two runs that an earlier evaluation took together do not meet again."""

    def do_incremental_evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        outputs: list[SuccessfulExampleOutput[Output]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[Output]]],
    ) -> Matches:
        met = [{output.run_id for output in together} for together in already_evaluated_outputs]
        return Matches(
            comparison_evaluations=[
                ComparisonEvaluation(
                    first_player=first.run_id, second_player=second.run_id, outcome=self.grade(first, second, example)
                )
                for first, second in combinations(outputs, 2)
                if not any(first.run_id in runs and second.run_id in runs for runs in met)
            ]
        )

    @abstractmethod
    def grade(
        self,
        first: SuccessfulExampleOutput[Output],
        second: SuccessfulExampleOutput[Output],
        example: Example[Input, ExpectedOutput],
    ) -> MatchOutcome:
        """Who of the two is better on this example."""
