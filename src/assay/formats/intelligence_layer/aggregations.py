"""Aggregations: what every repository of them can do, those in one of our stores, and the original's layout,
`aggregations/<id>.json`. In our stores the overview stands in the manifest and its numbers are rows of
`metrics.jsonl`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic

from assay.formats.intelligence_layer.domain import (
    AggregatedEvaluation,
    EvaluationFailed,
    EvaluationOverview,
    RunOverview,
    in_order,
)
from assay.formats.intelligence_layer.evaluation_rows import LABEL
from assay.formats.intelligence_layer.original import (
    FileStore,
    HuggingFaceRepository,
    LocalFileSystem,
    OriginalStore,
    manifests,
)
from assay.formats.intelligence_layer.types import Record, from_json, to_json
from assay.interfaces import Store
from assay.records import Manifest, MetricRow
from assay.store.repositories import AggregationRepository as Aggregations
from assay.store.stores import MemoryStore


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


class AggregationRepository(ABC):
    @abstractmethod
    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None: ...

    @abstractmethod
    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        """The overview with statistics of this type; a ValueError (pydantic's for its models) if they are not."""

    def aggregation_overviews(
        self, aggregation_type: type[AggregatedEvaluation]
    ) -> Iterable[AggregationOverview[AggregatedEvaluation]]:
        """All overviews, sorted by id."""
        for aggregation_id in self.aggregation_overview_ids():
            overview = self.aggregation_overview(aggregation_id, aggregation_type)
            if overview is not None:
                yield overview

    @abstractmethod
    def aggregation_overview_ids(self) -> Sequence[str]:
        """The ids of all overviews, sorted."""


class StoredAggregationRepository(AggregationRepository):
    def __init__(self, store: Store) -> None:
        self.store = store

    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        overview = aggregation_overview
        manifest = self.store.manifest("aggregation", overview.id) or self._written(overview)
        manifest.name = overview.description
        manifest.started, manifest.ended = overview.start.timestamp(), overview.end.timestamp()
        manifest.labels = sorted(overview.labels)
        manifest.metadata = to_json(overview.metadata)
        manifest.plan["overview"] = to_json(overview)
        self.store.put_manifest(manifest)

    def _written(self, overview: AggregationOverview[Any]) -> Manifest:
        """The manifest of an aggregation that the engine did not make, with its rows."""
        rows: list[MetricRow] = [
            {
                "metric_name": name,
                "metric_type": type(overview.statistics).__name__,
                "facets": [],
                "label": LABEL,
                "value": value,
                "scored_count": overview.successful_evaluation_count,
                "errored_count": overview.crashed_during_evaluation_count,
            }
            for name, value in numbers_of(overview.statistics)
        ]
        Aggregations(self.store).write(overview.id, rows)
        return Manifest(
            kind="aggregation",
            id=overview.id,
            created=overview.start.timestamp(),
            complete=True,
            planned=len(rows),
            counts={"metrics": len(rows), "evaluations": overview.successful_evaluation_count},
            inputs=[{"kind": "evaluation", "id": each} for each in sorted(x.id for x in overview.evaluation_overviews)],
            segments=self.store.log("aggregation", overview.id).segments(),
        )

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        manifest = self.store.manifest("aggregation", aggregation_id)
        stored = manifest.plan.get("overview") if manifest else None
        return None if stored is None else overview_of(stored, aggregation_type)

    def aggregation_overview_ids(self) -> Sequence[str]:
        return [manifest.id for manifest in manifests(self.store, "aggregation") if "overview" in manifest.plan]


def overview_of(
    stored: dict[str, Any], aggregation_type: type[AggregatedEvaluation]
) -> AggregationOverview[AggregatedEvaluation]:
    """The overview of a JSON value. Its statistics are read by themselves, as they may be of any kind of type."""
    overview: Any = from_json({**stored, "statistics": None}, AggregationOverview[None])
    object.__setattr__(overview, "statistics", from_json(stored["statistics"], aggregation_type))
    return overview


def numbers_of(statistics: Any) -> Iterator[tuple[str, float]]:
    """The numbers in statistics by the way to them: `scores.some-run.elo`."""
    return _numbers(to_json(statistics), "")


def _numbers(value: Any, way: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{way}.{key}" if way else str(key))
    elif isinstance(value, (int, float)):
        yield way or "value", float(value)


class FileSystemAggregationRepository(StoredAggregationRepository):
    """In the original's layout."""

    def __init__(self, file_system: Any, root_directory: Path) -> None:
        super().__init__(OriginalStore(file_system, Path(root_directory), "aggregation"))


class FileAggregationRepository(StoredAggregationRepository):
    def __init__(self, root_directory: Path) -> None:
        original = OriginalStore(LocalFileSystem(), Path(root_directory), "aggregation")
        super().__init__(FileStore(root_directory, original))


class HuggingFaceAggregationRepository(HuggingFaceRepository, FileSystemAggregationRepository):
    def __init__(self, repository_id: str, token: str, private: bool) -> None:
        HuggingFaceRepository.__init__(self, repository_id, token, private)
        FileSystemAggregationRepository.__init__(self, self._file_system, self._root_directory)


class InMemoryAggregationRepository(StoredAggregationRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())
