"""Labelling by people over files, for those who have no server.

A dataset is a folder with `questions.json`, which says what is asked, and `records.jsonl`: whoever labels fills in
`responses` of each line, such as `{"winner": 1}`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from assay.errors import UserError
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import (
    ArgillaClient,
    ArgillaEvaluation,
    RecordData,
)
from assay.formats.intelligence_layer.types import BadValue, to_json
from assay.store.files import write_file
from assay.store.log import FileLog
from assay.store.names import safe_name


class FileArgillaClient(ArgillaClient):
    """`directory` has a folder for each dataset, named by its id."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(directory)

    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        if self._named(workspace_id, dataset_name) is not None:
            raise BadValue(f"the workspace {workspace_id!r} has a dataset {dataset_name!r} already")
        dataset_id = str(uuid4())
        about = {
            "workspace": workspace_id,
            "name": dataset_name,
            "fields": [_described(each) for each in fields],
            "questions": [_described(each) for each in questions],
        }
        write_file(self._folder(dataset_id) / "questions.json", json.dumps(about, indent=2).encode() + b"\n")
        return dataset_id

    def ensure_dataset_exists(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        known = self._named(workspace_id, dataset_name)
        return known or self.create_dataset(workspace_id, dataset_name, fields, questions)

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
                raise UserError(f"line {number} is not JSON: {error}", where=str(log.path)) from None

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
