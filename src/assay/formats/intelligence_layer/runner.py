"""The first step by the original's names: a task over a dataset, on Assay's engine.

A run that was stopped or killed resumes, also in a new process, when it is started again with the
same dataset, task and descriptions and `resume_from_recovery_data`: finished examples stay, failed
ones are tried again.
"""

import math
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, Generic
from uuid import uuid4

from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.run.plan import Selection
from assay.engine.run.run import Runner as Engine
from assay.formats.intelligence_layer.datasets import DatasetRepository, StoreByKind, dataset_store
from assay.formats.intelligence_layer.domain import (
    Example,
    ExampleOutput,
    FailedExampleRun,
    RecoveryData,
    RunOverview,
    chosen_fields,
)
from assay.formats.intelligence_layer.runs import RunRepository, StoredRunRepository
from assay.formats.intelligence_layer.tasks import (
    ExampleTask,
    MakeTracer,
    Task,
    parameters_of,
    type_of,
)
from assay.formats.intelligence_layer.tracer import (
    ExampleTracer,
    ExportedSpan,
    NoOpTracer,
    SpanStatus,
    TaskSpan,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.types import (
    BadValue,
    Input,
    JsonSerializable,
    Output,
    SerializableDict,
    is_ours,
    to_json,
)
from assay.sdk import AssayError, Limits, Store, canonical, digest
from assay.store.stores import MemoryStore
from assay.text.plain import plain


class Runner(Generic[Input, Output]):
    def __init__(
        self,
        task: Task[Input, Output],
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        description: str,
    ) -> None:
        self._task = task
        self._dataset_repository = dataset_repository
        self._run_repository = run_repository
        self.description = description

    def input_type(self) -> type[Input]:
        return type_of(self._task, "input", self)

    def output_type(self) -> type[Output]:
        return type_of(self._task, "output", self)

    def run_dataset(
        self,
        dataset_id: str,
        tracer: Tracer | None = None,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        max_workers: int = 10,
        description: str | None = None,
        trace_examples_individually: bool = True,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
        resume_from_recovery_data: bool = False,
    ) -> RunOverview:
        """Run the task on the first `num_examples` examples, by default on all, and store their
        outputs. An exception of the task becomes a FailedExampleRun; with `abort_on_error` it is
        raised, and nothing more is begun."""
        if max_workers < 1:
            raise BadValue(f"max_workers must be at least 1, got {max_workers}")
        start = utc_now()
        examples = self._dataset_repository.examples(
            dataset_id,
            self.input_type(),
            JsonSerializable,  # type: ignore[arg-type]
        )
        chosen = islice(examples, num_examples or None)
        tmp_hash = self._run_hash(dataset_id, description or "")
        found = (
            self._run_repository.finished_examples(tmp_hash) if resume_from_recovery_data else None
        )
        recovery = found or RecoveryData(run_id=str(uuid4()))
        run_id = recovery.run_id
        store = self._store(dataset_id, chosen, frozenset(recovery.finished_examples))
        if found is None:
            self._run_repository.create_temporary_run_data(tmp_hash, run_id)
        task = ExampleTask(
            self._task,
            self.input_type(),
            self._tracers(run_id, tracer, trace_examples_individually),
            stop=Stop() if abort_on_error else None,
            store=None if self._has_own_rows() else self._storing(tmp_hash, run_id),
        )
        counts = _run(
            store,
            task,
            dataset_id,
            max_workers,
            id=run_id,
            selection=Selection(items=num_examples or None),
            retry_errors=resume_from_recovery_data,
        )
        failed, successful = counts if self._has_own_rows() else self._outcome_counts(run_id)
        overview = RunOverview(
            dataset_id=dataset_id,
            id=run_id,
            start=start,
            end=utc_now(),
            failed_example_count=failed,
            successful_example_count=successful,
            **chosen_fields(self.description, description, labels, metadata),
        )
        self._run_repository.store_run_overview(overview)
        # last: until then a killed run can resume
        self._run_repository.delete_temporary_run_data(tmp_hash)
        return overview

    def run_is_already_computed(
        self, metadata: SerializableDict, dataset_id: str | None = None
    ) -> bool:
        """Return whether this runner has finished a run with this metadata, which must say something;
        `dataset_id` narrows that to one dataset."""
        try:
            overviews = list(self._run_repository.run_overviews())
        except FileNotFoundError:  # a folder in which nothing was run yet
            return False
        return bool(metadata) and any(
            canonical(to_json(overview.metadata)) == canonical(to_json(metadata))
            and (
                overview.description == self.description
                or overview.description.startswith(f"{self.description} : ")
            )
            and dataset_id in (None, overview.dataset_id)
            for overview in overviews
        )

    def _run_hash(self, dataset_id: str, run_description: str) -> str:
        """Under what an unfinished run is remembered: the same in every process."""
        parts = (
            dataset_id,
            type(self._task).__qualname__,
            parameters_of(self._task),
            self.description,
        )
        return digest("intelligence-layer-run", canonical((*parts, run_description))).hex()

    def _has_own_rows(self) -> bool:
        """Return whether the engine can write its rows where the repository keeps them."""
        repository = self._run_repository
        return isinstance(repository, StoredRunRepository) and is_ours(
            type(repository).store_example_output
        )

    def _store(
        self, dataset_id: str, chosen: Iterable[Example[Any, Any]], finished: frozenset[str]
    ) -> Store:
        """Return the store that the engine reads and writes. Every input is looked at before anything runs: one
        that is not of the task's type is an error of the caller. Examples from elsewhere are held
        in memory while they run."""
        runs: Store = MemoryStore()
        if isinstance(self._run_repository, StoredRunRepository) and self._has_own_rows():
            runs, finished = self._run_repository.store, frozenset()
        missing = (example for example in chosen if example.id not in finished)
        datasets = dataset_store(
            self._dataset_repository, dataset_id, missing, copied=bool(finished)
        )
        deque(missing, maxlen=0)
        return StoreByKind({"dataset": datasets, "run": runs})

    def _storing(self, tmp_hash: str, run_id: str) -> Callable[[str, Any], None]:
        """Puts outputs into a repository of the user's own; only successes are finished."""

        def store(example_id: str, output: Any) -> None:
            row = ExampleOutput(run_id=run_id, example_id=example_id, output=output)
            self._run_repository.store_example_output_parallel(tmp_hash, row)
            if not isinstance(output, FailedExampleRun):
                self._run_repository.temp_store_finished_example(tmp_hash, example_id)

        return store

    def _tracers(self, run_id: str, tracer: Tracer | None, individually: bool) -> MakeTracer:
        def make(example_id: str, key: str) -> Tracer:
            if not individually:
                return tracer or NoOpTracer()
            kept = self._run_repository.create_tracer_for_example(run_id, example_id)
            if isinstance(kept, ExampleTracer):
                kept.key = key
            return kept if tracer is None else _SharedTracer([kept, tracer])

        return make

    def _outcome_counts(self, run_id: str) -> tuple[int, int]:
        outputs = self._run_repository.example_outputs(run_id, self.output_type())
        failed = [isinstance(output.output, FailedExampleRun) for output in outputs]
        return sum(failed), len(failed) - sum(failed)


class _SharedTracer(TaskSpan):
    """Hands everything to each of its tracers, with equal times, and is each span that they open.
    What it exports is the trace of the first."""

    def __init__(self, tracers: Sequence[Any]) -> None:
        self._tracers, self._closed = tracers, False
        self.context = tracers[0].context

    def span(self, name: str, timestamp: datetime | None = None) -> "_SharedTracer":
        at = timestamp or utc_now()
        return _SharedTracer([tracer.span(name, at) for tracer in self._tracers])

    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "_SharedTracer":
        at = timestamp or utc_now()
        return _SharedTracer([tracer.task_span(task_name, input, at) for tracer in self._tracers])

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        at = timestamp or utc_now()
        for tracer in self._tracers:
            tracer.log(message, value, at)

    def record_output(self, output: Any) -> None:
        for tracer in self._tracers:
            tracer.record_output(output)

    def end(self, timestamp: datetime | None = None) -> None:
        at = timestamp or utc_now()
        for tracer in self._tracers:
            tracer.end(at)
        super().end(at)

    @property
    def status_code(self) -> SpanStatus:
        return self._tracers[0].status_code

    @status_code.setter
    def status_code(self, span_status: SpanStatus) -> None:
        for tracer in self._tracers:
            tracer.status_code = span_status

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return self._tracers[0].export_for_viewing()


def _run(
    store: Store, task: ExampleTask, dataset_id: str, max_workers: int, **options: Any
) -> tuple[int, int]:
    """Let the engine run the task: how many examples of the run have failed, and how many have
    not."""
    limits = {task.name: Limits(max_concurrency=max_workers)}
    engine = Engine(store, limits=limits, stop=task.stop, grace=math.inf, progress=Progress())
    try:
        with show_progress(engine.progress, "Running Task"):
            counts = engine.run(dataset_id, [task], **options).counts
    except AssayError:
        if task.failure is not None:
            raise task.failure from None
        raise
    return counts.get("errored", 0), sum(
        counts.get(name, 0) for name in ("ok", "refused", "skipped")
    )


@contextmanager
def show_progress(progress: Progress, title: str, name: str = "") -> Generator[None]:
    """Show these counters until the block ends, under this name instead of their own. What is
    printed meanwhile appears above them."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(
        get_renderable=lambda: _bars(progress, title, name), console=console, refresh_per_second=4
    ):
        yield


def _bars(progress: Progress, title: str, name: str) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    for lane in list(progress.lanes.values()):
        rows = lane.present + lane.done
        count = f"{rows:,}" if lane.total is None else f"{rows:,}/{lane.total:,}"
        failed = f"{lane.errors:,} failed" if lane.errors else ""
        bar = ProgressBar(total=lane.total, completed=rows, width=40)
        table.add_row(
            Text(f"{title} {plain(name or lane.name)}"),
            bar,
            Text(count),
            Text(failed, style="yellow"),
        )
    return table
