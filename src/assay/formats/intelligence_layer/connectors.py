"""What the original keeps beside its model clients, which are Assay's models: places where people label records, an
Argilla server (version 2), or files for those who have no server.

In files, a dataset is a folder with `questions.json`, which has what is asked, and `records.jsonl`: people fill in
`responses` of each line, such as `{"winner": 1}`.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from assay.errors import UserError, install_command
from assay.formats.intelligence_layer import names_of
from assay.formats.intelligence_layer.types import BadValue, extra, to_json
from assay.formats.intelligence_layer.types import JsonSerializable as JsonSerializable
from assay.formats.intelligence_layer.types import Record as _Record
from assay.formats.intelligence_layer.types import SerializableDict as SerializableDict
from assay.store.files import safe_name, write_file
from assay.store.log import FileLog

if TYPE_CHECKING:
    from assay.formats.intelligence_layer.models import (
        AlephAlphaClientProtocol as AlephAlphaClientProtocol,
    )

Parts = Sequence[Any]
"""Fields or questions, ours or Argilla's."""
_HOMES = {
    "connectors": (
        "ArgillaClient ArgillaEvaluation ArgillaWrapperClient FileArgillaClient JsonSerializable RatingQuestion Record "
        "RecordData SerializableDict TextField"
    ),
    "models": "AlephAlphaClientProtocol",
}
__path__: list[str] = []  # its modules are those of the table in `__init__`
__getattr__, __dir__ = names_of(__name__, _HOMES)


@dataclass(kw_only=True)
class ArgillaEvaluation(_Record):
    """What somebody answered to the questions about one record."""

    example_id: str
    record_id: str
    responses: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(kw_only=True)
class RecordData(_Record):
    """A record to be shown: its text by field; `metadata` comes back with the answers."""

    content: Mapping[str, str]
    example_id: str
    metadata: Mapping[str, str | int] = field(default_factory=dict[str, str | int])


@dataclass(kw_only=True)
class Record(RecordData):
    """A record that is stored."""

    id: str


@dataclass(kw_only=True)
class TextField(_Record):
    """A part of a record that people see; Argilla's own class can stand in its place."""

    name: str
    title: str


@dataclass(kw_only=True)
class RatingQuestion(_Record):
    """A question that is answered by one of several numbers; Argilla's own class can stand in its place."""

    name: str
    title: str
    description: str
    values: Sequence[int]


class ArgillaClient(ABC):
    """Implement this to have records labelled elsewhere."""

    @abstractmethod
    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Parts, questions: Parts
    ) -> str:
        """The id of a new dataset; a name that exists is an error."""

    @abstractmethod
    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Parts, questions: Parts
    ) -> str:
        """The id of the dataset of this name, which is created if there is none."""

    @abstractmethod
    def add_record(self, dataset_id: str, record: RecordData) -> None: ...

    def add_records(self, dataset_id: str, records: Sequence[RecordData]) -> None:
        for record in records:
            self.add_record(dataset_id, record)

    @abstractmethod
    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        """What has been answered by now."""

    @abstractmethod
    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        """Give each record the number of one of several parts, so that people can share the work."""


