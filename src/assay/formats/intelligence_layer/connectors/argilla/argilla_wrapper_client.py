"""An Argilla server (version 2) as a place where people label records."""

import os
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

from assay.errors import UserError
from assay.formats.intelligence_layer.connectors.argilla.argilla_client import (
    ArgillaClient,
    ArgillaEvaluation,
    RatingQuestion,
    Record,
    RecordData,
    TextField,
)
from assay.formats.intelligence_layer.types import BadValue


class ArgillaWrapperClient(ArgillaClient):
    """Address and key are by default those of ARGILLA_API_URL and ARGILLA_API_KEY."""

    def __init__(self, api_url: str | None = None, api_key: str | None = None, disable_warnings: bool = True) -> None:
        self._argilla = _argilla()
        if disable_warnings:
            import warnings

            warnings.filterwarnings("ignore", module="argilla.*")
        self.client: Any = self._argilla.Argilla(
            api_url=api_url if api_url is not None else os.getenv("ARGILLA_API_URL"),
            api_key=api_key if api_key is not None else os.getenv("ARGILLA_API_KEY"),
        )

    def create_dataset(
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        settings = self._argilla.Settings(
            fields=[self._own(each) for each in fields],
            questions=[self._own(each) for each in questions],
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
        self, workspace_id: str, dataset_name: str, fields: Sequence[Any], questions: Sequence[Any]
    ) -> str:
        known = self.client.datasets(name=dataset_name, workspace=workspace_id)
        return str(known.id) if known else self.create_dataset(workspace_id, dataset_name, fields, questions)

    def add_record(self, dataset_id: str, record: RecordData) -> None:
        self.add_records(dataset_id, [record])

    def add_records(self, dataset_id: str, records: Sequence[RecordData]) -> None:
        made = [
            self._argilla.Record(
                fields=dict(record.content), metadata={**record.metadata, "example_id": record.example_id}
            )
            for record in records
        ]
        self._dataset(dataset_id).records.log(records=made)

    def evaluations(self, dataset_id: str) -> Iterable[ArgillaEvaluation]:
        answered = self._argilla.Query(filter=self._argilla.Filter([("response.status", "==", "submitted")]))
        for record in self._dataset(dataset_id).records(query=answered):
            metadata = dict(record.metadata)
            yield ArgillaEvaluation(
                example_id=metadata.pop("example_id"),
                record_id=str(record.id),
                responses={each.question_name: each.value for each in record.responses if each is not None},
                metadata=metadata,
            )

    def records(self, dataset_id: str) -> Iterable[Record]:
        """Everything that was added, answered or not."""
        for record in self._dataset(dataset_id).records:
            metadata = dict(record.metadata)
            yield Record(id=str(record.id), example_id=metadata["example_id"], content=record.fields, metadata=metadata)

    def split_dataset(self, dataset_id: str, n_splits: int) -> None:
        dataset = self._dataset(dataset_id)
        for known in [each for each in dataset.settings.metadata if each.name == "split"]:
            known.delete()
        if n_splits > 1:
            part = self._argilla.IntegerMetadataProperty(name="split", visible_for_annotators=True, min=1, max=n_splits)
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


def _argilla() -> Any:
    try:
        import argilla  # type: ignore[import-not-found]
    except ImportError:
        raise UserError(
            "labelling on an Argilla server needs the package argilla, which is not installed",
            fix="pip install 'assay[argilla]', or use FileArgillaClient, which needs no server",
        ) from None
    return argilla
