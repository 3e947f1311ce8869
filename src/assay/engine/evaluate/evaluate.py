"""The second executor: responses → labels, one row each.

A scorer call with existing rows is not made again. All labels of a call are one commit. A scorer that raises,
hangs or returns nonsense gives an error row; a response that is an error, or was refused, is never scored.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, compress, repeat
from typing import Any, Unpack

import msgspec

from assay.engine.calls.context import RowContext, Surroundings
from assay.engine.calls.executor import Executor, Shared
from assay.engine.calls.stop import finish
from assay.engine.evaluate.bind import BoundScorer
from assay.engine.evaluate.cases import Call, calls_of
from assay.engine.evaluate.directions import LOWER
from assay.engine.evaluate.judges import OWN_ANSWERS, own_answers
from assay.engine.evaluate.matches import MatchCalls, Rounds
from assay.engine.evaluate.rows import Result, rows_of
from assay.engine.run.artefact import ArtefactJob, input_of, new_manifest
from assay.engine.run.plan import is_finished, plan_digest, refuse_repeated
from assay.records import Evaluation, JsonMapping, JsonObject, Manifest, row_count
from assay.sdk import BudgetError, Interrupted, LaneError, Store, UserError
from assay.store.index import ItemIndex
from assay.store.keys import digest, seed_of
from assay.threads import blocking


class Evaluator(Executor):
    """Scores stored runs; scorers that are not async run in as many `threads`."""

    def __init__(self, store: Store, *, threads: int = 8, **shared: Unpack[Shared]) -> None:
        super().__init__(store, **shared)
        self.threads = threads

    async def evaluate_async(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str = "",
        name: str = "",
        dataset: str = "",
        retry_errors: bool | None = False,
        budget: int | None = None,
        metadata: JsonMapping | None = None,
    ) -> Manifest:
        """Return the evaluation's manifest, when every call has its rows. `dataset`: where the runs do not say it. With
        a `budget` only this many matches are played, those that tell most about who is better. `metadata` is for the
        manifest."""
        id, plan, source = self.describe(runs, scorers, id=id, dataset=dataset, budget=budget)
        self.progress.begin("evaluate")
        with self.store.lock("evaluation", id):
            old = self.store.manifest("evaluation", id)
            rows = self.store.log("evaluation", id)
            if old is not None and is_finished(old, plan_digest(plan), rows, retry_errors):
                self.show_present((scorer.name for scorer in scorers), old)
                return old
            manifest = self.new_manifest(id, plan, runs, scorers, name=name, metadata=metadata)
            items = self.datasets.index(source)
            return await EvaluationJob(self, manifest, items, runs, scorers).run(
                retry_errors, budget
            )

    evaluate = blocking(evaluate_async)

    def describe(
        self,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        id: str,
        dataset: str,
        budget: int | None = None,
    ) -> tuple[str, JsonObject, str]:
        """Return the id of an evaluation, its plan, and the id of its dataset."""
        check_scorers(runs, scorers)
        inputs, source = self.inputs(runs, dataset)
        plan: JsonObject = {
            "runs": inputs,
            "scorers": [scorer_plan(scorer) for scorer in scorers],
        }
        if budget is not None:
            plan["matches"] = budget
        id = id or plan_digest(plan)[:16]  # what is declared of labels does not change them
        plan["scorers"] = [scorer_plan(scorer) | scorer.declared for scorer in scorers]
        return id, plan, source

    def inputs(self, runs: Sequence[str], dataset: str) -> tuple[list[JsonObject], str]:
        """Return what an evaluation of these runs is made from, and the id of its dataset."""
        inputs = [input_of(self.store, "run", run) for run in runs]
        sources = [dataset] if dataset else self._datasets_of(runs)
        if len(sources) != 1:
            known = ", ".join(map(repr, sources)) or "none"
            raise UserError(
                f"the runs must share one dataset, found {known}", fix="evaluate them one by one"
            )
        stored = self.store.manifest("dataset", sources[0])
        digest = stored.digest if stored else ""
        return [*inputs, {"kind": "dataset", "id": sources[0], "digest": digest}], sources[0]

    def _datasets_of(self, runs: Sequence[str]) -> list[str]:
        manifests = (self.store.manifest("run", run) for run in runs)
        entries = chain.from_iterable(manifest.inputs for manifest in filter(None, manifests))
        return list(dict.fromkeys(entry["id"] for entry in entries if entry["kind"] == "dataset"))

    def new_manifest(
        self,
        id: str,
        plan: JsonObject,
        runs: Sequence[str],
        scorers: Sequence[BoundScorer],
        *,
        name: str,
        metadata: JsonMapping | None,
    ) -> Manifest:
        """Return the manifest of an evaluation that begins, with what an earlier one remembers and what this one is to
        remember. A judge is kinder to its own answers: metrics of such rows say so."""
        old = self.store.manifest("evaluation", id)
        manifest = new_manifest(old, "evaluation", id, plan, name=name, inputs=plan["runs"])
        manifest.metadata = {**(old.metadata if old else {}), **(metadata or {})}
        judges = {scorer.name: scorer.judges for scorer in scorers if scorer.judges}
        found = own_answers(judges, [self.store.manifest("run", run) for run in runs])
        manifest.metadata.pop(OWN_ANSWERS, None)
        if found:
            manifest.metadata[OWN_ANSWERS] = found
        return manifest


def scorer_plan(scorer: BoundScorer) -> JsonObject:
    """Return what a plan says of a scorer."""
    found: JsonObject = {
        "name": scorer.name,
        "identity": scorer.identity.hex(),
        "params": scorer.params,
    }
    if scorer.of_several:
        found |= {
            "player": scorer.player,
            "both_seats": scorer.both_seats,
            "skip_failures": scorer.skip_failures,
        }
    if scorer.lower_is_better:
        found[LOWER] = True
    if scorer.limit is not None:
        found["limit"] = scorer.limit
    if scorer.people is not None:
        found["people"] = scorer.people.digest
    return found


def check_scorers(runs: Sequence[str], scorers: Sequence[BoundScorer]) -> None:
    if not runs:
        raise UserError("there is no run to evaluate", fix="name at least one run")
    if not scorers:
        raise UserError("there is nothing to score with", fix="add `evaluation_methods:`")
    refuse_repeated(scorers, "scorers", "give one of them another `name:`")


LARGEST_CHUNK = 256  # calls that a worker takes at a time and commits together,
CHUNK_SECONDS = 0.02  # but no more than fit into this time, so that a crash costs little


class EvaluationJob(ArtefactJob):
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
        several = [scorer for scorer in scorers if scorer.of_several]
        note = evaluator.progress.note
        self.matches = [MatchCalls(scorer, self.runs, items, note) for scorer in several]
        self.rounds: list[Rounds] = []
        self.unfinished = 0  # calls that a worker has taken and not yet committed
        self.chunk_size = {scorer.name: scorer.batch or 1 for scorer in scorers}

    async def run(self, retry_errors: bool | None, budget: int | None) -> Manifest:
        self._plan(retry_errors, budget)
        evaluator, id = self.evaluator, self.manifest.id
        lanes = evaluator.lanes(lambda name: evaluator.progress.lane(f"calls to {name}"))
        finished = False
        try:
            with evaluator.surroundings("evaluation", id, lanes, evaluator.threads) as around:
                await self._score_all(around)
            finished, self.manifest.planned = True, self.existing.total
        finally:
            self.sync.close()
            self.end(finished, (scorer.name for scorer in self.scorers))
        return self.manifest

    def _plan(self, retry_errors: bool | None, budget: int | None) -> None:
        """Bring the rows that exist in line with the plan, and tell how many there will be."""
        single = calls_of(self.scorers, self.runs, self.items)
        planned = ((call.key, True) for call in chain(single, self._match_calls()))
        note, seed = self.evaluator.progress.note, self.evaluator.seed
        self.existing.settle(planned, retry_errors=retry_errors, note=note)
        if budget is not None:
            playing = [matches for matches in self.matches if matches.scorer.form == "match"]
            self.rounds = [Rounds(matches, self.log, budget, seed) for matches in playing]
        totals = self._totals(budget)
        for name, total in totals.items():
            self.progress[name].total = total
        self.begin(None if None in totals.values() else sum(filter(None, totals.values())))

    def _totals(self, budget: int | None) -> dict[str, int | None]:
        """Return how many calls each scorer has, where that is known."""
        manifests = [self.store.manifest("run", run) for run, _ in self.runs]
        answers = sum(map(row_count, filter(None, manifests))) or None
        totals = {scorer.name: answers for scorer in self.scorers}
        for matches in self.matches:
            totals[matches.scorer.name] = matches.count if budget is None else None
        return totals

    async def _score_all(self, around: Surroundings) -> None:
        at_once = {
            "async": self.evaluator.default_limits.max_concurrency,
            "thread": self.evaluator.threads,
        }
        width = max(at_once.get(scorer.mode, 1) for scorer in self.scorers)
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
            raise Interrupted
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
    """Return (what the scorer returned, what it raised) for each of several calls of one scorer.

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
        of_each = contexts or repeat(None, len(calls))
        bound = [
            scorer.arguments(call.case, context)
            for call, context in zip(calls, of_each, strict=True)
        ]
        results = await _each(scorer, bound, around)
    _raise_refusal(results)
    for call, context in zip(calls, contexts, strict=False):
        context.write_trace(call.key)
    return results


def _raise_refusal(results: list[Result]) -> None:
    for _, error in results:
        if isinstance(error, (LaneError, BudgetError)):
            raise error


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
    scorer: BoundScorer, bound: list[tuple[list[Any], JsonObject]], around: Surroundings
) -> list[Result]:
    made = [partial(scorer.function, *positional, **keywords) for positional, keywords in bound]
    if scorer.mode == "thread":
        return await around.threads.map(made, scorer.timeout)
    return [await _result_of(scorer, call) for call in made]


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


async def _result_of(scorer: BoundScorer, call: Callable[[], Any]) -> Result:
    try:
        if scorer.mode != "async":
            return call(), None
        async with asyncio.timeout(scorer.timeout):
            return await call(), None
    except Exception as error:  # becomes the row's error
        return None, error
