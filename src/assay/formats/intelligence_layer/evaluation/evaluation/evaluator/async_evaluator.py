"""Evaluations by somebody who takes time, such as people: submitted now, retrieved later."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from assay.formats.intelligence_layer.core.task import Input, Output
from assay.formats.intelligence_layer.evaluation.dataset.domain import ExpectedOutput
from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    EvaluationOverview,
    PartialEvaluationOverview,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluation_repository import EvaluationRepository
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.base_evaluator import EvaluatorBase


class AsyncEvaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """What could not be submitted, and what was submitted and not answered yet, counts as failed."""

    @abstractmethod
    def submit(
        self, *run_ids: str, num_examples: int | None = None, abort_on_error: bool = False
    ) -> PartialEvaluationOverview:
        """Hand the outputs of these runs over."""

    @abstractmethod
    def retrieve(self, partial_overview_id: str) -> EvaluationOverview:
        """Store what is back by now; may be called again later."""


class AsyncEvaluationRepository(EvaluationRepository):
    """Keeps the overviews of what was submitted beside those of what came back."""

    @abstractmethod
    def store_partial_evaluation_overview(self, partial_evaluation_overview: PartialEvaluationOverview) -> None: ...

    @abstractmethod
    def partial_evaluation_overview(self, partial_evaluation_id: str) -> PartialEvaluationOverview | None: ...

    def partial_evaluation_overviews(self) -> Iterable[PartialEvaluationOverview]:
        """All of them, sorted by id."""
        for evaluation_id in self.partial_evaluation_overview_ids():
            overview = self.partial_evaluation_overview(evaluation_id)
            if overview is not None:
                yield overview

    @abstractmethod
    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        """Their ids, sorted."""
        ...
