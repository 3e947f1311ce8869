"""The aggregator: all results of one or several evaluations through one logic."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Generic, TypeVar, final
from uuid import uuid4

from assay.formats.intelligence_layer.core.tracer.tracer import utc_now
from assay.formats.intelligence_layer.evaluation.aggregation.aggregation_repository import AggregationRepository
from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregatedEvaluation, AggregationOverview
from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    EvaluationOverview,
    FailedExampleEvaluation,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluation_repository import EvaluationRepository
from assay.formats.intelligence_layer.generics import arguments_of, settled
from assay.formats.intelligence_layer.types import BadValue

T = TypeVar("T")


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


class AggregationLogic(ABC, Generic[Evaluation, AggregatedEvaluation]):
    """Implement `aggregate`."""

    @abstractmethod
    def aggregate(self, evaluations: Iterable[Evaluation]) -> AggregatedEvaluation:
        """The statistics of all results that are no failures; they can be read once."""


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
        results = (
            each.result
            for overview in overviews
            for each in self._evaluation_repository.example_evaluations(overview.id, self.evaluation_type())
        )
        successful: Any = CountingFilterIterable(results, lambda each: not isinstance(each, FailedExampleEvaluation))
        overview = AggregationOverview(
            statistics=self._aggregation_logic.aggregate(successful),
            evaluation_overviews=frozenset(overviews),
            id=str(uuid4()),
            start=start,
            end=utc_now(),
            successful_evaluation_count=successful.included_count(),
            crashed_during_evaluation_count=successful.excluded_count(),
            description=f"{self.description} : {description}" if description else self.description,
            labels=set(labels or ()),
            metadata=dict(metadata or {}),
        )
        self._aggregation_repository.store_aggregation_overview(overview)
        return overview

    def _overview(self, evaluation_id: str) -> EvaluationOverview:
        overview = self._evaluation_repository.evaluation_overview(evaluation_id)
        if overview is None:
            raise BadValue(f"there is no finished evaluation {evaluation_id!r}")
        return overview
