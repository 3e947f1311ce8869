"""What tests of evaluations share: repositories of a kind, tasks and logics, and runs made by hand."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from assay.formats.intelligence_layer.core import Task, TaskSpan
from assay.formats.intelligence_layer.evaluation import (
    AggregationLogic,
    AggregationRepository,
    Aggregator,
    DatasetRepository,
    EloEvaluationLogic,
    EvaluationRepository,
    Evaluator,
    Example,
    ExampleOutput,
    FailedExampleRun,
    FileAggregationRepository,
    FileDatasetRepository,
    FileEvaluationRepository,
    FileRunRepository,
    IncrementalEvaluator,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    MatchOutcome,
    Runner,
    RunOverview,
    RunRepository,
    SingleOutputEvaluationLogic,
    SuccessfulExampleOutput,
)

FAIL_IN_TASK = "fail in task"
FAIL_IN_EVALUATION = "fail in evaluation"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Upper(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == FAIL_IN_TASK:
            raise RuntimeError(input)
        return input.upper()


class Correct(BaseModel):
    correct: bool


class Equality(SingleOutputEvaluationLogic[str, str, str, Correct]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Correct:
        if example.input == FAIL_IN_EVALUATION:
            raise RuntimeError(f"cannot judge {output}")
        return Correct(correct=output == example.expected_output)


class Accuracy(BaseModel):
    share: float
    count: int


class CountCorrect(AggregationLogic[Correct, Accuracy]):
    def aggregate(self, evaluations: Iterable[Correct]) -> Accuracy:
        marks = [each.correct for each in evaluations]
        return Accuracy(share=sum(marks) / len(marks) if marks else 0.0, count=len(marks))


class Longer(EloEvaluationLogic[str, str, str]):
    """The longer output wins; every grading is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.graded: list[tuple[str, str, str]] = []

    def grade(
        self,
        first: SuccessfulExampleOutput[str],
        second: SuccessfulExampleOutput[str],
        example: Example[str, str],
    ) -> MatchOutcome:
        self.graded.append((example.id, first.run_id, second.run_id))
        if len(first.output) == len(second.output):
            return MatchOutcome.DRAW
        return (
            MatchOutcome.A_WINS if len(first.output) > len(second.output) else MatchOutcome.B_WINS
        )


class World:
    """The four repositories of one kind, with a dataset of examples whose ids are `e0`, `e1`, …"""

    def __init__(self, folder: Path | None) -> None:
        self.datasets: DatasetRepository = (
            FileDatasetRepository(folder) if folder else InMemoryDatasetRepository()
        )
        self.runs: RunRepository = FileRunRepository(folder) if folder else InMemoryRunRepository()
        self.evaluations: EvaluationRepository = (
            FileEvaluationRepository(folder) if folder else InMemoryEvaluationRepository()
        )
        self.aggregations: AggregationRepository = (
            FileAggregationRepository(folder) if folder else InMemoryAggregationRepository()
        )

    def dataset(self, *inputs: str, id: str | None = None) -> str:
        examples = [
            Example(input=text, expected_output=text.upper(), id=f"e{number}")
            for number, text in enumerate(inputs)
        ]
        return self.datasets.create_dataset(examples, "texts", id=id).id

    def ran(self, dataset_id: str, **options: Any) -> RunOverview:
        return Runner(Upper(), self.datasets, self.runs, "upper").run_dataset(dataset_id, **options)

    def run(
        self, run_id: str, dataset_id: str, outputs: dict[str, str | None], minutes: int = 0
    ) -> str:
        """A run with these outputs; None is a failure."""
        for example_id, output in outputs.items():
            value = FailedExampleRun(error_message="no") if output is None else output
            self.runs.store_example_output(
                ExampleOutput(run_id=run_id, example_id=example_id, output=value)
            )
        failed = sum(output is None for output in outputs.values())
        overview = RunOverview(
            dataset_id=dataset_id,
            id=run_id,
            start=NOON + timedelta(minutes=minutes),
            end=NOON + timedelta(minutes=minutes + 1),
            failed_example_count=failed,
            successful_example_count=len(outputs) - failed,
            description="by hand",
        )
        self.runs.store_run_overview(overview)
        return run_id

    def evaluator(self, logic: Any = None) -> Evaluator[Any, Any, Any, Any]:
        return Evaluator(
            self.datasets, self.runs, self.evaluations, "evaluator", logic or Equality()
        )

    def comparing(self, logic: Longer) -> IncrementalEvaluator[Any, Any, Any, Any]:
        return IncrementalEvaluator(self.datasets, self.runs, self.evaluations, "comparison", logic)

    def aggregator(self, logic: Any = None) -> Aggregator[Any, Any]:
        return Aggregator(
            self.evaluations, self.aggregations, "aggregator", logic or CountCorrect()
        )


def pairs(graded: Sequence[tuple[str, str, str]]) -> set[tuple[str, str]]:
    return {(first, second) for _, first, second in graded}
