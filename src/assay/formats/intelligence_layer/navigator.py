"""Lineages: an example with what became of it in each step, joined from several repositories by its id.

A lineage shows itself as a tree in a notebook, and many of them as a pandas frame; an empty list gives an empty frame
with the same columns.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal

from assay.errors import install_command
from assay.formats.intelligence_layer.datasets import DatasetRepository
from assay.formats.intelligence_layer.domain import (
    AggregationOverview,
    Evaluation,
    EvaluationOverview,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    ExpectedOutput,
    RunOverview,
    in_order,
)
from assay.formats.intelligence_layer.evaluations import EvaluationRepository
from assay.formats.intelligence_layer.runs import RunRepository
from assay.formats.intelligence_layer.tracer import Tracer
from assay.formats.intelligence_layer.types import (
    BadValue,
    Input,
    Output,
    extra,
    show,
    to_json,
    tree,
)

if TYPE_CHECKING:
    import pandas as pd


_EXAMPLE = ("input", "expected_output", "metadata")
Items = Literal["refuse", "intersection"]
"""What to do about runs that cover different examples."""


@dataclass(eq=False, repr=False)
class RunLineage(Generic[Input, ExpectedOutput, Output]):
    """An example and what one run made of it."""

    example: Example[Input, ExpectedOutput]
    output: ExampleOutput[Output]
    tracer: Tracer | None = None

    def _rich_render(self) -> Any:
        return tree(
            "Run Lineage",
            self.example._rich_render(),
            self.output._rich_render(skip_example_id=True),
        )

    def _ipython_display_(self) -> None:
        show(self._rich_render())


@dataclass(eq=False, repr=False)
class EvaluationLineage(Generic[Input, ExpectedOutput, Output, Evaluation]):
    """An example, what the runs made of it, and how that was evaluated."""

    example: Example[Input, ExpectedOutput]
    outputs: Sequence[ExampleOutput[Output]]
    evaluation: ExampleEvaluation[Evaluation]
    tracers: Sequence[Tracer | None]

    def _rich_render(self) -> Any:
        outputs = tree(
            "Outputs", *(output._rich_render(skip_example_id=True) for output in self.outputs)
        )
        evaluation = self.evaluation._rich_render(skip_example_id=True)
        return tree("Run Lineage", self.example._rich_render(), outputs, evaluation)

    def _ipython_display_(self) -> None:
        show(self._rich_render())


class RepositoryNavigator:
    """An unknown run or evaluation is a ValueError; an example that lacks a part has no lineage."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository | None = None,
    ) -> None:
        self._dataset_repository = dataset_repository
        self._run_repository = run_repository
        self._evaluation_repository = evaluation_repository

    def run_lineages(
        self,
        run_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
    ) -> Iterable[RunLineage[Input, ExpectedOutput, Output]]:
        """The lineages of all examples that the run has an output for, in the order of the examples."""
        run = self._run(run_id)
        outputs = {
            output.example_id: output
            for output in self._run_repository.example_outputs(run_id, output_type)
        }
        examples = self._dataset_repository.examples(
            run.dataset_id, input_type, expected_output_type
        )
        for example in examples:
            if example.id in outputs:
                tracer = self._run_repository.example_tracer(run_id, example.id)
                yield RunLineage(example, outputs[example.id], tracer)

    def run_lineage(
        self,
        run_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
    ) -> RunLineage[Input, ExpectedOutput, Output] | None:
        run = self._run(run_id)
        example = self._dataset_repository.example(
            run.dataset_id, example_id, input_type, expected_output_type
        )
        output = (
            None
            if example is None
            else self._run_repository.example_output(run_id, example_id, output_type)
        )
        if example is None or output is None:
            return None
        return RunLineage(example, output, self._run_repository.example_tracer(run_id, example_id))

    def evaluation_lineages(
        self,
        evaluation_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
        evaluation_type: type[Evaluation],
    ) -> Iterable[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        """The lineages of all examples that the evaluation has a result for, in the order of the results."""
        repository, overview = self._evaluation(evaluation_id)
        lineages: dict[str, list[RunLineage[Input, ExpectedOutput, Output]]] = {}
        for run in in_order(overview.run_overviews):
            for lineage in self.run_lineages(run.id, input_type, expected_output_type, output_type):
                lineages.setdefault(lineage.example.id, []).append(lineage)
        for evaluation in repository.example_evaluations(evaluation_id, evaluation_type):
            joined = lineages.get(evaluation.example_id)
            if joined:
                yield _joined(joined, evaluation)

    def evaluation_lineage(
        self,
        evaluation_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
        evaluation_type: type[Evaluation],
    ) -> EvaluationLineage[Input, ExpectedOutput, Output, Evaluation] | None:
        repository, overview = self._evaluation(evaluation_id)
        lineages = (
            self.run_lineage(run.id, example_id, input_type, expected_output_type, output_type)
            for run in in_order(overview.run_overviews)
        )
        runs = [lineage for lineage in lineages if lineage is not None]
        evaluation = (
            repository.example_evaluation(evaluation_id, example_id, evaluation_type)
            if runs
            else None
        )
        return None if evaluation is None else _joined(runs, evaluation)

    def runs(self, *run_ids: str) -> list[RunOverview]:
        """The runs in the order of the arguments; an id that is given twice is one run."""
        if not run_ids:
            raise BadValue(
                "At least one run-id needs to be provided", fix="name the runs to evaluate"
            )
        overviews: list[RunOverview] = []
        for run_id in dict.fromkeys(run_ids):
            overview = self._run_repository.run_overview(run_id)
            if overview is None:
                raise BadValue(f"No RunOverview found for run-id: {run_id}")
            overviews.append(overview)
        return overviews

    def common_dataset(self, run_overviews: Sequence[RunOverview], items: Items) -> str:
        """The one dataset of runs that can be evaluated together."""
        datasets = {run.dataset_id for run in run_overviews}
        if len(datasets) > 1:
            raise BadValue(
                f"All run overviews must reference the same dataset, found {', '.join(sorted(datasets))}",
                fix="evaluate the runs of each dataset by themselves",
            )
        self._check_coverage(run_overviews, items)
        return run_overviews[0].dataset_id

    def _check_coverage(self, run_overviews: Sequence[RunOverview], items: Items) -> None:
        """Runs over different examples are compared only if that is wanted, and never silently."""
        if len(run_overviews) == 1:
            return
        totals = {
            run.id: run.failed_example_count + run.successful_example_count for run in run_overviews
        }
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

    def _run(self, run_id: str) -> RunOverview:
        overview = self._run_repository.run_overview(run_id)
        if overview is None:
            raise BadValue(f"the run repository has no run {run_id!r}")
        return overview

    def _evaluation(self, evaluation_id: str) -> tuple[EvaluationRepository, EvaluationOverview]:
        if self._evaluation_repository is None:
            raise BadValue(
                "there is no evaluation repository", fix="give it to the RepositoryNavigator"
            )
        overview = self._evaluation_repository.evaluation_overview(evaluation_id)
        if overview is None:
            raise BadValue(f"the evaluation repository has no evaluation {evaluation_id!r}")
        return self._evaluation_repository, overview


def _joined(
    lineages: Sequence[RunLineage[Input, ExpectedOutput, Output]],
    evaluation: ExampleEvaluation[Evaluation],
) -> EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]:
    return EvaluationLineage(
        lineages[0].example,
        [lineage.output for lineage in lineages],
        evaluation,
        [lineage.tracer for lineage in lineages],
    )


