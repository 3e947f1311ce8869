"""The second executor: responses → labels, one row each.

A scorer call whose rows are there is not made again. All labels of a call are one commit. A scorer that raises,
hangs or returns nonsense gives an error row; a response that is an error, or was refused, is never scored.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from assay.errors import Interrupted, LaneError, RunFailed, UserError
from assay.interfaces import Limits, Model, Store
from assay.records import Evaluation, Manifest
from assay.steps.blocking import run_blocking
from assay.steps.calls import CallLog
from assay.steps.cases import Call, calls_of
from assay.steps.context import RowContext, Surroundings
from assay.steps.existing import Existing
from assay.steps.labels import Result, rows_of, unscorable
from assay.steps.lanes import Lanes
from assay.steps.plan import plan_digest
from assay.steps.pool import Threads
from assay.steps.progress import Progress
from assay.steps.scoring import BoundScorer
from assay.steps.stop import Stop, finish
from assay.store.index import ItemIndex
from assay.store.keys import digest, seed_of
from assay.store.repositories import DatasetRepository
from assay.store.sync import GroupSync

LARGEST_CHUNK = 256  # calls that a worker takes at a time and commits together,
CHUNK_SECONDS = 0.02  # but no more than fit into this time, so that a crash costs little


class Evaluator:
    """Scores stored runs. `models` can be called by scorers; `limits` are by lane, that is by model."""

    def __init__(
        self,
        store: Store,
        *,
        models: Mapping[str, Model] | None = None,
        limits: Mapping[str, Limits] | None = None,
        default_limits: Limits | None = None,
        threads: int = 8,
        seed: int = 0,
        grace: float = 10.0,
        progress: Progress | None = None,
        stop: Stop | None = None,
    ) -> None:
        self.store = store
        self.models = dict(models or {})
        self.limits = dict(limits or {})
        self.default_limits = default_limits or Limits()
        self.threads = threads
        self.seed = seed
        self.grace = grace
        self.progress = progress or Progress()
        self.stop = stop

    def evaluate(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str = "",
        name: str = "",
        dataset: str = "",
        retry_errors: bool = False,
    ) -> Manifest:
        """The evaluation's manifest, when every call has its rows. `dataset`: where the runs do not say it."""
        return run_blocking(
            lambda: self.evaluate_async(runs, scorers, id=id, name=name, dataset=dataset, retry_errors=retry_errors)
        )

    async def evaluate_async(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str = "",
        name: str = "",
        dataset: str = "",
        retry_errors: bool = False,
    ) -> Manifest:
        check_scorers(runs, scorers)
        inputs, source = self._inputs(runs, dataset)
        plan = {
            "runs": inputs,
            "scorers": [
                {"name": scorer.name, "identity": scorer.identity.hex(), "params": scorer.params} for scorer in scorers
            ],
        }
        wanted = plan_digest(plan)
        evaluation_id = id or wanted[:16]
        self.progress.begin("evaluate")
        with self.store.lock("evaluation", evaluation_id):
            old = self.store.manifest("evaluation", evaluation_id)
            rows = self.store.log("evaluation", evaluation_id)
            if old is not None and _is_finished(old, wanted, retry_errors) and old.segments == rows.segments():
                self._show_present(scorers, old)
                return old
            manifest = Manifest(
                kind="evaluation",
                id=evaluation_id,
                name=name or (old.name if old else ""),
                created=old.created if old else time.time(),
                started=time.time(),
                digest=wanted,
                plan=plan,
                inputs=inputs,
            )
            items = DatasetRepository(self.store).index(source)
            return await _Job(self, manifest, items, runs, scorers).run(retry_errors)

    def _inputs(self, runs: Sequence[str], dataset: str) -> tuple[list[dict[str, Any]], str]:
        inputs: list[dict[str, Any]] = []
        sources: dict[str, None] = {dataset: None} if dataset else {}
        for run in runs:
            manifest = self.store.manifest("run", run)
            segments = self.store.log("run", run).segments()
            if manifest is None and not segments:
                raise UserError(f"there is no run {run!r}", fix=f"stored: {', '.join(self.store.ids('run'))}")
            stats = [(segment.name, segment.size, segment.mtime_ns) for segment in segments]
            inputs.append({"kind": "run", "id": run, "digest": manifest.digest if manifest else "", "rows": stats})
            if manifest is not None and not dataset:
                sources.update((entry["id"], None) for entry in manifest.inputs if entry.get("kind") == "dataset")
        if len(sources) != 1:
            known = ", ".join(map(repr, sources)) or "none"
            raise UserError(f"the runs must share one dataset, found {known}", fix="evaluate them one by one")
        source = next(iter(sources))
        stored = self.store.manifest("dataset", source)
        inputs.append({"kind": "dataset", "id": source, "digest": stored.digest if stored else ""})
        return inputs, source

    def _show_present(self, scorers: Sequence[BoundScorer], old: Manifest) -> None:
        for scorer in scorers:
            shown = self.progress.lane(scorer.name)
            shown.total = shown.present = (old.planned or 0) // max(1, len(scorers))
            shown.ended = shown.started


