"""What the steps are about and what they leave: examples, outputs, results, and the overviews of each step.

Overviews nest by value: an aggregation's holds its evaluations', which hold their runs'.
"""

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import uuid4

from assay.formats.intelligence_layer.types import Input, Output, Record, tree

ExpectedOutput = TypeVar("ExpectedOutput")
"""What the output of a task is compared with: a label, a golden answer, None."""
Evaluation = TypeVar("Evaluation")
AggregatedEvaluation = TypeVar("AggregatedEvaluation")


def new_id() -> str:
    return str(uuid4())


@dataclass(kw_only=True, repr=False)
class Example(Record, Generic[Input, ExpectedOutput]):
    """An input for a task and what is expected of its output; both must be given and may be None."""

    input: Input
    expected_output: ExpectedOutput
    id: str = field(default_factory=new_id)
    metadata: dict[str, Any] | None = None

    def __str__(self) -> str:
        return (
            f"Example ID = {self.id}\n"
            f"Input = {self.input}\n"
            f"Expected output = {self.expected_output}\n"
            f"Metadata = {self.metadata}\n"
        )

    __repr__ = __str__

    def _rich_render(self) -> Any:
        parts = [tree("Input", str(self.input)), tree("Expected Output", str(self.expected_output))]
        metadata = [tree("Metadata", str(self.metadata))] if self.metadata else []
        return tree(f"Example: {self.id}", *parts, *metadata)


@dataclass(kw_only=True, repr=False)
class Dataset(Record):
    """What a set of examples is called; the examples themselves never change."""

    id: str = field(default_factory=new_id)
    name: str
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"Dataset ID = {self.id}\nName = {self.name}\nLabels = {self.labels}\nMetadata = {self.metadata}"

    __repr__ = __str__


@dataclass(kw_only=True)
class FailedExampleRun(Record):
    """Stands in an ExampleOutput for the output that a task did not give."""

    error_message: str

    @staticmethod
    def from_exception(exception: BaseException) -> "FailedExampleRun":
        """Type, message and traceback of what the task raised."""
        trace = "".join(traceback.format_exception(exception))
        return FailedExampleRun(error_message=f"{type(exception).__qualname__}: {exception}\n{trace}")


@dataclass(kw_only=True, repr=False)
class ExampleOutput(Record, Generic[Output]):
    """What a task gave for one example, or why it gave nothing."""

    run_id: str
    example_id: str
    output: Output | FailedExampleRun

    def __str__(self) -> str:
        return f'Example ID={self.example_id}\nRelated Run ID={self.run_id}\nOutput="{self.output}"\n'

    __repr__ = __str__

    def _rich_render(self, skip_example_id: bool = False) -> Any:
        return _tree(f"Output: {self.run_id}", None if skip_example_id else self.example_id, self.output)


@dataclass(kw_only=True, repr=False)
class SuccessfulExampleOutput(Record, Generic[Output]):
    """An ExampleOutput that is not a failure: what evaluation logics are given."""

    run_id: str
    example_id: str
    output: Output

    def __str__(self) -> str:
        return f'Run ID = {self.run_id}\nExample ID = {self.example_id}\nOutput = "{self.output}"\n'

    __repr__ = __str__


@dataclass(kw_only=True, frozen=True, repr=False)
class RunOverview(Record):
    """What was run on which dataset, when, and how many examples gave an output."""

    dataset_id: str
    id: str
    start: datetime
    end: datetime
    failed_example_count: int
    successful_example_count: int
    description: str
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return (
            f"Run Overview ID = {self.id}\n"
            f"Dataset ID = {self.dataset_id}\n"
            f"Start time = {self.start}\n"
            f"End time = {self.end}\n"
            f"Failed example count = {self.failed_example_count}\n"
            f"Successful example count = {self.successful_example_count}\n"
            f'Description = "{self.description}"\n'
            f'Labels = "{self.labels}"\n'
            f'Metadata = "{self.metadata}"\n'
        )

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(kw_only=True)
class RecoveryData(Record):
    """Which run was begun and not finished, and the examples that need not be run again."""

    run_id: str
    finished_examples: list[str] = field(default_factory=list[str])


