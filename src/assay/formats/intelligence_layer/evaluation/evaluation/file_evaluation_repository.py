"""Evaluations in a folder, `evaluations/<id>/` of a repository root; evaluations that the original wrote are read."""

from collections.abc import Sequence
from pathlib import Path

from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    PartialEvaluationOverview,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.async_evaluator import AsyncEvaluationRepository
from assay.formats.intelligence_layer.evaluation.evaluation.file_system_evaluation_repository import (
    FileSystemEvaluationRepository as FileSystemEvaluationRepository,
)
from assay.formats.intelligence_layer.evaluation.evaluation.stored_evaluation_repository import (
    StoredEvaluationRepository,
    StoredPartials,
)
from assay.formats.intelligence_layer.evaluation.infrastructure.file_system_based_repository import LocalFileSystem
from assay.store.stores import FolderStore


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


class AsyncFileEvaluationRepository(FileEvaluationRepository, StoredPartials, AsyncEvaluationRepository):
    def partial_evaluation_overview(self, partial_evaluation_id: str) -> PartialEvaluationOverview | None:
        stored = super().partial_evaluation_overview(partial_evaluation_id)
        return stored or self._original.partial_evaluation_overview(partial_evaluation_id)

    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        return sorted({*self._original.partial_evaluation_overview_ids(), *super().partial_evaluation_overview_ids()})
