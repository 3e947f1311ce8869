"""Aggregations as the original lays them out: `aggregations/<id>.json`. For file systems that others read with the
original, such as the hub's, and to read what the original wrote."""

import json
from collections.abc import Sequence
from pathlib import Path

from assay.formats.intelligence_layer.evaluation.aggregation.aggregation_repository import AggregationRepository
from assay.formats.intelligence_layer.evaluation.aggregation.domain import AggregatedEvaluation, AggregationOverview
from assay.formats.intelligence_layer.evaluation.aggregation.stored_aggregation_repository import overview_of
from assay.formats.intelligence_layer.evaluation.infrastructure.file_system_based_repository import (
    FileSystemBasedRepository,
)
from assay.store.names import safe_name


class FileSystemAggregationRepository(FileSystemBasedRepository, AggregationRepository):
    """An id that is no plain file name is encoded; the true one stands in the file."""

    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        path = self._path(safe_name(aggregation_overview.id))
        self.write_utf8(path, aggregation_overview.model_dump_json(indent=2), create_parents=True)

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        path = self._path(safe_name(aggregation_id))
        return overview_of(json.loads(self.read_utf8(path)), aggregation_type) if self.exists(path) else None

    def aggregation_overview_ids(self) -> Sequence[str]:
        names = self.file_names(self._folder())
        return sorted(json.loads(self.read_utf8(self._path(name)))["id"] for name in names)

    def _folder(self) -> Path:
        return self._root_directory / "aggregations"

    def _path(self, name: str) -> Path:
        return self._folder() / f"{name}.json"