class ArgillaWrapperClient(ArgillaClient):
    """Address and key are by default those of ARGILLA_API_URL and ARGILLA_API_KEY."""

    def __init__(
        self, api_url: str | None = None, api_key: str | None = None, disable_warnings: bool = True
    ) -> None:
        self._argilla = extra(
            "argilla",
            "labelling on an Argilla server needs the package argilla",
            f"{install_command('argilla')}, or use FileArgillaClient, which needs no server",
        )
        if disable_warnings:
            import warnings

            warnings.filterwarnings("ignore", module="argilla.*")
        self.client: Any = self._argilla.Argilla(
            api_url=api_url if api_url is not None else os.getenv("ARGILLA_API_URL"),
            api_key=api_key if api_key is not None else os.getenv("ARGILLA_API_KEY"),
        )

    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Parts, questions: Parts
    ) -> str:
        settings = self._argilla.Settings(
            fields=[self._own(part) for part in fields],
            questions=[self._own(part) for part in questions],
            allow_extra_metadata=True,
        )
        if not self.client.workspaces(name=workspace_id):
            self._argilla.Workspace(name=workspace_id, client=self.client).create()
        dataset = self._argilla.Dataset(
            name=dataset_name, settings=settings, workspace=workspace_id, client=self.client
        )
        dataset.create()
        return str(dataset.id)

    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Parts, questions: Parts
    ) -> str:
        dataset = self.client.datasets(name=dataset_name, workspace=workspace_id)
        return (
            str(dataset.id)
            if dataset
            else self.create_dataset(workspace_id, dataset_name, fields, questions)
        )

    def add_record(self, dataset_id: str, record: RecordData) -> None:
        self.add_records(dataset_id, [record])

    def add_records(self, dataset_id: str, records: Sequence[RecordData]) -> None:
        made = [
            self._argilla.Record(
                fields=dict(record.content),
                metadata={**record.metadata, "example_id": record.example_id},
            )
            for record in records
        ]
        self._dataset(dataset_id).records.log(records=made)

    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        answered = self._argilla.Query(
            filter=self._argilla.Filter([("response.status", "==", "submitted")])
        )
        for record in self._dataset(dataset_id).records(query=answered):
            metadata = dict(record.metadata)
            yield ArgillaEvaluation(
                example_id=metadata.pop("example_id"),
                record_id=str(record.id),
                responses={
                    answer.question_name: answer.value
                    for answer in record.responses
                    if answer is not None
                },
                metadata=metadata,
            )

    def records(self, dataset_id: str) -> Iterable[Record]:
        """Everything that was added, answered or not."""
        for record in self._dataset(dataset_id).records:
            metadata = dict(record.metadata)
            yield Record(
                id=str(record.id),
                example_id=metadata["example_id"],
                content=record.fields,
                metadata=metadata,
            )

    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        dataset = self._dataset(dataset_id)
        for part in [kept for kept in dataset.settings.metadata if kept.name == "split"]:
            part.delete()
        if n_splits > 1:
            part = self._argilla.IntegerMetadataProperty(
                name="split", visible_for_annotators=True, min=1, max=n_splits
            )
            dataset.settings.metadata = [part]
            dataset.update()
        records = list(dataset.records)
        for record, number in zip(records, cycle(range(1, n_splits + 1)), strict=False):
            if n_splits > 1:
                record.metadata["split"] = number
            elif "split" in record.metadata:
                del record.metadata["split"]
        dataset.records.log(records)

    def _own(self, part: Any) -> Any:
        """Argilla's class for a field or a question of ours."""
        if isinstance(part, TextField):
            return self._argilla.TextField(name=part.name, title=part.title, client=self.client)
        if isinstance(part, RatingQuestion):
            return self._argilla.RatingQuestion(
                name=part.name,
                title=part.title,
                description=part.description,
                values=list(part.values),
                client=self.client,
            )
        return part

    def _dataset(self, dataset_id: str) -> Any:
        dataset = self.client.datasets(id=dataset_id)
        if not dataset:
            raise BadValue(f"the Argilla server has no dataset {dataset_id!r}")
        dataset.settings.get()  # without its settings, a dataset of version 2 does not know its questions
        return dataset


class FileArgillaClient(ArgillaClient):
    """`directory` has a folder for each dataset, named by its id."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)

    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Parts, questions: Parts
    ) -> str:
        if self._named(workspace_id, dataset_name) is not None:
            raise BadValue(f"the workspace {workspace_id!r} has a dataset {dataset_name!r} already")
        dataset_id = str(uuid4())
        about = {
            "workspace": workspace_id,
            "name": dataset_name,
            "fields": [_described(part) for part in fields],
            "questions": [_described(part) for part in questions],
        }
        write_file(
            self._folder(dataset_id) / "questions.json",
            json.dumps(about, indent=2).encode() + b"\n",
        )
        return dataset_id

    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Parts, questions: Parts
    ) -> str:
        dataset_id = self._named(workspace_id, dataset_name)
        return dataset_id or self.create_dataset(workspace_id, dataset_name, fields, questions)

    def add_record(self, dataset_id: str, record: RecordData) -> None:
        if not (self._folder(dataset_id) / "questions.json").is_file():
            raise BadValue(f"there is no dataset {dataset_id!r}", where=str(self.directory))
        line = msgspec.json.encode({"id": str(uuid4()), **to_json(record), "responses": {}})
        self._records(dataset_id).append(line + b"\n")

    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        for row in self._rows(dataset_id):
            if row.get("responses"):
                yield ArgillaEvaluation(
                    example_id=row["example_id"],
                    record_id=row["id"],
                    responses=row["responses"],
                    metadata=row["metadata"],
                )

    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        parts = cycle(range(1, n_splits + 1))
        rows = list(self._rows(dataset_id))
        for row in rows:
            row["metadata"].pop("split", None)
            if n_splits > 1:
                row["metadata"]["split"] = next(parts)
        self._records(dataset_id).replace(msgspec.json.encode(row) + b"\n" for row in rows)

    def _rows(self, dataset_id: str) -> Iterator[dict[str, Any]]:
        log = self._records(dataset_id)
        for number, (_, line) in enumerate(log.scan(), 1):
            if not line.strip():
                continue
            try:
                yield msgspec.json.decode(line)
            except ValueError as error:
                raise UserError(
                    f"line {number} is not JSON: {error}", where=str(log.path)
                ) from None

    def _records(self, dataset_id: str) -> FileLog:
        return FileLog(self._folder(dataset_id) / "records.jsonl")

    def _folder(self, dataset_id: str) -> Path:
        return self.directory / safe_name(dataset_id)

    def _named(self, workspace: str, name: str) -> str | None:
        for file in sorted(self.directory.glob("*/questions.json")):
            about = json.loads(file.read_bytes())
            if (about["workspace"], about["name"]) == (workspace, name):
                return file.parent.name
        return None


def _described(part: Any) -> Any:
    """A field or a question as JSON, ours or Argilla's."""
    serialise = getattr(part, "serialize", None)
    return serialise() if serialise is not None else to_json(part)
