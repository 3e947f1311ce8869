"""What every place for evaluations can do. Implement this to keep evaluations elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
)


@dataclass
class OpenEvaluation:
    """An evaluation that is being made. `failed` has the examples that need not be evaluated again, each with whether
    its result is a failure."""

    id: str
    failed: Mapping[str, bool] = field(default_factory=dict[str, bool])


class EvaluationRepository(ABC):
    """Keeps the results of examples and, when an evaluation is finished, its overview. An unknown evaluation is a
    ValueError where results are asked for, and None where its overview is."""

    def initialize_evaluation(self) -> str:
        """The id of a new evaluation."""
        return str(uuid4())

    @contextmanager
    def open_evaluation(self, digest: str) -> Generator[OpenEvaluation]:
        """A new evaluation; or, in a repository that knows, the one of the same digest that was begun, is not finished
        and that nobody is at."""
        yield OpenEvaluation(self.initialize_evaluation())

    @abstractmethod
    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None: ...

    @abstractmethod
    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None: ...

    def evaluation_overviews(self) -> Iterable[EvaluationOverview]:
        """All overviews, sorted by id."""
        for evaluation_id in self.evaluation_overview_ids():
            overview = self.evaluation_overview(evaluation_id)
            if overview is not None:
                yield overview

    @abstractmethod
    def evaluation_overview_ids(self) -> Sequence[str]:
        """The ids of all overviews, sorted."""
        ...

    @abstractmethod
    def store_example_evaluation(self, example_evaluation: ExampleEvaluation[Evaluation]) -> None: ...

    @abstractmethod
    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | None: ...

    @abstractmethod
    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        """All results, sorted by the ids of their examples."""
        ...

    def successful_example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        found = self.example_evaluations(evaluation_id, evaluation_type)
        return [each for each in found if not isinstance(each.result, FailedExampleEvaluation)]

    def failed_example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        found = self.example_evaluations(evaluation_id, evaluation_type)
        return [each for each in found if isinstance(each.result, FailedExampleEvaluation)]
