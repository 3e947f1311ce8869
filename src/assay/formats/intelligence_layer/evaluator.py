"""The second step by the original's names: a logic over stored runs, on Assay's engine.

An evaluation that was stopped or killed resumes, also in a new process, when the same runs are
evaluated again with the same logic and parameters: examples that have a result are not evaluated
again.
"""

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, Literal, final

import numpy as np

from assay.engine.evaluate.evaluate import Evaluator as Engine
from assay.formats.intelligence_layer.datasets import DatasetRepository, StoreByKind, dataset_store
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    ExpectedOutput,
    FailedExampleEvaluation,
    RunOverview,
    SuccessfulExampleOutput,
    chosen_fields,
    in_order,
)
from assay.formats.intelligence_layer.elo import IncrementalEvaluationLogic
from assay.formats.intelligence_layer.evaluations import (
    WORK,
    EvaluationRepository,
    ExampleScorer,
    StoredEvaluationRepository,
    failure_of,
    stray_output,
    work_digest,
)
from assay.formats.intelligence_layer.logics import (
    EvaluationLogic,
    arguments_of,
    settled_type,
)
from assay.formats.intelligence_layer.runner import show_progress
from assay.formats.intelligence_layer.runs import RunRepository, run_store
from assay.formats.intelligence_layer.tracer import utc_now
from assay.formats.intelligence_layer.types import BadValue, Input, Output, is_ours
from assay.sdk import JsonObject, Manifest, Store, id_hash
from assay.store.repositories import DatasetRepository as Datasets
from assay.store.stores import MemoryStore
from assay.store.table.columns import Table
from assay.store.table.join import Lookup

DEFAULT_MAX_WORKERS = 10


Items = Literal["refuse", "intersection"]
"""What to do about runs that cover different examples."""


@dataclass(eq=False)
class EvaluationLineage(Generic[Input, ExpectedOutput, Output, Evaluation]):
    """An example, what the runs made of it, and how that was evaluated."""

    example: Example[Input, ExpectedOutput]
    outputs: Sequence[ExampleOutput[Output]]
    evaluation: ExampleEvaluation[Evaluation]


