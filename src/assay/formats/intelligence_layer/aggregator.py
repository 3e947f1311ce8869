"""The third step by the original's names: all results of one or several evaluations through one logic. Its numbers are
metrics of Assay's engine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import sqrt
from typing import Any, Generic, TypeVar, final
from uuid import uuid4

import msgspec

from assay.engine.aggregate.aggregate import Aggregator as Engine
from assay.engine.aggregate.bind import BoundMetric
from assay.formats.intelligence_layer.aggregations import (
    AggregationOverview,
    AggregationRepository,
    StoredAggregationRepository,
    numbers_of,
)
from assay.formats.intelligence_layer.datasets import StoreByKind
from assay.formats.intelligence_layer.domain import (
    AggregatedEvaluation,
    Evaluation,
    EvaluationOverview,
    FailedExampleEvaluation,
)
from assay.formats.intelligence_layer.evaluation_rows import rows_of
from assay.formats.intelligence_layer.evaluations import EvaluationRepository, StoredEvaluationRepository
from assay.formats.intelligence_layer.logics import AggregationLogic, arguments_of, identity_of, settled
from assay.formats.intelligence_layer.tracer import utc_now
from assay.formats.intelligence_layer.types import BadValue
from assay.interfaces import Group, Store
from assay.records import Kind, Manifest
from assay.store.keys import canonical, digest
from assay.store.stores import MemoryStore

T = TypeVar("T")
Extracted = TypeVar("Extracted")


class CountingFilterIterable(Iterable[T]):
    """The values that pass a filter, once; and how many did and did not, whether they were asked for or not."""

    def __init__(self, wrapped_iterable: Iterable[T], filter: Callable[[T], bool]) -> None:
        self._rest = iter(wrapped_iterable)
        self._filter = filter
        self._included = 0
        self._excluded = 0

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        for value in self._rest:
            if self._filter(value):
                self._included += 1
                return value
            self._excluded += 1
        raise StopIteration

    def included_count(self) -> int:
        self._exhaust()
        return self._included

    def excluded_count(self) -> int:
        self._exhaust()
        return self._excluded

    def _exhaust(self) -> None:
        for _ in self:
            pass


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
    def _types(self) -> dict[str, Any]:
        return arguments_of(type(self._aggregation_logic), AggregationLogic)

    def evaluation_type(self) -> type[Evaluation]:
        return settled(self, self._types, "Evaluation", "evaluation_type")

    def aggregated_evaluation_type(self) -> type[AggregatedEvaluation]:
        return settled(self, self._types, "AggregatedEvaluation", "aggregated_evaluation_type")

    @final
    def aggregate_evaluation(
        self,
        *eval_ids: str,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> AggregationOverview[AggregatedEvaluation]:
        """Aggregate the results of these evaluations as one, and store the overview."""
        start = utc_now()
        overviews = [self._overview(evaluation_id) for evaluation_id in dict.fromkeys(eval_ids)]
        results: Any = CountingFilterIterable(self._results(overviews), _is_successful)
        statistics = self._aggregation_logic.aggregate(results)
        overview = AggregationOverview(
            statistics=statistics,
            evaluation_overviews=frozenset(overviews),
            id=str(uuid4()),
            start=start,
            end=utc_now(),
            successful_evaluation_count=results.included_count(),
            crashed_during_evaluation_count=results.excluded_count(),
            description=f"{self.description} : {description}" if description else self.description,
            labels=set(labels or ()),
            metadata=dict(metadata or {}),
        )
        self._measure(overview, [each.id for each in overviews])
        self._aggregation_repository.store_aggregation_overview(overview)
        return overview

    def _measure(self, overview: AggregationOverview[Any], evaluation_ids: list[str]) -> None:
        """Let the engine store a metric for each number of the statistics. Without a result it has nothing to measure,
        and a repository of the user's own stores what it likes."""
        repository = self._aggregation_repository
        count = overview.successful_evaluation_count + overview.crashed_during_evaluation_count
        if not count or not isinstance(repository, StoredAggregationRepository):
            return
        evaluations = evaluation_store(self._evaluation_repository, evaluation_ids, self.evaluation_type())
        logic = digest("logic", canonical(identity_of(self._aggregation_logic))).hex()
        metrics = [
            BoundMetric(
                name=name,
                type=type(overview.statistics).__name__,
                function=_of_logic,
                params={"logic": logic, "value": value},
                ordered=False,
                verdicts=False,
            )
            for name, value in numbers_of(overview.statistics)
        ]
        behind: dict[Kind, Store] = dict.fromkeys(("dataset", "run", "evaluation"), evaluations)
        engine = Engine(StoreByKind({**behind, "aggregation": repository.store}))
        engine.aggregate(evaluation_ids, metrics, id=overview.id)

    def _results(self, overviews: Iterable[EvaluationOverview]) -> Iterator[Any]:
        repository, kind = self._evaluation_repository, self.evaluation_type()
        for overview in overviews:
            streams = isinstance(repository, StoredEvaluationRepository) and repository.has_own_rows(overview.id)
            read = repository.results if streams else repository.example_evaluations  # type: ignore[attr-defined]
            yield from (each.result for each in read(overview.id, kind))

    def _overview(self, evaluation_id: str) -> EvaluationOverview:
        overview = self._evaluation_repository.evaluation_overview(evaluation_id)
        if overview is None:
            raise BadValue(f"there is no finished evaluation {evaluation_id!r}")
        return overview


def _is_successful(result: Any) -> bool:
    return not isinstance(result, FailedExampleEvaluation)


def _of_logic(group: Group, *, logic: str, value: float) -> float:
    """A number that the user's logic has computed from the typed results; the engine adds its counts."""
    return value


def evaluation_store(repository: EvaluationRepository, evaluation_ids: Sequence[str], evaluation_type: Any) -> Store:
    """Where the engine finds the results of evaluations: the repository's own store, or a copy in memory."""
    if isinstance(repository, StoredEvaluationRepository) and all(map(repository.has_own_rows, evaluation_ids)):
        return repository.store
    memory = MemoryStore()
    for evaluation_id in evaluation_ids:
        memory.put_manifest(Manifest(kind="evaluation", id=evaluation_id))
        log = memory.log("evaluation", evaluation_id)
        for result in repository.example_evaluations(evaluation_id, evaluation_type):
            log.append(msgspec.json.Encoder().encode_lines(rows_of(result)))
    return memory


class Accumulator(ABC, Generic[T, Extracted]):
    @abstractmethod
    def add(self, value: T) -> None: ...

    @abstractmethod
    def extract(self) -> Extracted:
        """What the values so far come to."""


class MeanAccumulator(Accumulator[float, float]):
    """Mean and spread by Welford's updates: equal values have a spread of exactly 0. Nothing added is 0.0."""

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
