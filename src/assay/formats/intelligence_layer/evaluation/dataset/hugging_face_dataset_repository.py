"""Datasets in a repository of the Hugging Face hub, in the original's layout, so that both can read them."""

from functools import lru_cache
from typing import Any

from assay.formats.intelligence_layer.evaluation.dataset.domain import Dataset
from assay.formats.intelligence_layer.evaluation.dataset.file_system_dataset_repository import (
    FileSystemDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.hugging_face_repository import HuggingFaceRepository


class HuggingFaceDatasetRepository(HuggingFaceRepository, FileSystemDatasetRepository):
    """With `caching`, the examples of the last two datasets are kept until one is deleted."""

    def __init__(self, repository_id: str, token: str, private: bool, caching: bool = True) -> None:
        super().__init__(repository_id, token, private)
        self._cached: Any = lru_cache(2)(super()._rows) if caching else None

    def delete_dataset(self, dataset_id: str) -> None:
        if self._cached is not None:
            self._cached.cache_clear()
        super().delete_dataset(dataset_id)

    def dataset(self, dataset_id: str) -> Dataset | None:
        """Also of examples that were uploaded without a file about them."""
        known = super().dataset(dataset_id)
        if known is None and self.exists(self._examples_path(dataset_id)):
            return Dataset(id=dataset_id, name=f"HuggingFace dataset {dataset_id}")
        return known

    def _rows(self, dataset_id: str) -> list[dict[str, Any]]:
        return super()._rows(dataset_id) if self._cached is None else self._cached(dataset_id)