def run_lineages_to_pandas(run_lineages: "Sequence[RunLineage[Any, Any, Any]]") -> "pd.DataFrame":
    """One row for each lineage, indexed by example and run."""
    columns = ["example_id", "run_id", *_EXAMPLE, "output", "lineage"]
    rows = (
        (
            lineage.example.id,
            lineage.output.run_id,
            *_example(lineage.example),
            lineage.output.output,
            lineage,
        )
        for lineage in run_lineages
    )
    return _frame(rows, columns, columns[:2])


def evaluation_lineages_to_pandas(
    evaluation_lineages: "Sequence[EvaluationLineage[Any, Any, Any, Any]]",
) -> "pd.DataFrame":
    """One row for each output of each lineage, indexed by example, evaluation and run."""
    columns = [
        "example_id",
        "evaluation_id",
        "run_id",
        *_EXAMPLE,
        "output",
        "result",
        "tracer",
        "lineage",
    ]
    rows = (
        (
            *(lineage.example.id, lineage.evaluation.evaluation_id, output.run_id),
            *_example(lineage.example),
            *(output.output, lineage.evaluation.result, tracer, lineage),
        )
        for lineage in evaluation_lineages
        for output, tracer in zip(lineage.outputs, lineage.tracers, strict=True)
    )
    return _frame(rows, columns, columns[:3])


def aggregation_overviews_to_pandas(
    aggregation_overviews: Sequence[AggregationOverview[Any]],
    unwrap_statistics: bool = True,
    strict: bool = True,
    unwrap_metadata: bool = True,
) -> "pd.DataFrame":
    """One row for each overview. `strict` refuses statistics of different classes; without it, fields that an overview
    lacks are NaN."""
    overviews = list(aggregation_overviews)
    kinds = {type(overview.statistics) for overview in overviews}
    if strict and len(kinds) > 1:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise BadValue(
            f"the overviews have statistics of different types: {shown}", fix="pass strict=False"
        )
    frame = _pandas().DataFrame([overview.model_dump(mode="json") for overview in overviews])
    if unwrap_statistics and "statistics" in frame:
        statistics = [_fields(overview.statistics) for overview in overviews]
        frame = _beside(
            frame.drop(columns="statistics"), _pandas().DataFrame(statistics), "_statistics"
        )
    if unwrap_metadata and "metadata" in frame:
        metadata = _pandas().json_normalize([to_json(overview.metadata) for overview in overviews])
        frame = _beside(frame.drop(columns="metadata"), metadata, "_metadata")
    return frame


def _example(example: Any) -> list[Any]:
    return [getattr(example, name) for name in _EXAMPLE]


def _fields(statistics: Any) -> dict[str, Any]:
    fields = to_json(statistics)
    return fields if isinstance(fields, dict) else {"statistics": fields}


def _beside(frame: Any, further: Any, ending: str) -> Any:
    """Both frames' columns; a further one whose name is taken gets an ending."""
    renamed = further.rename(columns={name: f"{name}{ending}" for name in further if name in frame})
    return _pandas().concat([frame, renamed], axis=1)


def _frame(rows: Iterable[tuple[Any, ...]], columns: list[str], index: list[str]) -> "pd.DataFrame":
    return _pandas().DataFrame(list(rows), columns=columns).set_index(index)


def _pandas() -> Any:
    return extra("pandas", "frames need pandas, which is not installed", install_command("frames"))
