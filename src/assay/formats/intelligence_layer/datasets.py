"""Datasets: what every repository of them can do, and those in one of our stores.

Examples are rows of `items.jsonl`; name, labels and metadata stand in the manifest.

Datasets in files: ours in a folder, and those that the original wrote there,
`datasets/<id>/<id>.json` and `<id>.jsonl` with one example per line.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from assay.formats.intelligence_layer.domain import Dataset, Example, ExpectedOutput, new_id
from assay.formats.intelligence_layer.original import entry_name
from assay.formats.intelligence_layer.types import (
    BadValue,
    Input,
    SerializableDict,
    from_json,
    is_ours,
    to_json,
)
from assay.sdk import Item, JsonObject, Kind, Log, Manifest, Segment, Store, UserError
from assay.store.items import decode_item
from assay.store.repositories import DatasetRepository as Datasets
from assay.store.stores import FolderStore, MemoryStore
from assay.store.table.decode import row_decoder


class DatasetRepository(ABC):
    """Datasets do not change once they are created. An unknown dataset is None where it is asked for itself, and a
    ValueError where its examples are. Examples are rows of ours: a subclass gives `_write`, `_items`, and `_item` where
    it is quicker; one that keeps examples in another way gives all public methods."""

    def create_dataset(
        self,
        examples: Iterable[Example[Input, ExpectedOutput]],
        dataset_name: str,
        id: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> Dataset:
        """Store examples as a dataset; a ValueError if the id is taken or two examples have one id."""
        dataset = Dataset(
            id=id or new_id(),
            name=dataset_name,
            labels=set(labels or ()),
            metadata=dict(metadata or {}),
        )
        if self.dataset(dataset.id) is not None:
            raise BadValue(
                f"there is a dataset {dataset.id!r} already, and datasets do not change",
                fix="give another id, or delete it first",
            )
        self._write(dataset, sorted_items(examples))
        return dataset

    @abstractmethod
    def delete_dataset(self, dataset_id: str) -> None:
        """Remove a dataset with its examples; an unknown one is not an error."""

    @abstractmethod
    def dataset(self, dataset_id: str) -> Dataset | None:
        """Return what is known of a dataset beside its examples."""

    def datasets(self) -> Iterable[Dataset]:
        """All datasets, sorted by id."""
        yield from filter(None, map(self.dataset, self.dataset_ids()))

    @abstractmethod
    def dataset_ids(self) -> Iterable[str]:
        """The ids of all datasets, sorted."""

    def example(
        self,
        dataset_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
    ) -> Example[Input, ExpectedOutput] | None:
        """One example of a dataset, or None if the dataset has no such example."""
        item = self._item(dataset_id, example_id)
        return None if item is None else example_of(item, input_type, expected_output_type)

    def examples(
        self,
        dataset_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        examples_to_skip: frozenset[str] | None = None,
    ) -> Iterable[Example[Input, ExpectedOutput]]:
        """The examples sorted by id, as text: "10" comes before "9"."""
        skipped = examples_to_skip or frozenset()
        items = self._items(dataset_id)
        return (
            example_of(item, input_type, expected_output_type)
            for item in items
            if item.id not in skipped
        )

    def _write(self, dataset: Dataset, items: list[Item]) -> None:
        raise NotImplementedError

    def _items(self, dataset_id: str) -> Iterable[Item]:
        """The rows sorted by id; a ValueError for an unknown dataset."""
        raise NotImplementedError

    def _item(self, dataset_id: str, example_id: str) -> Item | None:
        return next((item for item in self._items(dataset_id) if item.id == example_id), None)


def item_of(example: Example[Any, Any]) -> Item:
    if not isinstance(example.id, str) or not example.id:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadValue(
            f"an example's id must be text, got {example.id!r}",
            fix="leave `id` out: it is then made",
        )
    return Item(
        id=example.id,
        data=to_json(example.input),
        ground_truth=to_json(example.expected_output),
        metadata=to_json(example.metadata or {}),
    )


def example_of(
    item: Item, input_type: type[Input], expected_output_type: type[ExpectedOutput]
) -> Example[Input, ExpectedOutput]:
    """The example again; a ValueError (pydantic's for its models) if it is not of these types."""
    return Example(
        id=item.id,
        input=from_json(item.data, input_type),
        expected_output=from_json(item.ground_truth, expected_output_type),
        metadata=item.metadata or None,
    )


def sorted_items(examples: Iterable[Example[Any, Any]]) -> list[Item]:
    """The rows of a new dataset in the order in which examples are read; ids that repeat are refused."""
    items = sorted((item_of(example) for example in examples), key=lambda item: item.id)
    for item, following in pairwise(items):
        if item.id == following.id:
            raise BadValue(
                f"two examples have the id {item.id!r}", fix="give each example its own id, or none"
            )
    return items


class StoredDatasetRepository(DatasetRepository):
    """Rows are stored in the order of their ids, so that they need not be sorted to be read."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._datasets = Datasets(store)
        self._order: tuple[str, list[Segment], list[int] | None] | None = None

    def delete_dataset(self, dataset_id: str) -> None:
        self._datasets.delete(dataset_id)

    def dataset(self, dataset_id: str) -> Dataset | None:
        manifest = self._datasets.get(dataset_id)
        if manifest is None:
            return None
        return Dataset(
            id=manifest.id,
            name=manifest.name,
            labels=set(manifest.labels),
            metadata=manifest.metadata,
        )

    def dataset_ids(self) -> Iterable[str]:
        return self._datasets.ids()

    def store_in_order(self, dataset_id: str) -> Store | None:
        """The store, if its rows are what `examples` gives, in the same order; rows that others stored need not be."""
        has_rows = is_ours(type(self).examples) and self._datasets.get(dataset_id) is not None
        return self.store if has_rows and self._positions(dataset_id) is None else None

    def _write(self, dataset: Dataset, items: list[Item]) -> None:
        metadata = to_json(dataset.metadata)
        try:
            self._datasets.create(
                items, name=dataset.name, id=dataset.id, labels=dataset.labels, metadata=metadata
            )
        except UserError as error:
            raise BadValue(error.what, where=error.where, fix=error.fix) from error

    def _item(self, dataset_id: str, example_id: str) -> Item | None:
        self._refuse_unknown(dataset_id)
        return self._datasets.item(dataset_id, example_id)

    def _items(self, dataset_id: str) -> Iterable[Item]:
        self._refuse_unknown(dataset_id)
        index, positions = self._datasets.index(dataset_id), self._positions(dataset_id)
        if positions is None:
            return index
        return (decode_item(index.log.read(position), index.source) for position in positions)

    def _positions(self, dataset_id: str) -> list[int] | None:
        """Return the places of the rows, sorted by id; None if they are sorted already. Made once while the rows stay the same."""
        log = self.store.log("dataset", dataset_id)
        segments = log.segments()
        if self._order is None or self._order[:2] != (dataset_id, segments):
            self._order = dataset_id, segments, _sorted_positions(log)
        return self._order[2]

    def _refuse_unknown(self, dataset_id: str) -> None:
        if self._datasets.get(dataset_id) is None:
            raise BadValue(f"the repository has no dataset {dataset_id!r}")


class _ItemId(msgspec.Struct):
    id: str


def _sorted_positions(log: Log) -> list[int] | None:
    decode = msgspec.json.Decoder(_ItemId).decode
    last: str | None = None
    for _, line in log.scan():
        try:
            item_id = decode(line).id
        except ValueError:  # a row of others, perhaps without an id of its own
            break
        if last is not None and item_id <= last:
            break
        last = item_id
    else:
        return None
    places = [(decode_item(line).id, position) for position, line in log.scan() if line.strip()]
    return [position for _, position in sorted(places)]


class InMemoryDatasetRepository(StoredDatasetRepository):
    def __init__(self) -> None:
        super().__init__(MemoryStore())


class StoreByKind:
    """Hands everything to the store of the artefact's kind."""

    def __init__(self, stores: Mapping[Kind, Store]) -> None:
        self._stores = stores

    def ids(self, kind: Kind) -> list[str]:
        return self._stores[kind].ids(kind)

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        return self._stores[kind].manifest(kind, id)

    def put_manifest(self, manifest: Manifest) -> None:
        self._stores[manifest.kind].put_manifest(manifest)

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        return self._stores[kind].log(kind, id, name)

    def delete(self, kind: Kind, id: str) -> None:
        self._stores[kind].delete(kind, id)

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        return self._stores[kind].lock(kind, id)


def dataset_store(
    repository: DatasetRepository,
    dataset_id: str,
    examples: Iterable[Example[Any, Any]],
    *,
    copied: bool = False,
) -> Store:
    """Return the store in which the engine finds the examples: the repository's own if its rows are what `examples` has, in the same
    order; else, and if they are to be `copied`, memory."""
    if isinstance(repository, StoredDatasetRepository) and not copied:
        store = repository.store_in_order(dataset_id)
        if store is not None:
            return store
    memory = MemoryStore()
    Datasets(memory).create(sorted_items(examples), name=dataset_id, id=dataset_id)
    return memory


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
        path, decode = self._path(dataset_id, ".jsonl"), row_decoder(JsonObject)
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
