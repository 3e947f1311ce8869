"""Datasets in a folder, `datasets/<id>/` of a repository root; datasets that the original wrote are read."""

from collections.abc import Iterable
from pathlib import Path

from assay.formats.intelligence_layer.core.task import Input
from assay.formats.intelligence_layer.evaluation.dataset.domain import Dataset, Example, ExpectedOutput
from assay.formats.intelligence_layer.evaluation.dataset.file_system_dataset_repository import (
    FileSystemDatasetRepository as FileSystemDatasetRepository,
)
from assay.formats.intelligence_layer.evaluation.dataset.stored_dataset_repository import StoredDatasetRepository
from assay.formats.intelligence_layer.evaluation.infrastructure.file_system_based_repository import LocalFileSystem
from assay.store.stores import FolderStore


class FileDatasetRepository(StoredDatasetRepository):
    def __init__(self, root_directory: Path) -> None:
        super().__init__(FolderStore(root_directory))
        self._original = FileSystemDatasetRepository(LocalFileSystem(), Path(root_directory))

    def delete_dataset(self, dataset_id: str) -> None:
        super().delete_dataset(dataset_id)
        self._original.delete_dataset(dataset_id)

    def dataset(self, dataset_id: str) -> Dataset | None:
        return super().dataset(dataset_id) or self._original.dataset(dataset_id)

    def dataset_ids(self) -> Iterable[str]:
        return sorted({*super().dataset_ids(), *self._original.dataset_ids()})

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        if super().dataset(dataset_id) is None and self._original.dataset(dataset_id) is not None:
            return self._original.example(dataset_id, example_id, input_type, expected_output_type)
        return super().example(dataset_id, example_id, input_type, expected_output_type)

    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        if super().dataset(dataset_id) is None and self._original.dataset(dataset_id) is not None:
            return self._original.examples(dataset_id, input_type, expected_output_type, examples_to_skip)
        return super().examples(dataset_id, input_type, expected_output_type, examples_to_skip)
