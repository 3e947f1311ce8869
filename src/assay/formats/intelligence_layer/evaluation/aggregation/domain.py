"""What an aggregation leaves: the statistics, with the overviews of all that they were made from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from assay.formats.intelligence_layer.evaluation.evaluation.domain import EvaluationFailed, EvaluationOverview
from assay.formats.intelligence_layer.evaluation.run.domain import RunOverview, in_order
from assay.formats.intelligence_layer.record import Record

AggregatedEvaluation = TypeVar("AggregatedEvaluation")


@dataclass(frozen=True, kw_only=True, repr=False)
class AggregationOverview(Record, Generic[AggregatedEvaluation]):
    evaluation_overviews: frozenset[EvaluationOverview]
    id: str
    start: datetime
    end: datetime
    successful_evaluation_count: int
    crashed_during_evaluation_count: int
    description: str
    statistics: AggregatedEvaluation
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def run_ids(self) -> Sequence[str]:
        return [overview.id for overview in self.run_overviews()]

    def run_overviews(self) -> Iterable[RunOverview]:
        """The runs behind all evaluations, each once, in the order of their start."""
        return in_order({run for evaluation in self.evaluation_overviews for run in evaluation.run_overviews})

    @property
    def failed_evaluation_count(self) -> int:
        """Examples without a result: those whose evaluation crashed, and those left out because a run failed on them.
        Evaluations that did not count the latter, such as the original's, are taken to have left out each failure."""
        counted = [each for each in self.evaluation_overviews if each.skipped_evaluation_count is not None]
        skipped = sum(each.skipped_evaluation_count or 0 for each in counted)
        others = {run for each in self.evaluation_overviews if each not in counted for run in each.run_overviews}
        return self.crashed_during_evaluation_count + skipped + sum(run.failed_example_count for run in others)

    def raise_on_evaluation_failure(self) -> None:
        if self.crashed_during_evaluation_count > 0:
            raise EvaluationFailed(self.id, self.crashed_during_evaluation_count)

    def __str__(self) -> str:
        return (
            f"Aggregation Overview ID = {self.id}\n"
            f"Start time = {self.start}\n"
            f"End time = {self.end}\n"
            f"Successful example count = {self.successful_evaluation_count}\n"
            f"Count of examples crashed during evaluation = {self.crashed_during_evaluation_count}\n"
            f"Count of examples without a result = {self.failed_evaluation_count}\n"
            f'Description = "{self.description}"\n'
            f"Labels = {self.labels}\n"
            f"Metadata = {self.metadata}\n"
            f"IDs of aggregated Evaluation Overviews = {sorted(each.id for each in self.evaluation_overviews)}\n"
            f"IDs of aggregated Run Overviews = {self.run_ids}\n"
            f"Statistics = {{\n{self.statistics}\n}}\n"
        )

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self.id)
