"""The evaluator for logics that decide by themselves: one call for each example, in threads."""

import asyncio
import time
import warnings
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any, Generic, Literal, final

from assay.engine.calls.progress import LaneProgress, Progress
from assay.engine.evaluate.evaluate import CHUNK_SECONDS, LARGEST_CHUNK
from assay.formats.intelligence_layer.datasets import DatasetRepository
from assay.formats.intelligence_layer.domain import (
    Evaluation,
    EvaluationOverview,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    ExpectedOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    RunOverview,
    SuccessfulExampleOutput,
)
from assay.formats.intelligence_layer.engine import shown
from assay.formats.intelligence_layer.evaluations import EvaluationRepository
from assay.formats.intelligence_layer.logics import (
    EvaluationLogic,
    EvaluationLogicBase,
    arguments_of,
    identity_of,
    settled,
)
from assay.formats.intelligence_layer.navigator import EvaluationLineage, RepositoryNavigator
from assay.formats.intelligence_layer.runs import RunRepository
from assay.formats.intelligence_layer.tracer import utc_now
from assay.formats.intelligence_layer.types import BadValue, Input, Output, to_json
from assay.store.keys import canonical, digest
from assay.text.plain import plain
from assay.threads import Threads, run_blocking

Items = Literal["refuse", "intersection"]
"""What to do about runs that cover different examples."""


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


DEFAULT_MAX_WORKERS = 10


class Evaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates stored runs; every result is stored before the next example is begun. `max_workers` examples are
    evaluated at a time."""

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
        super().__init__(dataset_repository, run_repository, evaluation_repository, description, evaluation_logic)
        self.max_workers = max_workers

    def evaluate_runs(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: dict[str, Any] | None = None,
        items: Items = "refuse",
    ) -> EvaluationOverview:
        """Evaluate the outputs of these runs together. Runs that cover different examples are refused, or compared on
        the examples that they share: `items="intersection"`."""
        start = utc_now()
        runs = self._load_run_overviews(*run_ids)
        cases = self._retrieve_eval_logic_input(runs, skip_example_on_any_failure, num_examples, items)
        progress = Progress()
        lane = progress.lane(self.description)
        lane.total = _total(runs, skip_example_on_any_failure, num_examples)
        work = self._digest(runs, skip_example_on_any_failure, num_examples)
        with self._evaluation_repository.open_evaluation(work) as opened, shown(progress, "Evaluating"):
            lane.present, lane.errors = len(opened.failed), sum(opened.failed.values())
            missing = (case for case in cases if case[0].id not in opened.failed)
            calls = (partial(self.evaluate, example, opened.id, abort_on_error, *found) for example, found in missing)
            run_blocking(lambda: _call_all(calls, self.max_workers, lane))
            overview = EvaluationOverview(
                run_overviews=frozenset(runs),
                id=opened.id,
                start_date=start,
                end_date=utc_now(),
                successful_evaluation_count=lane.present + lane.done - lane.errors,
                failed_evaluation_count=lane.errors,
                description=f"{self.description} : {description}" if description else self.description,
                labels=set(labels or ()),
                metadata=dict(metadata or {}),
                skipped_evaluation_count=cases.skipped,
            )
            self._evaluation_repository.store_evaluation_overview(overview)
        return overview

    @final
    def evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        evaluation_id: str,
        abort_on_error: bool,
        *example_outputs: SuccessfulExampleOutput[Output],
    ) -> Evaluation | FailedExampleEvaluation:
        """Evaluate one example and store the result; what the logic raises is a result too, unless it shall abort."""
        result: Evaluation | FailedExampleEvaluation
        try:
            result = self._evaluation_logic.do_evaluate(example, *example_outputs)
        except Exception as error:
            if abort_on_error:
                raise
            print(plain(f'FAILED EVALUATION: example "{example.id}", {type(error).__qualname__}: "{error}"'))
            result = FailedExampleEvaluation.from_exception(error)
        evaluation = ExampleEvaluation(evaluation_id=evaluation_id, example_id=example.id, result=result)
        evaluation.response_keys = {output.run_id: output.key for output in example_outputs if output.key}
        self._evaluation_repository.store_example_evaluation(evaluation)
        return result

    def _digest(self, runs: Sequence[RunOverview], skip_example_on_any_failure: bool, num_examples: int | None) -> str:
        """What the results depend on: an unfinished evaluation is gone on with only if this is equal."""
        parts = {
            "runs": [to_json(run, order="deterministic") for run in runs],
            "logic": identity_of(self._evaluation_logic),
            "skip": skip_example_on_any_failure,
            "examples": num_examples,
        }
        return digest("intelligence-layer-evaluation", canonical(parts)).hex()


def _total(runs: Sequence[RunOverview], skip_example_on_any_failure: bool, num_examples: int | None) -> int:
    """At most so many examples will be evaluated."""
    failed = (0 if skip_example_on_any_failure else run.failed_example_count for run in runs)
    least = min(run.successful_example_count + more for run, more in zip(runs, failed, strict=True))
    return min(least, num_examples or least)


async def _call_all(calls: Iterable[Callable[[], Any]], workers: int, lane: LaneProgress) -> None:
    """Count in `lane` which calls gave a result and which a failure. The first exception ends it once the calls that
    have begun are done. Quick calls are made many in a row by one thread, as in our own evaluator."""
    waiting = iter(calls)
    threads = Threads(workers)
    raised: list[BaseException] = []

    async def work() -> None:
        size = 1
        while not raised and (chunk := list(islice(waiting, size))):
            begun = time.perf_counter()
            for result, error in await threads.map(chunk):
                if error is not None:
                    raised.append(error)
                else:
                    lane.done += 1
                    lane.errors += isinstance(result, FailedExampleEvaluation)
            seconds = (time.perf_counter() - begun) / len(chunk)
            size = max(1, min(2 * size, int(CHUNK_SECONDS / seconds), LARGEST_CHUNK))

    try:
        await asyncio.gather(*(work() for _ in range(workers)))
    finally:
        threads.close()
    if raised:
        raise raised[0]