def check_scorers(runs: Sequence[str], scorers: Sequence[BoundScorer]) -> None:
    if not runs:
        raise UserError("there is no run to evaluate", fix="name at least one run")
    if not scorers:
        raise UserError("there is nothing to score with", fix="add `evaluation_methods:`")
    names: set[str] = set()
    for scorer in scorers:
        if scorer.name in names:
            raise UserError(f"two scorers are called {scorer.name!r}", fix="give one of them another `name:`")
        names.add(scorer.name)


def _is_finished(old: Manifest, wanted: str, retry_errors: bool) -> bool:
    repeat = old.counts.get("transient", 0) + (old.counts.get("errored", 0) if retry_errors else 0)
    return old.complete and old.digest == wanted and not repeat


def _row_count(run: Manifest | None) -> int:
    return sum(count for name, count in run.counts.items() if name != "transient") if run is not None else 0


class _Job:
    """One call of `Evaluator.evaluate`."""

    def __init__(
        self,
        evaluator: Evaluator,
        manifest: Manifest,
        items: ItemIndex,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
    ) -> None:
        self.evaluator = evaluator
        self.manifest = manifest
        self.items = items
        self.scorers = scorers
        self.runs = [(run, evaluator.store.log("run", run)) for run in runs]
        self.stop = evaluator.stop or Stop()
        self.log = evaluator.store.log("evaluation", manifest.id)
        self.existing = Existing(evaluator.store, "evaluation", manifest.id)
        self.encode = msgspec.json.Encoder().encode
        self.sync = GroupSync()
        self.progress = {scorer.name: evaluator.progress.lane(scorer.name) for scorer in scorers}
        rows = sum(_row_count(evaluator.store.manifest("run", run)) for run in runs)
        for scorer in scorers:
            self.progress[scorer.name].total = rows if rows and scorer.form != "match" else None
        self.chunk_size = {scorer.name: scorer.batch or 1 for scorer in scorers}

    async def run(self, retry_errors: bool) -> Manifest:
        store, progress = self.evaluator.store, self.evaluator.progress
        planned = ((call.key, True) for call in calls_of(self.scorers, self.runs, self.items))
        self.existing.settle(planned, retry_errors=retry_errors, note=progress.note)
        self.manifest.complete = False
        store.put_manifest(self.manifest)
        lanes = Lanes(
            self.evaluator.limits, self.evaluator.default_limits, lambda name: progress.lane(f"calls to {name}")
        )
        threads = Threads(self.evaluator.threads)
        calls = store.log("evaluation", self.manifest.id, "calls")
        traces = store.log("evaluation", self.manifest.id, "traces")
        around = Surroundings(lanes, threads, self.evaluator.models, lambda: CallLog(calls), traces, None)
        finished = False
        try:
            await self._score_all(around)
            finished = True
        finally:
            threads.close()
            self.sync.close()
            calls.close()
            traces.close()
            self._close_manifest(finished)
        return self.manifest

    async def _score_all(self, around: Surroundings) -> None:
        width = 1
        for scorer in self.scorers:
            if scorer.mode == "async":
                width = max(width, self.evaluator.default_limits.max_concurrency)
            elif scorer.mode == "thread":
                width = max(width, self.evaluator.threads)
        missing = self._missing()
        workers = [asyncio.create_task(self._work(missing, around)) for _ in range(width)]
        await finish(workers, self.stop, self.evaluator.grace)
        if self.stop.requested and next(missing, None) is not None:
            raise Interrupted("stopped; every finished row is kept", fix="run the same command to go on")
        stopped = next((lane.stopped for lane in around.lanes if lane.stopped is not None), None)
        if stopped is not None:
            raise RunFailed(stopped.what, where=stopped.where, fix=stopped.fix)

    def _missing(self) -> Iterator[list[Call]]:
        """The calls that have no rows yet, in chunks of one scorer: a chunk is what a worker takes at a time."""
        chunks: dict[str, list[Call]] = {scorer.name: [] for scorer in self.scorers}
        for call in calls_of(self.scorers, self.runs, self.items):
            name = call.scorer.name
            if call.key in self.existing:
                self.progress[name].present += 1
                continue
            chunks[name].append(call)
            if len(chunks[name]) >= self.chunk_size[name]:
                yield chunks[name]
                chunks[name] = []
        yield from (chunk for chunk in chunks.values() if chunk)

    async def _work(self, missing: Iterator[list[Call]], around: Surroundings) -> None:
        for chunk in missing:
            if self.stop.requested:
                return
            scorable = [call for call in chunk if unscorable(call) is None]
            started = time.perf_counter()
            try:
                results = await self._results(scorable, around)
            except LaneError:
                return
            seconds = (time.perf_counter() - started) / max(1, len(scorable))
            self._size_chunks(chunk[0].scorer, len(chunk), seconds)
            answers = iter(results)
            lines: list[bytes] = []
            for call in chunk:
                rows = rows_of(call, None if unscorable(call) else next(answers), seconds)
                lines += [self.encode(row) + b"\n" for row in rows]
                self._count(call, rows)
            self.sync.append(self.log, b"".join(lines))
            await asyncio.sleep(0)

    def _size_chunks(self, scorer: BoundScorer, size: int, seconds: float) -> None:
        """Quick scorers get larger chunks; slow, async and batched ones keep theirs."""
        if scorer.mode != "async" and not scorer.batch:
            fitting = int(CHUNK_SECONDS / seconds) if seconds else LARGEST_CHUNK
            self.chunk_size[scorer.name] = max(1, min(2 * size, fitting, LARGEST_CHUNK))

    async def _results(self, calls: list[Call], around: Surroundings) -> list[Result]:
        """(what the scorer returned, what it raised) for each call."""
        if not calls:
            return []
        scorer = calls[0].scorer
        contexts = [self._context(call, around) if scorer.takes_context else None for call in calls]
        if scorer.batch:
            return await self._batch(scorer, calls, contexts, around)
        bound = [scorer.arguments(call.case, context) for call, context in zip(calls, contexts, strict=True)]
        if scorer.mode == "async":
            return [await _awaited(scorer, *arguments) for arguments in bound]
        made = [partial(scorer.function, *positional, **keywords) for positional, keywords in bound]
        if scorer.mode == "thread":
            return await around.threads.map(made, scorer.timeout)
        return [_called(call) for call in made]

    async def _batch(
        self,
        scorer: BoundScorer,
        calls: list[Call],
        contexts: Sequence[RowContext | None],
        around: Surroundings,
    ) -> list[Result]:
        keywords = {**scorer.params, "contexts": contexts} if scorer.takes_context else scorer.params
        call = partial(scorer.function, [call.case for call in calls], **keywords)
        if scorer.mode == "async":
            result, error = await _awaited(scorer, [[call.case for call in calls]], keywords)
        elif scorer.mode == "thread":
            ((result, error),) = await around.threads.map([call], scorer.timeout)
        else:
            result, error = _called(call)
        if error is None and (not isinstance(result, list) or len(result) != len(calls)):
            error = ValueError(f"a batch of {len(calls)} cases needs a list of as many results")
        if error is not None:
            return [(None, error)] * len(calls)
        return [(entry, None) for entry in result]

    def _context(self, call: Call, around: Surroundings) -> RowContext:
        response = call.case.responses[0]
        addresses = [f"{row.task}:{row.item_id}:{row.sample_index}" for row in call.case.responses]
        owner = digest("scorer-owner", call.scorer.name.encode(), *(address.encode() for address in addresses))
        return RowContext(
            around,
            item_id=response.item_id,
            sample_index=response.sample_index,
            seed=seed_of(self.evaluator.seed, owner),
            owner=owner,
            name=call.scorer.name,
            model="",
        )

    def _count(self, call: Call, rows: list[Evaluation]) -> None:
        for row in rows:
            self.existing.count(row.outcome, row.error_kind, first=row.part[0] == 0)
        shown = self.progress[call.scorer.name]
        shown.done += 1
        shown.errors += rows[0].outcome == "errored"

    def _close_manifest(self, finished: bool) -> None:
        self.manifest.counts = self.existing.counts()
        self.manifest.planned = self.existing.total if finished else None
        self.manifest.segments = self.log.segments()
        self.manifest.ended = time.time()
        self.manifest.complete = finished
        self.evaluator.store.put_manifest(self.manifest)


async def _awaited(scorer: BoundScorer, positional: list[Any], keywords: dict[str, Any]) -> Result:
    try:
        async with asyncio.timeout(scorer.timeout):
            return await scorer.function(*positional, **keywords), None
    except LaneError:
        raise
    except Exception as error:  # becomes the row's error
        return None, error


def _called(call: Callable[[], Any]) -> Result:
    try:
        return call(), None
    except Exception as error:  # becomes the row's error
        return None, error