def in_order(runs: Iterable[RunOverview]) -> list[RunOverview]:
    """In the order of their start: overviews of evaluations hold runs as a set."""
    return sorted(runs, key=lambda run: (run.start, run.id))


@dataclass(kw_only=True)
class FailedExampleEvaluation(Record):
    """What a logic raised: the exception's type, its message and its traceback."""

    error_message: str

    @staticmethod
    def from_exception(exception: Exception) -> "FailedExampleEvaluation":
        trace = "".join(traceback.format_exception(exception))
        return FailedExampleEvaluation(error_message=f"{type(exception)}: {exception}\n{trace}")


@dataclass(kw_only=True)
class ExampleEvaluation(Record, Generic[Evaluation]):
    """The result for one example: what the logic gave, or why it gave nothing."""

    evaluation_id: str
    example_id: str
    result: Evaluation | FailedExampleEvaluation

    def __str__(self) -> str:
        return f"Evaluation ID = {self.evaluation_id}\nExample ID = {self.example_id}\nResult = {self.result}\n"

    def _rich_render(self, skip_example_id: bool = False) -> Any:
        return _tree(f"Evaluation: {self.evaluation_id}", None if skip_example_id else self.example_id, self.result)


@dataclass(frozen=True, kw_only=True)
class PartialEvaluationOverview(Record):
    """An evaluation that was handed to somebody else and whose results are not back yet."""

    run_overviews: frozenset[RunOverview]
    id: str
    start_date: datetime
    submitted_evaluation_count: int
    description: str
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return (
            f"Evaluation Overview ID = {self.id}\n"
            f"Start time = {self.start_date}\n"
            f"Submitted Evaluations = {self.submitted_evaluation_count}\n"
            f'Description = "{self.description}"\n'
            f"Labels = {self.labels}\n"
            f"Metadata = {self.metadata}\n"
            f"{_shown(self.run_overviews)}"
        )

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, kw_only=True)
class EvaluationOverview(Record):
    """A finished evaluation. Failed runs are not failed evaluations: `skipped_evaluation_count` says for how many
    examples the logic was not asked because a run had failed; None where that was not counted."""

    run_overviews: frozenset[RunOverview]
    id: str
    start_date: datetime
    end_date: datetime
    successful_evaluation_count: int
    failed_evaluation_count: int
    description: str
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    skipped_evaluation_count: int | None = None

    def __str__(self) -> str:
        return (
            f"Evaluation Overview ID = {self.id}\n"
            f"Start time = {self.start_date}\n"
            f"End time = {self.end_date}\n"
            f"Successful examples = {self.successful_evaluation_count}\n"
            f"Failed examples = {self.failed_evaluation_count}\n"
            f'Description = "{self.description}"\n'
            f"Labels = {self.labels}\n"
            f"Metadata = {self.metadata}\n"
            f"{_shown(self.run_overviews)}"
        )

    def __hash__(self) -> int:
        return hash(self.id)


class EvaluationFailed(Exception):
    """Raised for callers that want no result at all where some examples could not be evaluated."""

    def __init__(self, evaluation_id: str, failed_count: int) -> None:
        super().__init__(f"Evaluation {evaluation_id} failed with {failed_count} failed examples.")
        self.evaluation_id = evaluation_id
        self.failed_count = failed_count


def _shown(runs: frozenset[RunOverview]) -> str:
    return "Run Overviews={\n" + ", ".join(str(run) for run in sorted(runs, key=lambda run: run.id)) + "}\n"


def _tree(title: str, example_id: str | None, value: Any) -> Any:
    return tree(title, *([] if example_id is None else [f"Example ID: {example_id}"]), str(value))
