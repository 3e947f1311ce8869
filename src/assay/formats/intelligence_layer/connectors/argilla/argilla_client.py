"""What an evaluator needs of a place where people label records, and the records themselves."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.formats.intelligence_layer.record import Record as _Record


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
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        """The id of a new dataset; a name that exists is an error."""

    @abstractmethod
    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
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
