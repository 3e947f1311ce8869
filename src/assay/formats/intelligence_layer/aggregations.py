"""The third step by the original's names: all results of one or several evaluations through one
logic, its numbers as metrics of Assay's engine; and repositories of what comes out. In our stores
the overview stands in the manifest and its numbers are rows of `metrics.jsonl`."""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any, Generic, TypeVar, final
from uuid import uuid4

import msgspec

from assay.engine.aggregate.aggregate import Aggregator as Engine
from assay.engine.aggregate.bind import BoundMetric
from assay.formats.intelligence_layer.datasets import StoreByKind
from assay.formats.intelligence_layer.domain import (
    AggregatedEvaluation,
    AggregationOverview,
    Evaluation,
    EvaluationOverview,
    FailedExampleEvaluation,
    chosen_fields,
)
from assay.formats.intelligence_layer.evaluations import (
    LABEL,
    EvaluationRepository,
    StoredEvaluationRepository,
    rows_of,
)
from assay.formats.intelligence_layer.logics import (
    AggregationLogic,
    arguments_of,
    identity_of,
    settled_type,
)
from assay.formats.intelligence_layer.original import FileStore, OriginalStore, manifests
from assay.formats.intelligence_layer.tracer import utc_now
from assay.formats.intelligence_layer.types import BadValue, T, from_json, numbers_in, to_json
from assay.sdk import Group, JsonObject, Kind, Manifest, MetricRow, Store, canonical, digest
from assay.store.repositories import AggregationRepository as Aggregations
from assay.store.seal import seal
from assay.store.stores import MemoryStore

Extracted = TypeVar("Extracted")


class Accumulator(ABC, Generic[T, Extracted]):
    @abstractmethod
    def add(self, value: T) -> None: ...

    @abstractmethod
    def extract(self) -> Extracted:
        """Return what the values so far come to."""


class MeanAccumulator(Accumulator[float, float]):
    """Mean and spread by Welford's updates: equal values have a spread of exactly 0. Nothing added
    is 0.0."""

    def __init__(self) -> None:
        self._n = 0
        self._mean = 0.0
        self._squares = 0.0  # of the distances to the mean

    def add(self, value: float) -> None:
        self._n += 1
        distance = value - self._mean
        self._mean += distance / self._n
        self._squares += distance * (value - self._mean)

    def extract(self) -> float:
        return self._mean

    def standard_deviation(self) -> float:
        """Of these values, not of a population that they were drawn from: divided by n."""
        return sqrt(self._squares / self._n) if self._n else 0.0

    def standard_error(self) -> float:
        return self.standard_deviation() / sqrt(self._n) if self._n > 1 else 0.0


class AggregationRepository(ABC):
    @abstractmethod
    def store_aggregation_overview(
        self, aggregation_overview: AggregationOverview[AggregatedEvaluation]
    ) -> None: ...

    @abstractmethod
    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        """The overview with statistics of this type; a ValueError (pydantic's for its models) if
        they are not."""

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

    def store_aggregation_overview(
        self, aggregation_overview: AggregationOverview[AggregatedEvaluation]
    ) -> None:
        overview = aggregation_overview
        manifest = self.store.manifest("aggregation", overview.id) or self._new_manifest(overview)
        manifest.name = overview.description
        manifest.started, manifest.ended = overview.start.timestamp(), overview.end.timestamp()
        manifest.labels = sorted(overview.labels)
        manifest.metadata = to_json(overview.metadata)
        manifest.plan["overview"] = to_json(overview)
        self.store.put_manifest(manifest)

    def _new_manifest(self, overview: AggregationOverview[Any]) -> Manifest:
        """The manifest of an aggregation that the engine did not make, with its rows."""
        rows: list[MetricRow] = [
            {
                "metric_name": name,
                "metric_type": type(overview.statistics).__name__,
                "facets": [],
                "label": LABEL,
                "value": float(value),
                "scored_count": overview.successful_evaluation_count,
                "errored_count": overview.crashed_during_evaluation_count,
            }
            for name, value in numbers_in(to_json(overview.statistics))
        ]
        Aggregations(self.store).write(overview.id, rows)
        manifest = Manifest(
            kind="aggregation",
            id=overview.id,
            created=overview.start.timestamp(),
            complete=True,
            planned=len(rows),
            counts={"metrics": len(rows), "evaluations": overview.successful_evaluation_count},
            inputs=[{"kind": "evaluation", "id": id} for id in overview.evaluation_ids],
        )
        seal(manifest, self.store.log("aggregation", overview.id))
        return manifest

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        manifest = self.store.manifest("aggregation", aggregation_id)
        stored = manifest.plan.get("overview") if manifest else None
        return None if stored is None else overview_of(stored, aggregation_type)

    def aggregation_overview_ids(self) -> Sequence[str]:
        return [
            manifest.id
            for manifest in manifests(self.store, "aggregation")
            if "overview" in manifest.plan
        ]


def overview_of(
    stored: JsonObject, aggregation_type: type[AggregatedEvaluation]
) -> AggregationOverview[AggregatedEvaluation]:
    """The overview of a JSON value. Its statistics are read by themselves, as they may be of any
    kind of type."""
    overview: Any = from_json({**stored, "statistics": None}, AggregationOverview[None])
    object.__setattr__(overview, "statistics", from_json(stored["statistics"], aggregation_type))
    return overview


