"""Aggregations in a dataset repository of the Hugging Face hub."""

from assay.formats.intelligence_layer.evaluation.aggregation.file_system_aggregation_repository import (
    FileSystemAggregationRepository,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.hugging_face_repository import HuggingFaceRepository


class HuggingFaceAggregationRepository(HuggingFaceRepository, FileSystemAggregationRepository):
    """`HuggingFaceAggregationRepository(repository_id, token, private)`."""
