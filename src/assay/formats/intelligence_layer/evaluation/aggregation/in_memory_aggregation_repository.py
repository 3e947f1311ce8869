"""Aggregations that end with the process."""

from assay.formats.intelligence_layer.evaluation.aggregation.stored_aggregation_repository import (
    StoredAggregationRepository,
)
from assay.store.stores import MemoryStore


class InMemoryAggregationRepository(StoredAggregationRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())
