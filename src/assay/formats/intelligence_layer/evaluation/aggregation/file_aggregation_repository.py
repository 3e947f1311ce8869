"""Aggregations in a folder, `aggregations/<id>/` of a repository root; what the original wrote is read."""

from collections.abc import Sequence
from pathlib import Path

from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregatedEvaluation, AggregationOverview
from assay.formats.intelligence_layer.evaluation.aggregation.file_system_aggregation_repository import (
    FileSystemAggregationRepository as FileSystemAggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.aggregation.stored_aggregation_repository import (
    StoredAggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.file_system_based_repository import LocalFileSystem
from assay.store.stores import FolderStore


class FileAggregationRepository(StoredAggregationRepository):
    def __init__(self, root_directory: Path) -> None:
        super().__init__(FolderStore(root_directory))
        self._original = FileSystemAggregationRepository(LocalFileSystem(), Path(root_directory))

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        stored = super().aggregation_overview(aggregation_id, aggregation_type)
        return stored or self._original.aggregation_overview(aggregation_id, aggregation_type)

    def aggregation_overview_ids(self) -> Sequence[str]:
        """FileNotFoundError, as in the original, where no aggregation was ever stored."""
        return sorted({*self._original.aggregation_overview_ids(), *super().aggregation_overview_ids()})
