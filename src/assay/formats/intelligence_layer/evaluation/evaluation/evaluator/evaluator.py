"""The evaluator for logics that decide by themselves: one call for each example, in threads.

An evaluation that was stopped or killed goes on, also in a new process, when the same runs are evaluated again with the
same logic and parameters: examples that have a result are not evaluated again.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, final

from assay.engine.calls.progress import LaneProgress, Progress
from assay.engine.evaluate.job import CHUNK_SECONDS, LARGEST_CHUNK
from assay.formats.intelligence_layer.core.task import Input, Output
from assay.formats.intelligence_layer.core.tracer.tracer import utc_now
from assay.formats.intelligence_layer.evaluation.dataset.dataset_repository import DatasetRepository
from assay.formats.intelligence_layer.evaluation.dataset.domain import Example, ExpectedOutput
from assay.formats.intelligence_layer.evaluation.evaluation.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
)
from assay.formats.intelligence_layer.evaluation.evaluation.evaluation_repository import EvaluationRepository
from assay.formats.intelligence_layer.evaluation.evaluation.evaluator.base_evaluator import (
    EvaluationLogicBase,
    EvaluatorBase,
    Items,
)
from assay.formats.intelligence_layer.evaluation.run.domain import RunOverview, SuccessfulExampleOutput
from assay.formats.intelligence_layer.evaluation.run.run_repository import RunRepository
from assay.formats.intelligence_layer.logics import identity_of
from assay.formats.intelligence_layer.progress import shown
from assay.formats.intelligence_layer.types import to_json
from assay.store.keys import canonical, digest
from assay.text.plain import plain
from assay.threads import Threads, run_blocking

DEFAULT_MAX_WORKERS = 10


class EvaluationLogic(ABC, EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation]):
    """Implement `do_evaluate`."""

    @abstractmethod
    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        """The result for one example, from the outputs of all runs in the order in which the runs were named."""


class SingleOutputEvaluationLogic(EvaluationLogic[Input, Output, ExpectedOutput, Evaluation]):
    """For the runs of one task: implement `do_evaluate_single_output`."""

    @final
    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        assert len(output) == 1, f"this logic takes one output of an example, got {len(output)}"
        return self.do_evaluate_single_output(example, output[0].output)

    @abstractmethod
    def do_evaluate_single_output(self, example: Example[Input, ExpectedOutput], output: Output) -> Evaluation: ...


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
