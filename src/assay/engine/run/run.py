"""The first executor: tasks × items × samples → responses.

Cells with existing rows are not run again; a finished row reaches the kernel before its worker takes the next
cell; rows leave the file only when the whole plan, not the part that runs now, no longer has them.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Unpack

import msgspec

from assay.engine.calls.context import RowContext, Surroundings
from assay.engine.calls.executor import Executor, Shared
from assay.engine.calls.lanes import Lane, Lanes
from assay.engine.calls.progress import LaneProgress
from assay.engine.calls.stop import finish
from assay.engine.run.artefact import ArtefactJob, new_manifest
from assay.engine.run.plan import (
    Cell,
    Selection,
    cells,
    check_tasks,
    content_hash,
    describe,
    is_finished,
    marked_cells,
    plan_digest,
)
from assay.errors import (
    BudgetError,
    CallError,
    ErrorKind,
    Interrupted,
    LaneError,
    StoreError,
    UserError,
)
from assay.sdk import (
    Answer,
    Completion,
    Log,
    Manifest,
    Model,
    Request,
    Response,
    Store,
    Task,
    as_object,
)
from assay.store.index import ItemIndex
from assay.store.keys import address, seed_of
from assay.text.tool_calls import invalid_calls
from assay.threads import blocking
from assay.usercode import raised

# a lane, its missing cells, and how many there are at most
Group = tuple[Lane, Iterator[Cell], int]
YIELD_AFTER = 0.05  # seconds a worker may keep the loop when its model never waits


class Runner(Executor):
    """Runs tasks over a stored dataset. `task_timeout` is for tasks that run in threads; `fresh` sets earlier rows
    aside instead of resuming from them; with `keep_server` the only model that starts a server of its own leaves it to
    the next run."""

    def __init__(
        self,
        store: Store,
        *,
        task_timeout: float | None = None,
        fresh: bool = False,
        keep_server: bool = False,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(store, **shared)
        self.task_timeout = task_timeout
        self.fresh = fresh
        self.keep_server = keep_server and sum(map(_is_exclusive, self.models.values())) == 1

    async def run_async(
        self,
        dataset: str,
        tasks: Sequence[Task],
        samples: int = 1,
        *,
        id: str = "",
        name: str = "",
        selection: Selection | None = None,
        retry_errors: bool | None = False,
    ) -> Manifest:
        """The run's manifest, when every selected cell has its row."""
        check_tasks(tasks)
        store = self.store
        source = store.manifest("dataset", dataset)
        if source is None:
            raise UserError(
                f"there is no dataset {dataset!r}", fix=f"stored: {store.ids('dataset')}"
            )
        plan = describe(tasks, samples, content_hash(source))
        wanted = plan_digest(plan)
        run_id = id or wanted[:16]
        self.progress.begin("run")
        with store.lock("run", run_id):
            old = store.manifest("run", run_id)
            log = store.log("run", run_id)
            if old and not self.fresh and is_finished(old, wanted, log, retry_errors):
                self.show_present(map(_lane_of, tasks), old)
                return old
            inputs = [{"kind": "dataset", "id": dataset, "digest": source.digest}]
            manifest = new_manifest(old, "run", run_id, plan, name=name, inputs=inputs)
            job = _RunJob(self, manifest, self.datasets.index(dataset), tasks, samples)
            return await job.run(selection or Selection(), retry_errors, old)

    run = blocking(run_async)


def _lane_of(task: Task) -> str:
    return task.lane or task.name


def _is_exclusive(model: Model | None) -> bool:
    return bool(getattr(model, "exclusive", False))


