"""Datasets in files: ours in a folder, and those that the original wrote there,
`datasets/<id>/<id>.json` and `<id>.jsonl` with one example per line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.formats.intelligence_layer.datasets import DatasetRepository, StoredDatasetRepository
from assay.formats.intelligence_layer.domain import Dataset
from assay.formats.intelligence_layer.original import entry_name
from assay.formats.intelligence_layer.types import BadValue
from assay.records import Item
from assay.store.stores import FolderStore
from assay.store.table.decode import row_decoder

Row = dict[str, Any]


class FileDatasetRepository(StoredDatasetRepository):
    def __init__(self, root_directory: Path) -> None:
        super().__init__(FolderStore(root_directory))
        Path(root_directory).mkdir(parents=True, exist_ok=True)
        self._folder = Path(root_directory) / "datasets"

    def delete_dataset(self, dataset_id: str) -> None:
        super().delete_dataset(dataset_id)
        for ending in (".json", ".jsonl"):
            self._path(dataset_id, ending).unlink(missing_ok=True)

    def dataset(self, dataset_id: str) -> Dataset | None:
        return super().dataset(dataset_id) or self._original(dataset_id)

    def dataset_ids(self) -> Iterable[str]:
        folders = self._folder.iterdir() if self._folder.is_dir() else ()
        originals = [self._original(folder.name) for folder in folders]
        return sorted({*super().dataset_ids(), *(each.id for each in originals if each)})

    def _item(self, dataset_id: str, example_id: str) -> Item | None:
        if self._is_original(dataset_id):
            return DatasetRepository._item(self, dataset_id, example_id)
        return super()._item(dataset_id, example_id)

    def _items(self, dataset_id: str) -> Iterable[Item]:
        if self._is_original(dataset_id):
            return self._original_items(dataset_id)
        return super()._items(dataset_id)

    def _is_original(self, dataset_id: str) -> bool:
        return super().dataset(dataset_id) is None and self._original(dataset_id) is not None

    def _original(self, dataset_id: str) -> Dataset | None:
        path = self._path(dataset_id, ".json")
        return Dataset.model_validate_json(path.read_bytes()) if path.is_file() else None

    def _original_items(self, dataset_id: str) -> list[Item]:
        path, decode = self._path(dataset_id, ".jsonl"), row_decoder(Row)
        if not path.is_file():
            raise BadValue(f"the repository has no dataset {dataset_id!r}")
        lines = path.read_text(encoding="utf-8").split("\n")
        rows = (decode(line.encode()) for line in lines if line.strip())
        items = (
            Item(
                id=row["id"],
                data=row["input"],
                ground_truth=row["expected_output"],
                metadata=row.get("metadata") or {},
            )
            for row in rows
        )
        return sorted(items, key=lambda item: item.id)

    def _path(self, dataset_id: str, ending: str) -> Path:
        name = entry_name(self._folder, dataset_id)
        return self._folder / name / f"{name}{ending}"
