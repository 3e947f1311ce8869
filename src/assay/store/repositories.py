"""The four artefacts for Python, over any Store: datasets, runs, evaluations, aggregations."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from assay.errors import StoreError, UserError
from assay.interfaces import Log, Store
from assay.records import (
    Evaluation,
    Item,
    JsonMapping,
    Kind,
    Manifest,
    MetricRow,
    Response,
    Segment,
)
from assay.registry import nearest
from assay.store.files import write_file
from assay.store.index import ItemIndex, content_hash
from assay.store.items import encode_item, normalise_all
from assay.store.seal import describe, seal
from assay.store.stores import directory_of, new_id
from assay.store.table.decode import read_blocks

T = TypeVar("T")


class _Repository:
    """What the four have in common."""

    kind: Kind

    def __init__(self, store: Store) -> None:
        self.store = store

    def ids(self) -> list[str]:
        """The ids of all artefacts, sorted."""
        return self.store.ids(self.kind)

    def get(self, id: str) -> Manifest | None:
        """What the artefact is, or None if there is none."""
        return self.store.manifest(self.kind, id)

    def delete(self, id: str) -> None:
        """Remove an artefact with all its rows; an unknown one is not an error."""
        self.store.delete(self.kind, id)

    def _known(self, id: str) -> Manifest:
        manifest = self.get(id)
        if manifest is None:
            raise UserError(f"there is no {self.kind} {id!r}", fix=nearest(id, self.ids()))
        return manifest

    def _rows(self, id: str, row: type[T]) -> Iterator[T]:
        self._known(id)
        return _decoded(self.store.log(self.kind, id), row)


class DatasetRepository(_Repository):
    """Datasets are immutable: `digest` in the manifest is the hash of their stored lines."""

    kind = "dataset"

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._last: tuple[str, list[Segment], ItemIndex] | None = None

    def create(
        self,
        rows: Iterable[JsonMapping | Item],
        *,
        name: str,
        id: str | None = None,
        labels: Iterable[str] = (),
        metadata: JsonMapping | None = None,
    ) -> Manifest:
        """Store rows of any shape (see `items`) as a dataset; an id that exists is refused."""
        own = new_id(self.store) if id is None else id
        with self.store.lock(self.kind, own):
            if self.get(own) is not None:
                raise UserError(
                    f"there is a dataset {own!r} already, and datasets do not change",
                    fix="give another id, or delete it first",
                )
            log = self.store.log(self.kind, own)
            log.replace(encode_item(item) + b"\n" for item in normalise_all(rows, name))
            try:
                index = ItemIndex(log, source=name)
            except UserError:
                log.replace([])
                raise
            now = time.time()
            manifest = Manifest(
                kind=self.kind,
                id=own,
                name=name,
                created=now,
                started=now,
                ended=now,
                complete=True,
                digest=index.content,
                planned=len(index),
                counts={"items": len(index)},
                labels=sorted(set(labels)),
                metadata=dict(metadata or {}),
            )
            seal(manifest, log)
            self.store.put_manifest(manifest)
        return manifest

    def items(self, id: str) -> Iterator[Item]:
        """The items in the order of their rows."""
        return iter(self.index(id))

    def item(self, id: str, item_id: str) -> Item | None:
        return self.index(id).get(item_id)

    def index(self, id: str) -> ItemIndex:
        """The dataset's items by id; a dataset whose bytes have changed is refused."""
        manifest = self._known(id)
        log = self.store.log(self.kind, id)
        segments = log.segments()
        if self._last is None or self._last[:2] != (id, segments):
            index = ItemIndex(log, source=manifest.name or id)
            _check_content(manifest, index.content)
            self._last = id, segments, index
        return self._last[2]

    def verify(self, id: str) -> None:
        """Refuse a dataset whose bytes are not those that were stored."""
        _check_content(self._known(id), content_hash(self.store.log(self.kind, id)))


class RunRepository(_Repository):
    kind = "run"

    def responses(self, id: str) -> Iterator[Response]:
        """The rows as they stand on disk: in the order in which the calls ended."""
        return self._rows(id, Response)


class EvaluationRepository(_Repository):
    kind = "evaluation"

    def evaluations(self, id: str) -> Iterator[Evaluation]:
        """The rows as they stand on disk."""
        return self._rows(id, Evaluation)


class AggregationRepository(_Repository):
    kind = "aggregation"

    def metrics(self, id: str) -> list[MetricRow]:
        """The rows; a file that is not as it was written is refused."""
        damage = self.store.log(self.kind, id).damage(self._known(id))
        if damage:
            raise StoreError(describe(damage[0]), fix="assay aggregate computes the metrics again")
        return list(self._rows(id, MetricRow))

    def write(self, id: str, rows: Iterable[MetricRow]) -> None:
        """Replace all metric rows: `metrics.jsonl`, and the same as a list in `metrics.json`."""
        lines = [msgspec.json.encode(row) for row in rows]
        self.store.log(self.kind, id).replace(line + b"\n" for line in lines)
        directory = directory_of(self.store, self.kind, id)
        if directory is not None:
            write_file(directory / "metrics.json", b"[\n" + b",\n".join(lines) + b"\n]\n")


def _decoded(log: Log, row: type[T]) -> Iterator[T]:
    for block in read_blocks(log, row):
        for line in block.unreadable:
            places = enumerate((place for place, _ in log.scan()), 1)
            number = next(at for at, place in places if place == line.position)
            raise StoreError(
                f"line {number} is not a row: {line.reason}",
                where=log.segments()[0].name,
                fix="run the step again: it sets such lines aside in rejected/ and repeats what was lost",
            )
        yield from block.rows


def _check_content(manifest: Manifest, found: str) -> None:
    if found != manifest.digest:
        raise UserError(
            f"the dataset {manifest.id!r} has changed since it was stored: "
            f"its hash was {manifest.digest} and is now {found}",
            fix="restore its file, or create a new dataset from the changed rows",
        )