class _RunJob(ArtefactJob):
    """One call of `Runner.run`."""

    def __init__(
        self,
        runner: Runner,
        manifest: Manifest,
        items: ItemIndex,
        tasks: Sequence[Task],
        samples: int,
    ) -> None:
        super().__init__(runner, manifest)
        self.runner = runner
        self.items = items
        self.tasks = tasks
        self.samples = samples

    async def run(
        self, selection: Selection, retry_errors: bool | None, old: Manifest | None
    ) -> Manifest:
        progress = self.runner.progress
        planned = marked_cells(self.tasks, self.items, self.samples, selection)
        self.existing.settle(
            ((cell.key, selected) for cell, selected in planned),
            retry_errors=retry_errors,
            fresh=self.runner.fresh,
            note=progress.note,
        )
        if old and old.plan.get("samples", self.samples) != self.samples:
            # the old seal ends before its bytes change
            self.store.put_manifest(self.manifest)
            set_total_samples(self.log, self.samples)
        self.begin(len(self.items) * len(self.tasks) * self.samples)
        lanes = self.runner.lanes(progress.lane)
        threads = max(lanes[_lane_of(task)].limits.max_concurrency for task in self.tasks)
        timeout = self.runner.task_timeout
        try:
            with self.runner.surroundings(
                "run", self.manifest.id, lanes, threads, timeout
            ) as around:
                await self._run_lanes(list(self._lanes(selection, lanes)), around)
        finally:
            self.sync.close()
            self._count_retries(lanes, old)
            self._end_lanes()
        self._raise_if_stopped(lanes)
        return self.manifest

    async def _run_lanes(self, groups: list[Group], around: Surroundings) -> None:
        """All lanes side by side; then, one after another, those whose model starts a server of its own."""
        apart = [group for group in groups if _is_exclusive(self.runner.models.get(group[0].name))]
        together = [group for group in groups if group not in apart]
        for batch in filter(None, [together, *([group] for group in apart)]):
            model = self.runner.models.get(batch[0][0].name) if batch is not together else None
            if self.stop.requested:
                return
            try:
                if model is not None:
                    await model.open()  # type: ignore[attr-defined]
                ready = [await self._probe(*group) for group in batch]
                workers = [worker for group in ready for worker in self._workers(*group, around)]
                await finish(workers, self.stop, self.runner.grace)
            except LaneError as error:
                if all(lane.stopped is None for lane, *_ in batch):
                    batch[0][0].stop(error)
            finally:
                if model is not None and (
                    not self.runner.keep_server or batch[0][0].stopped is not None
                ):
                    await model.close()

    async def _probe(self, lane: Lane, missing: Iterator[Cell], total: int) -> Group:
        """A lane's cells, once the probes of its tasks are answered; the manifest keeps how. A model that cannot answer
        stops its lane; where no cell is missing nobody is asked."""
        requests: list[Request] = []
        for task in self.tasks:
            probe: Request | None = getattr(task, "probe", None)
            if task.lane == lane.name and probe is not None and probe not in requests:
                requests.append(probe)
        if not requests or (first := next(missing, None)) is None:
            return lane, missing, total
        for request in requests:
            try:
                answer = await lane.send(self.runner.models[lane.name], request)
            except CallError as error:
                lane.stop(LaneError(error.what, where=error.where, fix=error.fix))
                raise lane.stopped or error from None
            way = {"way": getattr(answer, "way", ""), "served_model": answer.served_model}
            self.manifest.metadata.setdefault("probes", {})[lane.name] = way
        return lane, chain([first], missing), total

    def _lanes(self, selection: Selection, lanes: Lanes) -> Iterator[Group]:
        """Each lane with its own pass over the selected cells that have no row yet, and their greatest number."""
        samples = (
            self.samples if selection.samples is None else min(self.samples, selection.samples)
        )
        items = (
            len(self.items) if selection.items is None else min(len(self.items), selection.items)
        )
        groups: dict[str, list[Task]] = {}
        for task in self.tasks:
            if selection.takes(task.name):
                groups.setdefault(_lane_of(task), []).append(task)
        for name, tasks in groups.items():
            lane = lanes[name]
            lane.progress.total = items * len(tasks) * samples
            yield lane, self._missing(tasks, items, samples, lane.progress), lane.progress.total

    def _missing(
        self, tasks: list[Task], items: int, samples: int, progress: LaneProgress
    ) -> Iterator[Cell]:
        for cell in cells(tasks, islice(self.items, items), samples):
            if cell.key in self.existing:
                progress.present += 1
            else:
                yield cell

    def _workers(
        self, lane: Lane, missing: Iterator[Cell], total: int, around: Surroundings
    ) -> list[asyncio.Task[None]]:
        # Those who wait before they try again hold no place in the lane: others use it meanwhile.
        count = min(2 * lane.limits.max_concurrency, max(1, total))
        return [asyncio.create_task(self._work(lane, missing, around)) for _ in range(count)]

    async def _work(self, lane: Lane, missing: Iterator[Cell], around: Surroundings) -> None:
        free_since = time.monotonic()
        for cell in missing:
            if self.stop.requested or lane.stopped is not None:
                return
            row = await self._row(cell, around)
            around.raise_if_broken()
            if row is None:
                return
            row, line = row_and_line(row)
            try:
                self.sync.append(self.log, line)
            except StoreError as error:
                around.lanes.stop(LaneError(error.what))  # what cannot be written must not be paid
                raise
            self.existing.count(row.outcome, row.error_kind)
            lane.progress.done += 1
            lane.progress.errors += row.outcome == "errored"
            lane.progress.tokens += row.total_tokens or 0
            if time.monotonic() - free_since > YIELD_AFTER:
                await asyncio.sleep(0)
                free_since = time.monotonic()

    async def _row(self, cell: Cell, around: Surroundings) -> Response | None:
        """The cell's row; None if its lane has stopped, so that the next run does it."""
        task = cell.task
        owner = address(cell.item.id, task.name, cell.sample)
        context = RowContext(
            around,
            item_id=cell.item.id,
            sample_index=cell.sample,
            seed=seed_of(self.runner.seed, owner),
            owner=owner,
            name=task.name,
            model=task.lane,
        )
        started = time.perf_counter()
        answer, error = Answer(outcome="errored"), None
        kind: ErrorKind | None = None
        try:
            if cell.problem is not None:
                error, kind = cell.problem, "permanent"
            else:
                answer = await task.run(cell.work, context)
        except (LaneError, BudgetError):
            return None
        except CallError as failure:
            error, kind = failure.what, failure.kind
        except TimeoutError as failure:
            error, kind = f"the task {failure}", "transient"
        except (
            Exception,
            SystemExit,
        ) as failure:  # a task is user code: whatever it raises is this row's result
            error, kind = raised(failure), "permanent"
        seconds = time.perf_counter() - started
        context.write_trace(cell.key)
        return response_of(cell, answer, self.samples, seconds, error, kind)

    def _count_retries(self, lanes: Lanes, old: Manifest | None) -> None:
        """By lane, of this run and of those that it resumes."""
        retries = dict(as_object(old.metadata.get("retries"))) if old else {}
        for lane in lanes:
            if lane.progress.retries:
                retries[lane.name] = retries.get(lane.name, 0) + lane.progress.retries
        if retries:
            self.manifest.metadata["retries"] = retries

    def _end_lanes(self) -> None:
        shown = self.runner.progress.of("run")
        self.manifest.metadata["rate"] = sum(lane.rate() for lane in shown)
        whole = self.existing.total == self.manifest.planned
        self.end(whole, (task.name for task in self.tasks))
        for lane in shown:
            lane.ended = lane.ended or time.monotonic()

    def _raise_if_stopped(self, lanes: Lanes) -> None:
        if self.stop.requested and self.existing.total != self.manifest.planned:
            raise Interrupted
        lanes.raise_if_stopped()


