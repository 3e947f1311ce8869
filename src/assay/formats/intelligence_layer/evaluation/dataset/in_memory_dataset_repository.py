"""Datasets that end with the process."""

from assay.formats.intelligence_layer.evaluation.dataset.stored_dataset_repository import StoredDatasetRepository
from assay.store.stores import MemoryStore


class InMemoryDatasetRepository(StoredDatasetRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())
