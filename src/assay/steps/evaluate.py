"""The second executor: responses → labels, one row each.

A scorer call whose rows are there is not made again. All labels of a call are one commit. A scorer that raises,
hangs or returns nonsense gives an error row; a response that is an error, or was refused, is never scored.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import Any, Unpack

import msgspec

from assay.errors import BudgetError, Interrupted, LaneError, UserError
from assay.interfaces import Store
from assay.records import Evaluation, Manifest
from assay.steps.blocking import run_blocking
from assay.steps.calling import call_scorer
from assay.steps.calls import CallLog
from assay.steps.cases import Call, calls_of
from assay.steps.context import Surroundings
from assay.steps.executor import Executor, Shared
from assay.steps.existing import Existing
from assay.steps.judges import OWN_ANSWERS, own_answers
from assay.steps.labels import rows_of
from assay.steps.lanes import Lanes
from assay.steps.matches import Matches
from assay.steps.plan import is_finished, plan_digest
from assay.steps.rounds import Rounds
from assay.steps.scoring import BoundScorer
from assay.steps.stop import Stop, finish
from assay.store.index import ItemIndex
from assay.store.sync import GroupSync
from assay.threads import Threads

LARGEST_CHUNK = 256  # calls that a worker takes at a time and commits together,
CHUNK_SECONDS = 0.02  # but no more than fit into this time, so that a crash costs little


class Evaluator(Executor):
    """Scores stored runs; scorers that are not async run in as many `threads`."""

    def __init__(self, store: Store, *, threads: int = 8, **shared: Unpack[Shared]) -> None:
        super().__init__(store, **shared)
        self.threads = threads

    def evaluate(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str = "",
        name: str = "",
        dataset: str = "",
        retry_errors: bool = False,
        budget: int | None = None,
    ) -> Manifest:
        """The evaluation's manifest, when every call has its rows. `dataset`: where the runs do not say it. With a
        `budget` only so many matches are played, those that tell most about who is better."""
        return run_blocking(
            lambda: self.evaluate_async(
                runs, scorers, id=id, name=name, dataset=dataset, retry_errors=retry_errors, budget=budget
            )
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
        budget: int | None = None,
    ) -> Manifest:
        check_scorers(runs, scorers)
        inputs, source = self._inputs(runs, dataset)
        plan: dict[str, Any] = {"runs": inputs, "scorers": [_planned(scorer) for scorer in scorers]}
        if budget is not None:
            plan["matches"] = budget
        wanted = plan_digest(plan)
        evaluation_id = id or wanted[:16]
        self.progress.begin("evaluate")
        with self.store.lock("evaluation", evaluation_id):
            old = self.store.manifest("evaluation", evaluation_id)
            rows = self.store.log("evaluation", evaluation_id)
            if old is not None and is_finished(old, wanted, rows, retry_errors):
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
                metadata=dict(old.metadata) if old else {},
            )
            self._note_own_answers(manifest, scorers, runs)
            items = self.datasets.index(source)
            return await _Job(self, manifest, items, runs, scorers).run(retry_errors, budget)

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

    def _note_own_answers(self, manifest: Manifest, scorers: Sequence[BoundScorer], runs: Sequence[str]) -> None:
        """A judge is kinder to its own answers: metrics of such rows say so."""
        judges = {scorer.name: scorer.judges for scorer in scorers if scorer.judges}
        found = own_answers(judges, [self.store.manifest("run", run) for run in runs])
        manifest.metadata.pop(OWN_ANSWERS, None)
        if found:
            manifest.metadata[OWN_ANSWERS] = found

    def _show_present(self, scorers: Sequence[BoundScorer], old: Manifest) -> None:
        for scorer in scorers:
            shown = self.progress.lane(scorer.name)
            shown.total = shown.present = (old.planned or 0) // max(1, len(scorers))
            shown.ended = shown.started


def _planned(scorer: BoundScorer) -> dict[str, Any]:
    found: dict[str, Any] = {"name": scorer.name, "identity": scorer.identity.hex(), "params": scorer.params}
    if scorer.form == "match":
        found |= {"player": scorer.player, "both_seats": scorer.both_seats, "skip_failures": scorer.skip_failures}
    if scorer.people is not None:
        found["people"] = scorer.people.digest
    return found


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
        self.encode = msgspec.json.Encoder().encode_lines
        self.sync = GroupSync()
        self.progress = {scorer.name: evaluator.progress.lane(scorer.name) for scorer in scorers}
        rows = sum(_row_count(evaluator.store.manifest("run", run)) for run in runs)
        for scorer in scorers:
            self.progress[scorer.name].total = rows if rows and scorer.form != "match" else None
        self.matches: list[Matches] = []
        self.rounds: list[Rounds] = []
        self.unfinished = 0  # calls that a worker has taken and not yet committed
        self.chunk_size = {scorer.name: scorer.batch or 1 for scorer in scorers}

    async def run(self, retry_errors: bool, budget: int | None) -> Manifest:
        store, progress = self.evaluator.store, self.evaluator.progress
        playing = [scorer for scorer in self.scorers if scorer.form == "match"]
        self.matches = [Matches(scorer, self.runs, self.items, progress.note) for scorer in playing]
        single = calls_of(self.scorers, self.runs, self.items)
        planned = ((call.key, True) for call in chain(single, self._match_calls()))
        self.existing.settle(planned, retry_errors=retry_errors, note=progress.note)
        if budget is not None:
            self.rounds = [Rounds(each, self.log, budget, self.evaluator.seed) for each in self.matches]
        for each in self.matches:
            self.progress[each.scorer.name].total = each.count if budget is None else None
        self.manifest.complete = False
        store.put_manifest(self.manifest)
        lanes = Lanes(
            self.evaluator.limits,
            self.evaluator.default_limits,
            lambda name: progress.lane(f"calls to {name}"),
            self.evaluator.budget,
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
        single = calls_of(self.scorers, self.runs, self.items, self.evaluator.progress.note)
        matches = () if self.rounds else self._match_calls()
        await self._score(self._missing(chain(single, matches)), width, around)
        for rounds in self.rounds:
            while calls := rounds.next():
                await self._score(self._missing(calls), width, around)

    async def _score(self, missing: Iterator[list[Call]], width: int, around: Surroundings) -> None:
        workers = [asyncio.create_task(self._work(missing, around)) for _ in range(width)]
        await finish(workers, self.stop, self.evaluator.grace)
        if self.stop.requested and (self.unfinished or next(missing, None) is not None):
            raise Interrupted("stopped; every finished row is kept", fix="run the same command to go on")
        around.lanes.raise_if_stopped()

    def _match_calls(self) -> Iterator[Call]:
        return (call for matches in self.matches for call in matches.calls())

    def _missing(self, calls: Iterable[Call]) -> Iterator[list[Call]]:
        """The calls that have no rows yet, in chunks of one scorer: a chunk is what a worker takes at a time."""
        chunks: dict[str, list[Call]] = {scorer.name: [] for scorer in self.scorers}
        nothing_there = not self.existing.total
        for call in calls:
            name = call.scorer.name
            if not nothing_there and call.key in self.existing:
                self.progress[name].present += 1
                continue
            chunks[name].append(call)
            if len(chunks[name]) >= self.chunk_size[name]:
                yield chunks[name]
                chunks[name] = []
        yield from (chunk for chunk in chunks.values() if chunk)

    async def _work(self, missing: Iterator[list[Call]], around: Surroundings) -> None:
        for chunk in missing:
            self.unfinished += len(chunk)
            if self.stop.requested:
                return
            can_score = [call.settled is None for call in chunk]
            scorable = [*compress(chunk, can_score)]
            started = time.perf_counter()
            try:
                results = await call_scorer(scorable, around, self.evaluator.seed)
            except (LaneError, BudgetError):
                return
            seconds = (time.perf_counter() - started) / max(1, len(scorable))
            self._size_chunks(chunk[0].scorer, len(chunk), seconds)
            answers = iter(results)
            written: list[Evaluation] = []
            for call, scored in zip(chunk, can_score, strict=True):
                rows = rows_of(call, next(answers) if scored else None, seconds)
                written += rows
                self._count(call, rows)
            self.sync.append(self.log, self.encode(written))
            self.unfinished -= len(chunk)
            await asyncio.sleep(0)

    def _size_chunks(self, scorer: BoundScorer, size: int, seconds: float) -> None:
        """Quick scorers get larger chunks; slow, async and batched ones keep theirs."""
        if scorer.mode != "async" and not scorer.batch:
            fitting = int(CHUNK_SECONDS / seconds) if seconds else LARGEST_CHUNK
            self.chunk_size[scorer.name] = max(1, min(2 * size, fitting, LARGEST_CHUNK))

    def _count(self, call: Call, rows: list[Evaluation]) -> None:
        for row in rows:
            self.existing.count(row.outcome, row.error_kind, first=row.part[0] == 0)
        for rounds in self.rounds:
            rounds.record(rows[0])
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