_TOTAL_SAMPLES = re.compile(rb'"total_samples":\d+')
_encode = msgspec.json.Encoder().encode


def response_of(
    cell: Cell,
    answer: Answer,
    samples: int,
    seconds: float,
    error: str | None,
    kind: ErrorKind | None,
) -> Response:
    done = answer.completion
    metadata = {**answer.metadata, **cell.task.facets, "finish_reason": None, "response_id": None}
    row = Response(
        item_id=cell.item.id,
        sample_id=f"{cell.item.id}_sample_{cell.sample}",
        sample_index=cell.sample,
        total_samples=samples,
        model_name=cell.task.model_name,
        prompt=answer.prompt or cell.work.prompt,
        response=answer.text,
        inference_time=seconds,
        timestamp=time.time(),
        metadata=metadata,
        error=error,
        key=cell.key.hex(),
        task=cell.task.name,
        outcome=answer.outcome,
        error_kind=kind,
        output=answer.output,
        messages=answer.messages or cell.work.messages,
    )
    if done is not None:
        _add_completion(row, done)
    return row


def _add_completion(row: Response, done: Completion) -> None:
    metadata, seconds = row.metadata, row.inference_time
    metadata["finish_reason"] = done.finish_reason
    metadata["response_id"] = done.response_id
    if done.masked:
        metadata["masked"] = True
    if done.stream:
        metadata["stream"] = done.stream
    row.total_tokens = done.total_tokens
    row.prompt_tokens = done.prompt_tokens
    row.completion_tokens = done.completion_tokens
    row.tokens_per_second = done.total_tokens / seconds if done.total_tokens and seconds else None
    row.reasoning = done.reasoning
    row.tool_calls = done.tool_calls
    if done.tool_calls and (invalid := invalid_calls(done.tool_calls)):
        metadata["invalid_tool_calls"] = invalid
    row.cost = done.cost
    row.served_model = done.served_model
    row.served_fingerprint = done.served_fingerprint
    row.logprobs = done.logprobs


def row_and_line(row: Response) -> tuple[Response, bytes]:
    """The row and its line; an answer that JSON cannot hold (a lone surrogate, a user's object) is an error."""
    try:
        return row, _encode(row) + b"\n"
    except (TypeError, ValueError, OverflowError, RecursionError) as failure:
        row.error = f"the answer cannot be written as JSON: {failure}"
        row.outcome, row.error_kind, row.prompt, row.response = "errored", "permanent", "", ""
        row.output = row.messages = row.reasoning = row.tool_calls = row.logprobs = None
        row.served_model = row.served_fingerprint = None
        row.metadata |= {"finish_reason": None, "response_id": None}
        return row, _encode(row) + b"\n"


def set_total_samples(log: Log, samples: int) -> None:
    """Existing rows of a plan that has more samples now, or fewer, say so."""
    # Inside of a JSON text a quote has a backslash before it: the first match is the field itself.
    now = b'"total_samples":%d' % samples
    log.replace(_TOTAL_SAMPLES.sub(now, line, count=1) + b"\n" for _, line in log.scan())