class Evaluator(Generic[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates stored runs; `max_workers` examples are evaluated at a time. The four types come
    from the type arguments of the logic's class."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        evaluation_logic: EvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        *,
        max_workers: int = DEFAULT_MAX_WORKERS,
    ) -> None:
        self._dataset_repository = dataset_repository
        self._run_repository = run_repository
        self._evaluation_repository = evaluation_repository
        self._evaluation_logic: Any = evaluation_logic
        self.description = description
        self.max_workers = max_workers

    @cached_property
    def _types(self) -> JsonObject:
        return arguments_of(type(self._evaluation_logic), EvaluationLogic)

    def input_type(self) -> type[Input]:
        return settled_type(self, self._types, "Input", "input_type")

    def output_type(self) -> type[Output]:
        return settled_type(self, self._types, "Output", "output_type")

    def expected_output_type(self) -> type[ExpectedOutput]:
        return settled_type(self, self._types, "ExpectedOutput", "expected_output_type")

    def evaluation_type(self) -> type[Evaluation]:
        return settled_type(self, self._types, "Evaluation", "evaluation_type")

    def evaluate_runs(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: JsonObject | None = None,
        items: Items = "refuse",
        retry_errors: bool = False,
    ) -> EvaluationOverview:
        """Evaluate the outputs of these runs together. Runs that cover different examples are
        refused, or compared on the examples that they share: `items="intersection"`. With
        `retry_errors` an earlier evaluation of the same runs and logic continues, and only what
        failed in it is evaluated again."""
        start = utc_now()
        self._prepare_logic()
        runs = self._runs(*run_ids)
        dataset = self._common_dataset(runs, items)
        engine = self._engine(dataset, runs)
        work = work_digest(runs, self._evaluation_logic, skip_example_on_any_failure, num_examples)
        with self._evaluation_repository.open_evaluation(work, retry_errors) as evaluation_id:
            scorer = self._scorer(evaluation_id, abort_on_error)
            bound = scorer.bound_scorer(skip_example_on_any_failure, num_examples or None)
            with (
                show_progress(engine.progress, "Evaluating", self.description),
                scorer.raising(engine),
            ):
                manifest = engine.evaluate(
                    [run.id for run in runs],
                    [bound],
                    id=evaluation_id,
                    dataset=dataset,
                    retry_errors=retry_errors,
                    metadata={WORK: work},
                )
            overview = EvaluationOverview(
                run_overviews=frozenset(runs),
                id=evaluation_id,
                start_date=start,
                end_date=utc_now(),
                **_counts_of(manifest),
                **chosen_fields(self.description, description, labels, metadata),
            )
            self._evaluation_repository.store_evaluation_overview(overview)
        return overview

    def evaluation_lineages(
        self, evaluation_id: str
    ) -> Iterator[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        """Yield each example that has a result, with the outputs behind it, in the order of the
        results."""
        overview = self._evaluation_repository.evaluation_overview(evaluation_id)
        if overview is None:
            raise BadValue(f"the evaluation repository has no evaluation {evaluation_id!r}")
        examples: dict[str, Example[Input, ExpectedOutput]] = {}
        outputs: dict[str, list[ExampleOutput[Output]]] = {}
        types = self.input_type(), self.expected_output_type()
        for run in in_order(overview.run_overviews):
            for example in self._dataset_repository.examples(run.dataset_id, *types):
                examples[example.id] = example
            for output in self._run_repository.example_outputs(run.id, self.output_type()):
                outputs.setdefault(output.example_id, []).append(output)
        for result in self._evaluation_repository.example_evaluations(
            evaluation_id, self.evaluation_type()
        ):
            id = result.example_id
            if id in examples and id in outputs:
                yield EvaluationLineage(examples[id], outputs[id], result)

    def _runs(self, *run_ids: str) -> list[RunOverview]:
        """Return the runs in the order of the arguments; an id that is given twice is one run."""
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

    def _common_dataset(self, runs: Sequence[RunOverview], items: Items) -> str:
        """Return the one dataset of runs that can be evaluated together."""
        datasets = sorted({run.dataset_id for run in runs})
        if len(datasets) > 1:
            raise BadValue(
                f"All run overviews must reference the same dataset, found {', '.join(datasets)}",
                fix="evaluate the runs of each dataset by themselves",
            )
        self._check_coverage(runs, items)
        return runs[0].dataset_id

    def _check_coverage(self, runs: Sequence[RunOverview], items: Items) -> None:
        """Compare runs over different examples only if that is wanted, and never silently."""
        if len(runs) == 1:
            return
        totals = {run.id: run.failed_example_count + run.successful_example_count for run in runs}
        covered = [set(self._run_repository.example_output_ids(run.id)) for run in runs]
        common = set[str].intersection(*covered)
        lacking = len(set[str].union(*covered)) - len(common)
        if items == "intersection":
            if lacking:
                warnings.warn(
                    f"the runs share {len(common)} examples; {lacking} that not all of them have "
                    "are left out",
                    stacklevel=4,
                )
        elif lacking or len(set(totals.values())) > 1:
            shown = ", ".join(f"{run}: {total}" for run, total in totals.items())
            raise BadValue(
                "All run overviews must contain the same number of items and the same examples: "
                f"{shown}; {lacking} examples are not in all of them",
                fix='complete the runs, or compare what they share with items="intersection"',
            )

    def _keep(self, evaluation_id: str, example_id: str, result: Any) -> None:
        evaluation = ExampleEvaluation(
            evaluation_id=evaluation_id, example_id=example_id, result=result
        )
        self._evaluation_repository.store_example_evaluation(evaluation)

    def _prepare_logic(self) -> None:
        """Before each evaluation of runs."""

    @final
    def evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        evaluation_id: str,
        abort_on_error: bool,
        *example_outputs: SuccessfulExampleOutput[Output],
    ) -> Evaluation | FailedExampleEvaluation:
        """Evaluate one example and store the result; what the logic raises is a result too, unless
        it shall abort."""
        result: Evaluation | FailedExampleEvaluation
        try:
            result = self._evaluation_logic.do_evaluate(example, *example_outputs)
        except Exception as error:
            if abort_on_error:
                raise
            result = failure_of(example.id, error)
        self._keep(evaluation_id, example.id, result)
        return result

    def _scorer(self, evaluation_id: str, abort_on_error: bool) -> ExampleScorer:
        return ExampleScorer(
            self._evaluation_logic,
            (self.input_type(), self.expected_output_type(), self.output_type()),
            abort=abort_on_error,
            keep=partial(self._keep, evaluation_id) if self._own_store() is None else None,
            earlier=self._made_by_0_1(evaluation_id),
        )

    def _made_by_0_1(self, evaluation_id: str) -> JsonObject:
        """The results of an evaluation that 0.1 left unfinished: their rows have other keys than
        the engine's."""
        store = self._own_store()
        manifest = store.manifest("evaluation", evaluation_id) if store is not None else None
        if manifest is None or not manifest.digest or WORK in manifest.metadata:
            return {}
        results = self._evaluation_repository.successful_example_evaluations(
            evaluation_id, self.evaluation_type()
        )
        return {result.example_id: result.result for result in results}

    def _own_store(self) -> Store | None:
        """Return the store in which the repository keeps its rows, if the engine can write there."""
        repository = self._evaluation_repository
        is_stored = isinstance(repository, StoredEvaluationRepository)
        return (
            repository.store
            if is_stored and is_ours(type(repository).store_example_evaluation)
            else None
        )

    def _engine(self, dataset_id: str, runs: Sequence[RunOverview]) -> Engine:
        """The engine over the three repositories; what is kept elsewhere is held in memory
        meanwhile."""
        examples = self._dataset_repository.examples(
            dataset_id, self.input_type(), self.expected_output_type()
        )
        stored = dataset_store(self._dataset_repository, dataset_id, examples)
        datasets = Datasets(stored)
        items = Table([datasets.index(dataset_id).log], {"id": "id"}, item=True)
        known = Lookup(items["id"])
        for run in runs:
            ids = self._run_repository.example_output_ids(run.id)
            strays = known.first(np.array(list(map(id_hash, ids)), np.uint64)) < 0
            if strays.any():
                raise stray_output(run.id, ids[int(strays.argmax())])
        outputs, results = (
            run_store(self._run_repository, runs, self.output_type()),
            self._own_store() or MemoryStore(),
        )
        store = StoreByKind({"dataset": stored, "run": outputs, "evaluation": results})
        return Engine(store, threads=self.max_workers, datasets=datasets, grace=math.inf)


def _counts_of(manifest: Manifest) -> dict[str, int]:
    """Return the fields of an overview that say how many examples came out how."""
    skipped, failed = manifest.counts.get("skipped", 0), manifest.counts.get("errored", 0)
    return {
        "successful_evaluation_count": (manifest.planned or 0) - failed - skipped,
        "failed_evaluation_count": failed,
        "skipped_evaluation_count": skipped,
    }


class IncrementalEvaluator(Evaluator[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates additional runs together with those behind earlier evaluations; `evaluate_runs`
    evaluates as if there were no earlier ones."""

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        incremental_evaluation_logic: IncrementalEvaluationLogic[
            Input, Output, ExpectedOutput, Evaluation
        ],
        *,
        max_workers: int = DEFAULT_MAX_WORKERS,
    ) -> None:
        super().__init__(
            dataset_repository,
            run_repository,
            evaluation_repository,
            description,
            incremental_evaluation_logic,
            max_workers=max_workers,
        )
        self._earlier: tuple[list[set[str]], list[set[str]]] = [], []

    def evaluate_additional_runs(
        self,
        *run_ids: str,
        previous_evaluation_ids: list[str] | None = None,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        labels: set[str] | None = None,
        metadata: JsonObject | None = None,
        description: str | None = None,
        skip_example_on_any_failure: bool = True,
        items: Items = "refuse",
        retry_errors: bool = False,
    ) -> EvaluationOverview:
        """Evaluate these runs and the ones behind the earlier evaluations, which need not be named.
        The earlier runs come first, in the order of their start, so that old and new results
        together are those of one evaluation."""
        try:
            earlier = self._runs_behind(dict.fromkeys(previous_evaluation_ids or []))
            return self.evaluate_runs(
                *(run for run in earlier if run not in run_ids),
                *run_ids,
                num_examples=num_examples,
                abort_on_error=abort_on_error,
                skip_example_on_any_failure=skip_example_on_any_failure,
                description=description,
                labels=labels,
                metadata=metadata,
                items=items,
                retry_errors=retry_errors,
            )
        finally:
            self._earlier = [], []

    def _runs_behind(self, evaluation_ids: Iterable[str]) -> list[str]:
        """Return the runs behind earlier evaluations, and remember what each of these has done."""
        earlier: list[str] = []
        runs, examples = self._earlier = [], []
        for evaluation_id in evaluation_ids:
            overview = self._evaluation_repository.evaluation_overview(evaluation_id)
            if overview is None:
                raise BadValue(f"there is no previous evaluation {evaluation_id!r}")
            behind = [run.id for run in in_order(overview.run_overviews)]
            done = self._evaluation_repository.successful_example_evaluations(
                evaluation_id, self.evaluation_type()
            )
            earlier += behind
            runs.append(set(behind))
            examples.append({evaluation.example_id for evaluation in done})
        return earlier

    def _prepare_logic(self) -> None:
        runs, examples = self._earlier
        self._evaluation_logic.set_previous_run_output_ids(runs)
        self._evaluation_logic.set_previous_example_ids(examples)
