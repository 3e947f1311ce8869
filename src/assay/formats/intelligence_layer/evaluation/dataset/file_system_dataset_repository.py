"""Datasets as the original lays them out: `datasets/<id>/<id>.json` and `<id>.jsonl`, one example per line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from assay.formats.intelligence_layer.connectors.base.json_serializable import SerializableDict
from assay.formats.intelligence_layer.core.task import Input
from assay.formats.intelligence_layer.evaluation.dataset.dataset_repository import DatasetRepository
from assay.formats.intelligence_layer.evaluation.dataset.domain import Dataset, Example, ExpectedOutput, new_id
from assay.formats.intelligence_layer.evaluation.dataset.rows import sorted_items
from assay.formats.intelligence_layer.evaluation.infrastructure.file_system_based_repository import (
    FileSystemBasedRepository,
)
from assay.formats.intelligence_layer.types import BadValue, from_json
from assay.store.names import safe_name
from assay.store.repair import row_decoder

Row = dict[str, Any]


class FileSystemDatasetRepository(FileSystemBasedRepository, DatasetRepository):
    """For file systems that others read with the original, such as the hub's. An id that is no plain file name is
    encoded; the true one stands in the file."""

    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        dataset = Dataset(id=id or new_id(), name=dataset_name, labels=set(labels or ()), metadata=dict(metadata or {}))
        if self.dataset(dataset.id) is not None:
            raise BadValue(f"there is a dataset {dataset.id!r} already", fix="give another id, or delete it first")
        rows = [
            {"input": item.data, "expected_output": item.ground_truth, "id": item.id, "metadata": item.metadata or None}
            for item in sorted_items(examples)
        ]
        lines = "\n".join(msgspec.json.encode(row).decode() for row in rows)
        self.write_utf8(self._examples_path(dataset.id), lines, create_parents=True)
        self.write_utf8(self._dataset_path(dataset.id), dataset.model_dump_json())
        return dataset

    def delete_dataset(self, dataset_id: str) -> None:
        for path in (self._dataset_path(dataset_id), self._examples_path(dataset_id)):
            if self.exists(path):
                self.remove_file(path)

    def dataset(self, dataset_id: str) -> Dataset | None:
        path = self._dataset_path(dataset_id)
        return Dataset.model_validate_json(self.read_utf8(path)) if self.exists(path) else None

    def dataset_ids(self) -> Iterable[str]:
        found = (self.dataset(name) for name in self._folders())
        return sorted(dataset.id for dataset in found if dataset is not None)

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        rows = (row for row in self._rows(dataset_id) if row["id"] == example_id)
        return next((_example(row, input_type, expected_output_type) for row in rows), None)

    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        skipped = examples_to_skip or frozenset()
        rows = self._rows(dataset_id)
        return (_example(row, input_type, expected_output_type) for row in rows if row["id"] not in skipped)

    def _rows(self, dataset_id: str) -> list[Row]:
        path = self._examples_path(dataset_id)
        if not self.exists(path):
            raise BadValue(f"the repository has no dataset {dataset_id!r}")
        decode = row_decoder(Row)
        lines = self.read_utf8(path).split("\n")
        return sorted((decode(line.encode()) for line in lines if line.strip()), key=lambda row: row["id"])

    def _dataset_path(self, dataset_id: str) -> Path:
        name = self._folder(dataset_id)
        return self._root_directory / "datasets" / name / f"{name}.json"

    def _examples_path(self, dataset_id: str) -> Path:
        name = self._folder(dataset_id)
        return self._root_directory / "datasets" / name / f"{name}.jsonl"

    def _folder(self, dataset_id: str) -> str:
        """The original took any id for a name: what is listed under it is meant."""
        safe = safe_name(dataset_id)
        return dataset_id if safe != dataset_id and dataset_id in self._folders() else safe

    def _folders(self) -> list[str]:
        folder = self._root_directory / "datasets"
        if not self.exists(folder):
            return []
        return [Path(entry).name for entry in self._file_system.ls(self.path_to_str(folder), detail=False)]


def _example(
    row: Row, input_type: type[Input], expected_output_type: type[ExpectedOutput]
) -> Example[Input, ExpectedOutput]:
    return Example(
        id=row["id"],
        input=from_json(row["input"], input_type),
        expected_output=from_json(row["expected_output"], expected_output_type),
        metadata=row.get("metadata"),
    )