class FileAggregationRepository(StoredAggregationRepository):
    def __init__(self, root_directory: Path) -> None:
        original = OriginalStore(Path(root_directory), "aggregation")
        super().__init__(FileStore(root_directory, original))


class InMemoryAggregationRepository(StoredAggregationRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())


class Aggregator(Generic[Evaluation, AggregatedEvaluation]):
    def __init__(
        self,
        evaluation_repository: EvaluationRepository,
        aggregation_repository: AggregationRepository,
        description: str,
        aggregation_logic: AggregationLogic[Evaluation, AggregatedEvaluation],
    ) -> None:
        self._evaluation_repository = evaluation_repository
        self._aggregation_repository = aggregation_repository
        self._aggregation_logic = aggregation_logic
        self.description = description

    @cached_property
    def _types(self) -> JsonObject:
        return arguments_of(type(self._aggregation_logic), AggregationLogic)

    def evaluation_type(self) -> type[Evaluation]:
        return settled_type(self, self._types, "Evaluation", "evaluation_type")

    def aggregated_evaluation_type(self) -> type[AggregatedEvaluation]:
        return settled_type(self, self._types, "AggregatedEvaluation", "aggregated_evaluation_type")

    @final
    def aggregate_evaluation(
        self,
        *eval_ids: str,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: JsonObject | None = None,
    ) -> AggregationOverview[AggregatedEvaluation]:
        """Aggregate the results of these evaluations as one, and store the overview."""
        start = utc_now()
        overviews = [self._overview(evaluation_id) for evaluation_id in dict.fromkeys(eval_ids)]
        counts: Counter[str] = Counter()
        results = self._successful(overviews, counts)
        statistics = self._aggregation_logic.aggregate(results)
        deque(results, maxlen=0)  # what the logic did not ask for counts as well
        overview = AggregationOverview(
            statistics=statistics,
            evaluation_overviews=frozenset(overviews),
            id=str(uuid4()),
            start=start,
            end=utc_now(),
            successful_evaluation_count=counts["successful"],
            crashed_during_evaluation_count=counts["crashed"],
            **chosen_fields(self.description, description, labels, metadata),
        )
        self._measure(overview, [evaluation.id for evaluation in overviews])
        self._aggregation_repository.store_aggregation_overview(overview)
        return overview

    def _measure(self, overview: AggregationOverview[Any], evaluation_ids: list[str]) -> None:
        """Let the engine store a metric for each number of the statistics. Without a result it has
        nothing to measure, and a repository of the user's own stores what it likes."""
        repository = self._aggregation_repository
        count = overview.successful_evaluation_count + overview.crashed_during_evaluation_count
        if not count or not isinstance(repository, StoredAggregationRepository):
            return
        evaluations = evaluation_store(
            self._evaluation_repository, evaluation_ids, self.evaluation_type()
        )
        logic = digest("logic", canonical(identity_of(self._aggregation_logic))).hex()
        metrics = [
            BoundMetric(
                name=name,
                type=type(overview.statistics).__name__,
                function=_of_logic,
                params={"logic": logic, "value": float(value)},
                ordered=False,
                verdicts=False,
            )
            for name, value in numbers_in(to_json(overview.statistics))
        ]
        behind: dict[Kind, Store] = dict.fromkeys(("dataset", "run", "evaluation"), evaluations)
        engine = Engine(StoreByKind({**behind, "aggregation": repository.store}))
        engine.aggregate(evaluation_ids, metrics, id=overview.id)

    def _successful(
        self, overviews: Iterable[EvaluationOverview], counts: Counter[str]
    ) -> Iterator[Any]:
        """The results of all evaluations but the failures, which are counted too."""
        repository, kind = self._evaluation_repository, self.evaluation_type()
        for overview in overviews:
            streams = isinstance(
                repository, StoredEvaluationRepository
            ) and repository.has_own_rows(overview.id)
            read = repository.results if streams else repository.example_evaluations  # type: ignore[attr-defined]
            for evaluation in read(overview.id, kind):
                if isinstance(evaluation.result, FailedExampleEvaluation):
                    counts["crashed"] += 1
                else:
                    counts["successful"] += 1
                    yield evaluation.result

    def _overview(self, evaluation_id: str) -> EvaluationOverview:
        overview = self._evaluation_repository.evaluation_overview(evaluation_id)
        if overview is None:
            raise BadValue(f"there is no finished evaluation {evaluation_id!r}")
        return overview


def _of_logic(group: Group, *, logic: str, value: float) -> float:
    """A number that the user's logic has computed from the typed results; the engine adds its
    counts."""
    return value


def evaluation_store(
    repository: EvaluationRepository, evaluation_ids: Sequence[str], evaluation_type: Any
) -> Store:
    """Return the store in which the engine finds the results of evaluations: the repository's own, or a copy in
    memory."""
    if isinstance(repository, StoredEvaluationRepository) and all(
        map(repository.has_own_rows, evaluation_ids)
    ):
        return repository.store
    memory = MemoryStore()
    for evaluation_id in evaluation_ids:
        memory.put_manifest(Manifest(kind="evaluation", id=evaluation_id))
        log = memory.log("evaluation", evaluation_id)
        for result in repository.example_evaluations(evaluation_id, evaluation_type):
            log.append(msgspec.json.Encoder().encode_lines(rows_of(result)))
    return memory
