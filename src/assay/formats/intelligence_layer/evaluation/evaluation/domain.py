"""What an evaluation leaves: one result for each example, and an overview that holds its runs' overviews by value."""

import traceback
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from assay.formats.intelligence_layer.evaluation.run.domain import RunOverview
from assay.formats.intelligence_layer.record import Record
from assay.text.plain import plain

if TYPE_CHECKING:
    from rich.tree import Tree

Evaluation = TypeVar("Evaluation")


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
    response_keys = dict[str, str]()  # of the rows that were evaluated, by run: no field

    def __str__(self) -> str:
        return f"Evaluation ID = {self.evaluation_id}\nExample ID = {self.example_id}\nResult = {self.result}\n"

    def _rich_render(self, skip_example_id: bool = False) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(f"Evaluation: {plain(self.evaluation_id)}"))
        if not skip_example_id:
            tree.add(Text(f"Example ID: {plain(self.example_id)}"))
        tree.add(Text(plain(str(self.result))))
        return tree


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
    """A finished evaluation. Failed runs are no failed evaluations: `skipped_evaluation_count` says for how many
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
    """Raised for whoever wants no result at all where some examples could not be evaluated."""

    def __init__(self, evaluation_id: str, failed_count: int) -> None:
        super().__init__(f"Evaluation {evaluation_id} failed with {failed_count} failed examples.")
        self.evaluation_id = evaluation_id
        self.failed_count = failed_count


def _shown(runs: frozenset[RunOverview]) -> str:
    return "Run Overviews={\n" + ", ".join(str(run) for run in sorted(runs, key=lambda run: run.id)) + "}\n"
