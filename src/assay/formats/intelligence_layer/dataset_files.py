"""Datasets in files: ours in a folder, and the original's layout, `datasets/<id>/<id>.json` and `<id>.jsonl` with one
example per line, for the hub and to read what the original wrote.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, cast

import msgspec

from assay.formats.intelligence_layer.datasets import DatasetRepository, StoredDatasetRepository, sorted_items
from assay.formats.intelligence_layer.domain import Dataset, Example, ExpectedOutput, new_id
from assay.formats.intelligence_layer.file_systems import (
    FileSystemBasedRepository,
    HuggingFaceRepository,
    LocalFileSystem,
)
from assay.formats.intelligence_layer.types import (
    BadValue,
    Input,
    JsonSerializable,
    Record,
    SerializableDict,
    from_json,
)
from assay.store.names import safe_name
from assay.store.repair import row_decoder
from assay.store.stores import FolderStore

Row = dict[str, Any]
_LETTERS = "ABCD"


class FileSystemDatasetRepository(FileSystemBasedRepository, DatasetRepository):
    """For file systems that others read with the original, such as the hub's. An id that is not a plain file name
    is encoded; the true one stands in the file."""

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
        datasets = (self.dataset(name) for name in self._folders())
        return sorted(dataset.id for dataset in datasets if dataset is not None)

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
        stored = super().dataset(dataset_id)
        if stored is None and self.exists(self._examples_path(dataset_id)):
            return Dataset(id=dataset_id, name=f"HuggingFace dataset {dataset_id}")
        return stored

    def _rows(self, dataset_id: str) -> list[dict[str, Any]]:
        return super()._rows(dataset_id) if self._cached is None else self._cached(dataset_id)


@dataclass(kw_only=True)
class MultipleChoiceInput(Record):
    question: str
    choices: Sequence[str]


class SingleHuggingfaceDatasetRepository(DatasetRepository):
    """Rows have `question`, `choices` and the number of the `answer`; ids are row numbers. Whatever dataset is asked
    for, it is this one."""

    def __init__(self, huggingface_dataset: Any) -> None:
        self._rows = huggingface_dataset

    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        _read_only()

    def delete_dataset(self, dataset_id: str) -> None:
        _read_only()

    def dataset(self, dataset_id: str) -> Dataset | None:
        _read_only()

    def dataset_ids(self) -> Iterable[str]:
        _read_only()

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        examples = self.examples(dataset_id, input_type, expected_output_type)
        return next((example for example in examples if example.id == example_id), None)

    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        if input_type is not MultipleChoiceInput:
            raise BadValue(f"the inputs of this dataset are MultipleChoiceInput, not {input_type}")
        if expected_output_type not in (str, Any, JsonSerializable):
            raise BadValue(f"the expected outputs of this dataset are str, not {expected_output_type}")
        skipped = examples_to_skip or frozenset()
        return (
            Example(
                id=str(number),
                input=cast(Input, MultipleChoiceInput(question=row["question"], choices=row["choices"])),
                expected_output=cast(ExpectedOutput, _LETTERS[row["answer"]]),
            )
            for number, row in sorted(enumerate(self._rows["test"]), key=lambda numbered: str(numbered[0]))
            if str(number) not in skipped
        )


def _read_only() -> NoReturn:
    raise NotImplementedError("a single Hugging Face dataset can only be read: its `examples` and its `example`")
