"""What the steps are about and what they leave: examples, outputs, results, and the overviews of each step.

Overviews nest by value: an aggregation's holds its evaluations', which hold their runs'.
"""

import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Generic, TypeVar
from uuid import uuid4

from assay.formats.intelligence_layer.types import Input, ModelRecord, Output
from assay.sdk import JsonObject

ExpectedOutput = TypeVar("ExpectedOutput")
"""What the output of a task is compared with: a label, a golden answer, None."""
Evaluation = TypeVar("Evaluation")
AggregatedEvaluation = TypeVar("AggregatedEvaluation")


def new_id() -> str:
    return str(uuid4())


class ShownByText(ModelRecord):
    """A record that shows itself by a text with its fields."""

    _text: ClassVar[str]

    def __str__(self) -> str:
        return self._text.format(self)

    __repr__ = __str__


@dataclass(kw_only=True, repr=False)
class Example(ShownByText, Generic[Input, ExpectedOutput]):
    """An input for a task and what is expected of its output; both must be given and may be None."""

    input: Input
    expected_output: ExpectedOutput
    id: str = field(default_factory=new_id)
    metadata: JsonObject | None = None
    _text = "Example ID = {0.id}\nInput = {0.input}\nExpected output = {0.expected_output}\nMetadata = {0.metadata}\n"


@dataclass(kw_only=True, repr=False)
class Dataset(ShownByText):
    """What a set of examples is called; the examples themselves never change."""

    id: str = field(default_factory=new_id)
    name: str
    labels: set[str] = field(default_factory=set[str])
    metadata: JsonObject = field(default_factory=JsonObject)
    _text = "Dataset ID = {0.id}\nName = {0.name}\nLabels = {0.labels}\nMetadata = {0.metadata}"


@dataclass(kw_only=True)
class FailedExampleRun(ModelRecord):
    """Stands in an ExampleOutput for the output that a task did not give."""

    error_message: str

    @staticmethod
    def from_exception(exception: BaseException) -> "FailedExampleRun":
        """Type, message and traceback of what the task raised."""
        trace = "".join(traceback.format_exception(exception))
        return FailedExampleRun(
            error_message=f"{type(exception).__qualname__}: {exception}\n{trace}"
        )


@dataclass(kw_only=True, repr=False)
class ExampleOutput(ShownByText, Generic[Output]):
    """What a task gave for one example, or why it gave nothing."""

    run_id: str
    example_id: str
    output: Output | FailedExampleRun
    _text = 'Example ID={0.example_id}\nRelated Run ID={0.run_id}\nOutput="{0.output}"\n'


@dataclass(kw_only=True, repr=False)
class SuccessfulExampleOutput(ShownByText, Generic[Output]):
    """An ExampleOutput that is not a failure: what evaluation logics are given."""

    run_id: str
    example_id: str
    output: Output
    _text = 'Run ID = {0.run_id}\nExample ID = {0.example_id}\nOutput = "{0.output}"\n'


@dataclass(kw_only=True, frozen=True, repr=False)
class RunOverview(ShownByText):
    """What was run on which dataset, when, and how many examples gave an output."""

    dataset_id: str
    id: str
    start: datetime
    end: datetime
    failed_example_count: int
    successful_example_count: int
    description: str
    labels: set[str] = field(default_factory=set[str])
    metadata: JsonObject = field(default_factory=JsonObject)
    _text = (
        "Run Overview ID = {0.id}\n"
        "Dataset ID = {0.dataset_id}\n"
        "Start time = {0.start}\n"
        "End time = {0.end}\n"
        "Failed example count = {0.failed_example_count}\n"
        "Successful example count = {0.successful_example_count}\n"
        'Description = "{0.description}"\n'
        'Labels = "{0.labels}"\n'
        'Metadata = "{0.metadata}"\n'
    )

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(kw_only=True)
class RecoveryData(ModelRecord):
    """Which run was begun and not finished, and the examples that need not be run again."""

    run_id: str
    finished_examples: list[str] = field(default_factory=list[str])


def chosen_fields(
    what: str, description: str | None, labels: Iterable[str] | None, metadata: JsonObject | None
) -> JsonObject:
    """Return the fields of an overview that its caller chose; `what` is the step's own description."""
    return {
        "description": f"{what} : {description}" if description else what,
        "labels": set(labels or ()),
        "metadata": dict(metadata or {}),
    }


def in_order(runs: Iterable[RunOverview]) -> list[RunOverview]:
    """In the order of their start: overviews of evaluations hold runs as a set."""
    return sorted(runs, key=lambda run: (run.start, run.id))


