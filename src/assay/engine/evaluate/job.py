"""An evaluation at work: which calls are missing, who makes them, and the commit of what came back."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import msgspec

from assay.engine.calls.context import RowContext, Surroundings
from assay.engine.calls.stop import finish
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.cases import Call, calls_of
from assay.engine.evaluate.matches import Matches, Rounds
from assay.engine.evaluate.rows import Result, rows_of
from assay.engine.run.artefact import Job
from assay.errors import BudgetError, Interrupted, LaneError
from assay.records import Evaluation, Manifest, row_count
from assay.store.index import ItemIndex
from assay.store.keys import digest, seed_of

if TYPE_CHECKING:
    from assay.engine.evaluate.evaluate import Evaluator


LARGEST_CHUNK = 256  # calls that a worker takes at a time and commits together,
CHUNK_SECONDS = 0.02  # but no more than fit into this time, so that a crash costs little


class EvaluationJob(Job):
    """One call of `Evaluator.evaluate`."""

    def __init__(
        self,
        evaluator: "Evaluator",
        manifest: Manifest,
        items: ItemIndex,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
    ) -> None:
        super().__init__(evaluator, manifest)
        self.evaluator = evaluator
        self.items = items
        self.scorers = scorers
        self.runs = [(run, self.store.log("run", run)) for run in runs]
        self.encode = msgspec.json.Encoder().encode_lines
        self.progress = {scorer.name: evaluator.progress.lane(scorer.name) for scorer in scorers}
        rows = sum(map(row_count, filter(None, (self.store.manifest("run", run) for run in runs))))
        for scorer in scorers:
            self.progress[scorer.name].total = rows if rows and not scorer.of_several else None
        self.matches: list[Matches] = []
        self.rounds: list[Rounds] = []
        self.unfinished = 0  # calls that a worker has taken and not yet committed
        self.chunk_size = {scorer.name: scorer.batch or 1 for scorer in scorers}

    async def run(self, retry_errors: bool | None, budget: int | None) -> Manifest:
        progress = self.evaluator.progress
        several = [scorer for scorer in self.scorers if scorer.of_several]
        self.matches = [Matches(scorer, self.runs, self.items, progress.note) for scorer in several]
        single = calls_of(self.scorers, self.runs, self.items)
        planned = ((call.key, True) for call in chain(single, self._match_calls()))
        self.existing.settle(planned, retry_errors=retry_errors, note=progress.note)
        if budget is not None:
            playing = [matches for matches in self.matches if matches.scorer.form == "match"]
            self.rounds = [
                Rounds(matches, self.log, budget, self.evaluator.seed) for matches in playing
            ]
        for each in self.matches:
            self.progress[each.scorer.name].total = each.count if budget is None else None
        totals = [self.progress[scorer.name].total for scorer in self.scorers]
        self.begin(None if None in totals else sum(filter(None, totals)))
        lanes = self.evaluator.lanes(lambda name: progress.lane(f"calls to {name}"))
        finished = False
        try:
            with self.evaluator.surroundings(
                "evaluation", self.manifest.id, lanes, self.evaluator.threads
            ) as around:
                await self._score_all(around)
            finished, self.manifest.planned = True, self.existing.total
        finally:
            self.sync.close()
            self.end(finished, (scorer.name for scorer in self.scorers))
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
            raise Interrupted("stopped; every finished row is kept", fix="the same command resumes")
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
                around.raise_if_broken()
                return
            around.raise_if_broken()
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


async def call_scorer(calls: list[Call], around: Surroundings, seed: int) -> list[Result]:
    """(what the scorer returned, what it raised) for each of several calls of one scorer.

    LaneError and BudgetError are raised: no call can be made any more, and the next run makes these.
    """
    if not calls:
        return []
    scorer = calls[0].scorer
    contexts = [_context(call, around, seed) for call in calls] if scorer.takes_context else []
    if scorer.batch:
        results = await _batch(scorer, calls, contexts, around)
    elif scorer.mode == "inline" and scorer.form == "item" and not contexts:
        results = _inline(scorer, calls)
    else:
        bound = [
            scorer.arguments(call.case, contexts[i] if contexts else None)
            for i, call in enumerate(calls)
        ]
        results = await _each(scorer, bound, around)
    for _, error in results:
        if isinstance(error, (LaneError, BudgetError)):
            raise error
    for call, context in zip(calls, contexts, strict=False):
        context.write_trace(call.key)
    return results


def _inline(scorer: BoundScorer, calls: list[Call]) -> list[Result]:
    function, params = scorer.function, scorer.params
    results: list[Result] = []
    for call in calls:
        try:
            results.append((function(call.case.item, call.case.responses[0], **params), None))
        except Exception as error:  # becomes the row's error
            results.append((None, error))
    return results


async def _each(
    scorer: BoundScorer, bound: list[tuple[list[Any], dict[str, Any]]], around: Surroundings
) -> list[Result]:
    if scorer.mode == "async":
        return [await _awaited(scorer, positional, keywords) for positional, keywords in bound]
    made = [partial(scorer.function, *positional, **keywords) for positional, keywords in bound]
    if scorer.mode == "thread":
        return await around.threads.map(made, scorer.timeout)
    return [_called(call) for call in made]


async def _batch(
    scorer: BoundScorer, calls: list[Call], contexts: list[RowContext], around: Surroundings
) -> list[Result]:
    cases = [call.case for call in calls]
    keywords = {**scorer.params, "contexts": contexts} if contexts else scorer.params
    ((result, error),) = await _each(scorer, [([cases], keywords)], around)
    if error is None and (not isinstance(result, list) or len(result) != len(calls)):
        error = ValueError(f"a batch of {len(calls)} cases needs a list of as many results")
    if error is not None:
        return [(None, error)] * len(calls)
    return [(entry, None) for entry in result]


def _context(call: Call, around: Surroundings, seed: int) -> RowContext:
    response = call.case.responses[0]
    addresses = [f"{row.task}:{row.item_id}:{row.sample_index}" for row in call.case.responses]
    if call.players is not None:
        addresses += [*call.players, str(call.seat)]
    owner = digest(
        "scorer-owner", call.scorer.name.encode(), *(address.encode() for address in addresses)
    )
    return RowContext(
        around,
        item_id=response.item_id,
        sample_index=response.sample_index,
        seed=seed_of(seed, owner),
        owner=owner,
        name=call.scorer.name,
        model="",
    )


async def _awaited(scorer: BoundScorer, positional: list[Any], keywords: dict[str, Any]) -> Result:
    try:
        async with asyncio.timeout(scorer.timeout):
            return await scorer.function(*positional, **keywords), None
    except Exception as error:  # becomes the row's error
        return None, error


def _called(call: Callable[[], Any]) -> Result:
    try:
        return call(), None
    except Exception as error:  # becomes the row's error
        return None, error
