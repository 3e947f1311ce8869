"""What all evaluators share: the types of their logic, and each example with its outputs, in the order of the runs."""

import warnings
from abc import ABC
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, Literal

from assay.formats.intelligence_layer.core.task import Input, Output
from assay.formats.intelligence_layer.evaluation.dataset.dataset_repository import DatasetRepository
from assay.formats.intelligence_layer.evaluation.dataset.domain import Example, ExpectedOutput
from assay.formats.intelligence_layer.evaluation.evaluation.domain import Evaluation
from assay.formats.intelligence_layer.evaluation.evaluation.evaluation_repository import EvaluationRepository
from assay.formats.intelligence_layer.evaluation.infrastructure.repository_navigator import (
    EvaluationLineage,
    RepositoryNavigator,
)
from assay.formats.intelligence_layer.evaluation.run.domain import (
    ExampleOutput,
    FailedExampleRun,
    RunOverview,
    SuccessfulExampleOutput,
)
from assay.formats.intelligence_layer.evaluation.run.run_repository import RunRepository
from assay.formats.intelligence_layer.generics import arguments_of, settled
from assay.formats.intelligence_layer.types import BadValue

Items = Literal["refuse", "intersection"]
"""What to do about runs that cover different examples."""


class EvaluationLogicBase(Generic[Input, Output, ExpectedOutput, Evaluation]):
    """What gives the four types their places."""


class Cases(Iterable[tuple[Example[Any, Any], Sequence[SuccessfulExampleOutput[Any]]]]):
    """Each example with its successful outputs. Examples and outputs both come sorted by id, so they are merged as they
    are read. `skipped` counts the examples left out because a run failed on them."""

    def __init__(
        self,
        examples: Iterable[Example[Any, Any]],
        outputs: Sequence[Iterable[ExampleOutput[Any]]],
        skip_example_on_any_failure: bool,
        num_examples: int | None,
    ) -> None:
        self._examples = examples
        self._outputs = [_Outputs(each) for each in outputs]
        self._skip = skip_example_on_any_failure
        self._limit = num_examples
        self.skipped = 0

    def __iter__(self) -> Iterator[tuple[Example[Any, Any], Sequence[SuccessfulExampleOutput[Any]]]]:
        given = 0
        for example in self._examples:
            if self._limit and given >= self._limit:
                return
            outputs = [each.of(example.id) for each in self._outputs]
            if any(output is None for output in outputs):
                continue  # a run over part of the dataset
            successful = [_successful(each) for each in outputs if each and not _failed(each)]
            if self._skip and len(successful) < len(outputs):
                self.skipped += 1
                continue
            given += 1
            yield example, successful
        for each in self._outputs:
            each.refuse_rest()


class _Outputs:
    """The outputs of one run, asked for example by example."""

    def __init__(self, outputs: Iterable[ExampleOutput[Any]]) -> None:
        self._rest = iter(outputs)
        self._next = next(self._rest, None)

    def of(self, example_id: str) -> ExampleOutput[Any] | None:
        found = self._next
        if found is None or found.example_id > example_id:
            return None
        if found.example_id < example_id:
            self.refuse_rest()
        self._next = next(self._rest, None)
        return found

    def refuse_rest(self) -> None:
        if self._next is not None:
            raise BadValue(
                f"the ids of example and output do not match: the run {self._next.run_id!r} has an output for "
                f"{self._next.example_id!r}, which is no example of its dataset",
                fix="run the task again on this dataset",
            )