@dataclass(kw_only=True)
class FailedExampleEvaluation(ModelRecord):
    """What a logic raised: the exception's type, its message and its traceback."""

    error_message: str

    @staticmethod
    def from_exception(exception: Exception) -> "FailedExampleEvaluation":
        trace = "".join(traceback.format_exception(exception))
        return FailedExampleEvaluation(error_message=f"{type(exception)}: {exception}\n{trace}")


@dataclass(kw_only=True)
class ExampleEvaluation(ShownByText, Generic[Evaluation]):
    """The result for one example: what the logic gave, or why it gave nothing."""

    evaluation_id: str
    example_id: str
    result: Evaluation | FailedExampleEvaluation
    _text = "Evaluation ID = {0.evaluation_id}\nExample ID = {0.example_id}\nResult = {0.result}\n"


@dataclass(frozen=True, kw_only=True)
class EvaluationOverview(ShownByText):
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
    metadata: JsonObject = field(default_factory=JsonObject)
    skipped_evaluation_count: int | None = None
    _text = (
        "Evaluation Overview ID = {0.id}\n"
        "Start time = {0.start_date}\n"
        "End time = {0.end_date}\n"
        "Successful examples = {0.successful_evaluation_count}\n"
        "Failed examples = {0.failed_evaluation_count}\n"
        'Description = "{0.description}"\n'
        "Labels = {0.labels}\n"
        "Metadata = {0.metadata}\n"
        "{0._runs}"
    )

    @property
    def _runs(self) -> str:
        runs = sorted(self.run_overviews, key=lambda run: run.id)
        return "Run Overviews={\n" + ", ".join(str(run) for run in runs) + "}\n"

    def __hash__(self) -> int:
        return hash(self.id)


class EvaluationFailed(Exception):
    """Raised for callers that want no result at all where some examples could not be evaluated."""

    def __init__(self, evaluation_id: str, failed_count: int) -> None:
        super().__init__(f"Evaluation {evaluation_id} failed with {failed_count} failed examples.")
        self.evaluation_id = evaluation_id
        self.failed_count = failed_count


@dataclass(frozen=True, kw_only=True, repr=False)
class AggregationOverview(ShownByText, Generic[AggregatedEvaluation]):
    evaluation_overviews: frozenset[EvaluationOverview]
    id: str
    start: datetime
    end: datetime
    successful_evaluation_count: int
    crashed_during_evaluation_count: int
    description: str
    statistics: AggregatedEvaluation
    labels: set[str] = field(default_factory=set[str])
    metadata: JsonObject = field(default_factory=JsonObject)

    @property
    def run_ids(self) -> Sequence[str]:
        return [overview.id for overview in self.run_overviews()]

    def run_overviews(self) -> Iterable[RunOverview]:
        """The runs behind all evaluations, each once, in the order of their start."""
        return in_order(
            {run for evaluation in self.evaluation_overviews for run in evaluation.run_overviews}
        )

    @property
    def failed_evaluation_count(self) -> int:
        """Examples without a result: those whose evaluation crashed, and those left out because a run failed on them.
        Evaluations that did not count the latter, such as the original's, are taken to have left out each failure."""
        skipped = sum(
            overview.skipped_evaluation_count or 0 for overview in self.evaluation_overviews
        )
        uncounted: set[RunOverview] = set()
        for overview in self.evaluation_overviews:
            if overview.skipped_evaluation_count is None:
                uncounted |= overview.run_overviews
        return (
            self.crashed_during_evaluation_count
            + skipped
            + sum(run.failed_example_count for run in uncounted)
        )

    def raise_on_evaluation_failure(self) -> None:
        if self.crashed_during_evaluation_count > 0:
            raise EvaluationFailed(self.id, self.crashed_during_evaluation_count)

    @property
    def evaluation_ids(self) -> list[str]:
        return sorted(overview.id for overview in self.evaluation_overviews)

    _text = (
        "Aggregation Overview ID = {0.id}\n"
        "Start time = {0.start}\n"
        "End time = {0.end}\n"
        "Successful example count = {0.successful_evaluation_count}\n"
        "Count of examples crashed during evaluation = {0.crashed_during_evaluation_count}\n"
        "Count of examples without a result = {0.failed_evaluation_count}\n"
        'Description = "{0.description}"\n'
        "Labels = {0.labels}\n"
        "Metadata = {0.metadata}\n"
        "IDs of aggregated Evaluation Overviews = {0.evaluation_ids}\n"
        "IDs of aggregated Run Overviews = {0.run_ids}\n"
        "Statistics = {{\n{0.statistics}\n}}\n"
    )

    def __hash__(self) -> int:
        return hash(self.id)
