"""Datasets in files: ours in a folder, and the original's layout, `datasets/<id>/<id>.json` and `<id>.jsonl` with one
example per line, for the hub and to read what the original wrote."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from assay.formats.intelligence_layer.datasets import DatasetRepository, StoredDatasetRepository
from assay.formats.intelligence_layer.domain import Dataset
from assay.formats.intelligence_layer.original import (
    FileSystemBasedRepository,
    HuggingFaceRepository,
    LocalFileSystem,
)
from assay.formats.intelligence_layer.types import BadValue, JsonSerializable, Record
from assay.records import Item
from assay.store.repair import row_decoder
from assay.store.stores import FolderStore

Row = dict[str, Any]
_LETTERS = "ABCD"


class FileSystemDatasetRepository(FileSystemBasedRepository, DatasetRepository):
    """For file systems that others read with the original, such as the hub's. An id that is not a plain file name
    is encoded; the true one stands in the file."""

    def _write(self, dataset: Dataset, items: list[Item]) -> None:
        rows = (
            {
                "input": item.data,
                "expected_output": item.ground_truth,
                "id": item.id,
                "metadata": item.metadata or None,
            }
            for item in items
        )
        lines = "\n".join(msgspec.json.encode(row).decode() for row in rows)
        self.write_utf8(self._path(dataset.id, ".jsonl"), lines, create_parents=True)
        self.write_utf8(self._path(dataset.id, ".json"), dataset.model_dump_json())

    def delete_dataset(self, dataset_id: str) -> None:
        for path in (self._path(dataset_id, ".json"), self._path(dataset_id, ".jsonl")):
            if self.exists(path):
                self.remove_file(path)

    def dataset(self, dataset_id: str) -> Dataset | None:
        path = self._path(dataset_id, ".json")
        return Dataset.model_validate_json(self.read_utf8(path)) if self.exists(path) else None

    def dataset_ids(self) -> Iterable[str]:
        datasets = (self.dataset(name) for name in self._entries(self._folder()))
        return sorted(dataset.id for dataset in datasets if dataset is not None)

    def _items(self, dataset_id: str) -> list[Item]:
        path = self._path(dataset_id, ".jsonl")
        if not self.exists(path):
            raise BadValue(f"the repository has no dataset {dataset_id!r}")
        decode = row_decoder(Row)
        rows = (decode(line.encode()) for line in self.read_utf8(path).split("\n") if line.strip())
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
        name = self._name(self._folder(), dataset_id)
        return self._folder() / name / f"{name}{ending}"

    def _folder(self) -> Path:
        return self._root_directory / "datasets"


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

    def _item(self, dataset_id: str, example_id: str) -> Item | None:
        if self._is_original(dataset_id):
            return self._original._item(dataset_id, example_id)
        return super()._item(dataset_id, example_id)

    def _items(self, dataset_id: str) -> Iterable[Item]:
        return (
            self._original._items(dataset_id)
            if self._is_original(dataset_id)
            else super()._items(dataset_id)
        )

    def _is_original(self, dataset_id: str) -> bool:
        return (
            super().dataset(dataset_id) is None and self._original.dataset(dataset_id) is not None
        )


class HuggingFaceDatasetRepository(HuggingFaceRepository, FileSystemDatasetRepository):
    """With `caching`, the examples of the last two datasets are kept until one is deleted."""

    def __init__(self, repository_id: str, token: str, private: bool, caching: bool = True) -> None:
        super().__init__(repository_id, token, private)
        self._cached: Any = lru_cache(2)(super()._items) if caching else None

    def delete_dataset(self, dataset_id: str) -> None:
        if self._cached is not None:
            self._cached.cache_clear()
        super().delete_dataset(dataset_id)

    def dataset(self, dataset_id: str) -> Dataset | None:
        """Also of examples that were uploaded without a file about them."""
        stored = super().dataset(dataset_id)
        if stored is None and self.exists(self._path(dataset_id, ".jsonl")):
            return Dataset(id=dataset_id, name=f"HuggingFace dataset {dataset_id}")
        return stored

    def _items(self, dataset_id: str) -> list[Item]:
        return super()._items(dataset_id) if self._cached is None else self._cached(dataset_id)


@dataclass(kw_only=True)
class MultipleChoiceInput(Record):
    question: str
    choices: Sequence[str]


class SingleHuggingfaceDatasetRepository(DatasetRepository):
    """Rows have `question`, `choices` and the number of the `answer`; ids are row numbers. Whatever dataset is asked
    for, it is this one, which can only be read."""

    def __init__(self, huggingface_dataset: Any) -> None:
        self._rows = huggingface_dataset

    def _refused(self, *_: Any, **named: Any) -> NoReturn:
        raise NotImplementedError(
            "a single Hugging Face dataset can only be read: its `examples` and its `example`"
        )

    create_dataset = delete_dataset = dataset = dataset_ids = _write = _refused

    def _items(self, dataset_id: str) -> Iterable[Item]:
        rows = sorted(enumerate(self._rows["test"]), key=lambda numbered: str(numbered[0]))
        return (
            Item(
                id=str(number),
                data={"question": row["question"], "choices": row["choices"]},
                ground_truth=_LETTERS[row["answer"]],
            )
            for number, row in rows
        )

    def _check_types(self, input_type: Any, expected_output_type: Any) -> None:
        if input_type is not MultipleChoiceInput:
            raise BadValue(f"the inputs of this dataset are MultipleChoiceInput, not {input_type}")
        if expected_output_type not in (str, Any, JsonSerializable):
            raise BadValue(
                f"the expected outputs of this dataset are str, not {expected_output_type}"
            )
