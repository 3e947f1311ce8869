"""Evaluations in files: ours in a folder, and the original's layout, `evaluations/<id>.json` for the overview and
`<id>/<example>.json` for each result.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from assay.formats.intelligence_layer.dataset_files import FileSystemBasedRepository, LocalFileSystem
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
    PartialEvaluationOverview,
)
from assay.formats.intelligence_layer.evaluations import (
    EvaluationRepository,
    StoredEvaluationRepository,
    StoredPartials,
)
from assay.formats.intelligence_layer.types import BadValue, from_json, to_json
from assay.store.names import safe_name
from assay.store.stores import MANIFEST, FolderStore


class FileSystemEvaluationRepository(FileSystemBasedRepository, EvaluationRepository):
    """An id that is not a plain file name is encoded; the true one stands in the file."""

    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None:
        path = self._path(evaluation_overview.id, ".json")
        self.write_utf8(path, evaluation_overview.model_dump_json(indent=2), create_parents=True)
        self.mkdir(self._path(evaluation_overview.id))

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        path = self._path(evaluation_id, ".json")
        return EvaluationOverview.model_validate_json(self.read_utf8(path)) if self.exists(path) else None

    def evaluation_overview_ids(self) -> Sequence[str]:
        names = self.file_names(self._folder())
        return sorted(json.loads(self.read_utf8(self._folder() / f"{name}.json"))["id"] for name in names)

    def partial_evaluation_overview(self, partial_evaluation_id: str) -> PartialEvaluationOverview | None:
        path = self._path(partial_evaluation_id, ".partial_json")
        return PartialEvaluationOverview.model_validate_json(self.read_utf8(path)) if self.exists(path) else None

    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        return sorted(self.file_names(self._folder(), "partial_json"))

    def store_example_evaluation(self, example_evaluation: ExampleEvaluation[Evaluation]) -> None:
        row = {
            "evaluation_id": example_evaluation.evaluation_id,
            "example_id": example_evaluation.example_id,
            "is_exception": isinstance(example_evaluation.result, FailedExampleEvaluation),
            "json_result": json.dumps(to_json(example_evaluation.result)),
        }
        path = self._path(example_evaluation.evaluation_id) / f"{safe_name(example_evaluation.example_id)}.json"
        self.write_utf8(path, json.dumps(row, indent=2), create_parents=True)

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | None:
        self._refuse_unknown(evaluation_id)
        path = self._path(evaluation_id) / f"{safe_name(example_id)}.json"
        rows = [json.loads(self.read_utf8(path))] if self.exists(path) else self._rows(evaluation_id)
        return next((_result(row, evaluation_type) for row in rows if row["example_id"] == example_id), None)

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        self._refuse_unknown(evaluation_id)
        results = (_result(row, evaluation_type) for row in self._rows(evaluation_id))
        return sorted(results, key=lambda each: each.example_id)

    def has(self, evaluation_id: str) -> bool:
        """Whether there is an evaluation in this layout: the folder of one in ours has a manifest or rows."""
        folder = self._path(evaluation_id)
        if not self.exists(folder) or self.exists(folder / MANIFEST):
            return False
        return self.exists(self._path(evaluation_id, ".json")) or bool(self.file_names(folder))

    def _rows(self, evaluation_id: str) -> Iterator[dict[str, Any]]:
        """All results. The original did not encode ids, so the name of a file may not be what its id is encoded to."""
        folder = self._path(evaluation_id)
        return (json.loads(self.read_utf8(folder / f"{name}.json")) for name in self.file_names(folder))

    def _refuse_unknown(self, evaluation_id: str) -> None:
        if not self.exists(self._path(evaluation_id)):
            raise BadValue(f"the repository has no evaluation {evaluation_id!r}")

    def _folder(self) -> Path:
        return self._root_directory / "evaluations"

    def _path(self, evaluation_id: str, ending: str = "") -> Path:
        return self._folder() / f"{safe_name(evaluation_id)}{ending}"


def _result(row: dict[str, Any], evaluation_type: type[Evaluation]) -> ExampleEvaluation[Evaluation]:
    kind: Any = FailedExampleEvaluation if row["is_exception"] else evaluation_type
    result = from_json(json.loads(row["json_result"]), kind)
    return ExampleEvaluation(evaluation_id=row["evaluation_id"], example_id=row["example_id"], result=result)


class FileEvaluationRepository(StoredEvaluationRepository):
    def __init__(self, root_directory: Path) -> None:
        super().__init__(FolderStore(root_directory))
        self._original = FileSystemEvaluationRepository(LocalFileSystem(), Path(root_directory))

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        return super().evaluation_overview(evaluation_id) or self._original.evaluation_overview(evaluation_id)

    def evaluation_overview_ids(self) -> Sequence[str]:
        """FileNotFoundError, as in the original, where no evaluation was ever stored."""
        return sorted({*self._original.evaluation_overview_ids(), *super().evaluation_overview_ids()})

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | None:
        if self._original.has(evaluation_id):
            return self._original.example_evaluation(evaluation_id, example_id, evaluation_type)
        return super().example_evaluation(evaluation_id, example_id, evaluation_type)

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        if self._original.has(evaluation_id):
            return self._original.example_evaluations(evaluation_id, evaluation_type)
        return super().example_evaluations(evaluation_id, evaluation_type)

    def has_own_rows(self, evaluation_id: str) -> bool:
        return super().has_own_rows(evaluation_id) and not self._original.has(evaluation_id)


class AsyncFileEvaluationRepository(FileEvaluationRepository, StoredPartials):
    def partial_evaluation_overview(self, partial_evaluation_id: str) -> PartialEvaluationOverview | None:
        stored = super().partial_evaluation_overview(partial_evaluation_id)
        return stored or self._original.partial_evaluation_overview(partial_evaluation_id)

    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        return sorted({*self._original.partial_evaluation_overview_ids(), *super().partial_evaluation_overview_ids()})
