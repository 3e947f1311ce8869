"""What every place for aggregations can do. Implement this to keep them elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregatedEvaluation, AggregationOverview


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