class EvaluatorBase(ABC, Generic[Input, Output, ExpectedOutput, Evaluation]):
    """Reads what a logic needs. The four types come from the type arguments of the logic's class."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        evaluation_logic: EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation],
    ) -> None:
        self._dataset_repository = dataset_repository
        self._run_repository = run_repository
        self._evaluation_repository = evaluation_repository
        self._evaluation_logic: Any = evaluation_logic
        self.description = description

    @cached_property
    def _types(self) -> dict[str, Any]:
        return arguments_of(type(self._evaluation_logic), EvaluationLogicBase)

    def input_type(self) -> type[Input]:
        return settled(self, self._types, "Input", "input_type")

    def output_type(self) -> type[Output]:
        return settled(self, self._types, "Output", "output_type")

    def expected_output_type(self) -> type[ExpectedOutput]:
        return settled(self, self._types, "ExpectedOutput", "expected_output_type")

    def evaluation_type(self) -> type[Evaluation]:
        return settled(self, self._types, "Evaluation", "evaluation_type")

    def failed_evaluations(
        self, evaluation_id: str
    ) -> Iterable[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        """The lineages of the examples that could not be evaluated."""
        failed = self._evaluation_repository.failed_example_evaluations(evaluation_id, self.evaluation_type())
        lineages = (self.evaluation_lineage(evaluation_id, each.example_id) for each in failed)
        return (lineage for lineage in lineages if lineage is not None)

    def evaluation_lineages(
        self, evaluation_id: str
    ) -> Iterable[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        return self._navigator().evaluation_lineages(
            evaluation_id, self.input_type(), self.expected_output_type(), self.output_type(), self.evaluation_type()
        )

    def evaluation_lineage(
        self, evaluation_id: str, example_id: str
    ) -> EvaluationLineage[Input, ExpectedOutput, Output, Evaluation] | None:
        return self._navigator().evaluation_lineage(
            evaluation_id,
            example_id,
            self.input_type(),
            self.expected_output_type(),
            self.output_type(),
            self.evaluation_type(),
        )

    def _navigator(self) -> RepositoryNavigator:
        return RepositoryNavigator(self._dataset_repository, self._run_repository, self._evaluation_repository)

    def _load_run_overviews(self, *run_ids: str) -> list[RunOverview]:
        """The runs in the order of the arguments; an id that is given twice is one run."""
        if not run_ids:
            raise BadValue("At least one run-id needs to be provided", fix="name the runs to evaluate")
        overviews: list[RunOverview] = []
        for run_id in dict.fromkeys(run_ids):
            overview = self._run_repository.run_overview(run_id)
            if overview is None:
                raise BadValue(f"No RunOverview found for run-id: {run_id}")
            overviews.append(overview)
        return overviews

    def _retrieve_eval_logic_input(
        self,
        run_overviews: Sequence[RunOverview],
        skip_example_on_any_failure: bool,
        num_examples: int | None = None,
        items: Items = "refuse",
    ) -> Cases:
        datasets = {run.dataset_id for run in run_overviews}
        if len(datasets) > 1:
            raise BadValue(
                f"All run overviews must reference the same dataset, found {', '.join(sorted(datasets))}",
                fix="evaluate the runs of each dataset by themselves",
            )
        self._check_coverage(run_overviews, items)
        output_type = self.output_type()
        examples = self._dataset_repository.examples(
            run_overviews[0].dataset_id, self.input_type(), self.expected_output_type()
        )
        outputs = [self._run_repository.example_outputs(run.id, output_type) for run in run_overviews]
        return Cases(examples, outputs, skip_example_on_any_failure, num_examples)

    def _check_coverage(self, run_overviews: Sequence[RunOverview], items: Items) -> None:
        """Runs over different examples are compared only if that is wanted, and never silently."""
        if len(run_overviews) == 1:
            return
        totals = {run.id: run.failed_example_count + run.successful_example_count for run in run_overviews}
        covered = [set(self._run_repository.example_output_ids(run.id)) for run in run_overviews]
        common = set[str].intersection(*covered)
        lacking = len(set[str].union(*covered)) - len(common)
        if items == "intersection":
            if lacking:
                warnings.warn(
                    f"the runs share {len(common)} examples; {lacking} that not all of them have are left out",
                    stacklevel=4,
                )
        elif lacking or len(set(totals.values())) > 1:
            shown = ", ".join(f"{run}: {total}" for run, total in totals.items())
            raise BadValue(
                f"All run overviews must contain the same number of items and the same examples: {shown}; "
                f"{lacking} examples are not in all of them",
                fix='complete the runs, or compare what they share with items="intersection"',
            )


def _failed(output: ExampleOutput[Any]) -> bool:
    return isinstance(output.output, FailedExampleRun)


def _successful(output: ExampleOutput[Any]) -> SuccessfulExampleOutput[Any]:
    found = SuccessfulExampleOutput(run_id=output.run_id, example_id=output.example_id, output=output.output)
    found.key = output.key
    return found
