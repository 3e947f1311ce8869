"""A worker: takes shards of a generation until none is left, and makes their rows with the ordinary executors."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from assay.engine.calls.executor import Shared
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.cluster.commit import ShardStore, TakenOver
from assay.engine.cluster.finish import Finish
from assay.engine.cluster.root import Root, experiment_of, plan_of, refuse_differences
from assay.engine.cluster.shards import Parted
from assay.engine.cluster.shares.shares import shares_of
from assay.engine.cluster.status import FOLLOWED, WorkerStatus, show, worker_status
from assay.engine.experiment.experiment import Result
from assay.sdk import (
    ROWS_FILE,
    BudgetError,
    Interrupted,
    Manifest,
    RunFailed,
    StoreError,
    UserError,
)
from assay.store.lock import patient
from assay.store.repositories import DatasetRepository
from assay.store.shared.claims import Claims, new_beat
from assay.store.shared.generations import generation_name, is_open
from assay.store.shared.objects import FolderObjects
from assay.store.shared.segments import ClosedError

BEAT = 2.0  # seconds between two signs of life, for people who watch
POLL = 0.1  # seconds between the first two looks for a free shard; they become rarer


class Worked(msgspec.Struct):
    """What a worker did. `result` is there if it was the one that finished the whole."""

    worker: str
    shards: int = 0
    rows: int = 0
    result: Result | None = None


async def work(
    place: str | Path,
    *,
    shard: tuple[int, int] | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
    environ: Mapping[str, str] | None = None,
    name: str = "",
) -> Worked:
    """Work on what was begun at a root, until every shard is finished or in the hands of others. `shard` is (i, n):
    those that leave i - 1 when divided by n come first."""
    root = Root(place)
    generation = root.generation()
    if generation is None or not generation.shards:
        what = "there is no plan to work on"
        raise UserError(
            what, where=root.place, fix=f"assay run CONFIG -o {root.place} --workers 0 begins one"
        )
    with TemporaryDirectory(prefix="assay-worker-") as folder:
        experiment = experiment_of(root, generation, Path(folder), environ)
        experiment.progress = progress or experiment.progress
        async with AsyncExitStack() as stack:
            bound = experiment.open(stack)
            whole = Finish(root, generation, experiment, bound)
            return await Worker(whole, Path(folder), shard, stop, name).work()


class Worker:
    """One process's part in a generation."""

    holding: int | None = None
    outdated = False

    def __init__(
        self,
        whole: Finish,
        folder: Path,
        shard: tuple[int, int] | None = None,
        stop: Stop | None = None,
        name: str = "",
        shown: bool = True,
    ) -> None:
        self.whole, self.folder = whole, folder
        self.root, self.generation = whole.root, whole.generation
        self.experiment, self.bound = whole.experiment, whole.bound
        self.stop = stop or Stop()
        # that of the experiment may show all workers
        self.display = self.experiment.progress if shown else Progress()
        self.beat = new_beat(name)
        objects = self.root.objects
        self.workers = self.generation.workers(objects)
        self.claims = Claims(objects, f"claims/{self.generation.number}/", self.workers)
        self.own = shard or (1, 1)
        self.worked = Worked(self.beat.worker)
        self.committed: Callable[[], dict[str, int]] = dict
        self.shard_stop = Stop()
        self.before = WorkerStatus()  # what the shards before this one came to
        self.progress = Progress()  # in the shard under way
        self.parted = Parted(self.root, self.generation, folder)
        self._loop = asyncio.get_running_loop()

    async def work(self) -> Worked:
        """Take shards until there is nothing left to take; then finish the whole, if it is whole."""
        async with AsyncExitStack() as stack:
            await self._prepare()
            self.shares = shares_of(
                self.experiment, self.bound.models, self.generation, self.workers
            )
            await asyncio.to_thread(self.shares.join, self.beat)
            heart = threading.Event()
            beating = self._loop.run_in_executor(None, self._keep_beating, heart)
            stack.push_async_callback(self._end, heart, beating)
            stack.callback(asyncio.create_task(self._show()).cancel)
            while (shard := await self._next()) is not None:
                with suppress(TakenOver):
                    await self._make(shard)
            if self.outdated:
                raise ClosedError(self.root.place)
            if not self.root.unfinished_shards(self.generation):
                self.worked.result = await self.whole.run()
        return self.worked

    async def _prepare(self) -> None:
        """See that this process has the plan, and show the rows that are evaluated."""
        experiment, bound = self.experiment, self.bound
        if not is_open(self.root.objects, self.generation):
            raise ClosedError(self.root.place)
        if self.generation.verb == "evaluate":
            async with AsyncExitStack() as stack:
                with patient(experiment.store.lock("evaluation", experiment.id)):
                    self.root.update(segments=False, own=True)
                    await experiment.make(
                        bound, experiment.for_executors(bound.models, None), stack
                    )
        dataset = experiment.manifest("dataset")
        refuse_differences(self.generation, plan_of(experiment, bound, dataset), self.root.place)

    # -- which shard

    async def _next(self) -> int | None:
        """Claim a shard: an own one, a free one, or that of a worker that is dead. None when all that are left are in
        the hands of workers that live, or the worker was asked to stop."""
        number, parts = self.own
        start = number if parts > 1 else xxh3_64_intdigest(self.beat.worker.encode())
        seen: dict[str, int] = {}
        pause = POLL
        while not self.stop.requested:
            left = self.root.unfinished_shards(self.generation)
            left.sort(
                key=lambda shard: (
                    shard % parts != number - 1,
                    (shard - start) % self.generation.shards,
                )
            )
            candidates = self.claims.candidates(left)
            for shard in candidates:
                if self.claims.take(shard, self.beat.worker):
                    return shard
            holders = {self.claims.holder(shard) for shard in candidates}
            beats = {
                holder: beat.count for holder in holders if (beat := self.workers.last(holder))
            }
            if all(
                beats.get(holder, 0) > seen.setdefault(holder, beats.get(holder, 0))
                for holder in holders
            ):
                return None
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, self.workers.lease / 3)
        return None

    # -- one shard

    async def _make(self, shard: int) -> None:
        self.shard_stop = Stop()
        self.holding = shard  # last: another thread takes both
        self.stop.listen(self.shard_stop.request)
        experiment, bound = self.experiment, self.bound
        with TemporaryDirectory(dir=self.folder) as folder:
            store = ShardStore(
                Path(folder), experiment.id, self.root.objects, self.generation, shard
            )
            self.committed = store.segment_counts
            try:
                store.fill(partial(self.parted.before, shard))
                items = self._items(store, shard)
                own: Shared = {**self.shares.for_executors(), "datasets": DatasetRepository(store)}
                self.progress = own["progress"] = Progress(notes=experiment.progress.notes)
                shared = experiment.for_executors(bound.models, self.shard_stop, own)
                parts = await self._make_rows(store, shard, shared, items)
                self.root.objects.create(
                    self.generation.finished(shard), msgspec.json.encode(parts)
                )
                self.worked.shards += 1
            except (Interrupted, BudgetError, RunFailed) as error:
                # else it would only disturb who took over
                if self.claims.holder(shard) == self.beat.worker:
                    await asyncio.to_thread(store.committer.flush)
                if not self.shard_stop.requested:
                    raise
                # lanes that were stopped say so in their own words
                if self.stop.requested and not self.outdated:
                    raise Interrupted from error
            finally:
                self.holding, self.committed = None, dict
                await asyncio.to_thread(store.committer.close)
                self.before, self.progress = (
                    worker_status(self.progress, [], self.before),
                    Progress(),
                )
                show([self.before], self.display)

    async def _make_rows(
        self, store: ShardStore, shard: int, shared: Shared, items: int
    ) -> dict[str, Manifest]:
        """Make and commit the responses and labels of a shard, of which so many items run now."""
        experiment, bound = self.experiment, self.bound
        parts: dict[str, Manifest] = {}
        if experiment.makes_rows:
            chosen = replace(experiment.selection(bound.tasks), items=items)
            parts["run"] = await experiment.infer(bound, shared, chosen, store)
            await asyncio.to_thread(store.committer.flush)
        if bound.scorers:
            for run in () if bound.tasks else experiment.runs():
                rows = self.parted.places(f"run {run}", partial(experiment.store.log, "run", run))
                store.show("run", run, rows.of(shard), experiment.store.manifest("run", run))
            parts["evaluation"] = await experiment.score(bound.scorers, shared, store)
        await asyncio.to_thread(store.committer.flush)
        return parts

    def _items(self, store: ShardStore, shard: int) -> int:
        """Store the shard's items; how many of them run now."""
        experiment, name = self.experiment, ROWS_FILE["dataset"]
        own = partial(experiment.store.log, "dataset", experiment.id)
        places = self.parted.places(name, None if self.generation.verb == "run" else own)
        count = store.put_items(experiment.id, places.of(shard).blocks())
        limit = experiment.options.limit
        return count if limit is None else places.among_first(shard, limit)

    # -- signs of life

    def _keep_beating(self, ended: threading.Event) -> None:
        """Say that this worker lives. One that cannot, other than because the store is away, ends: its shards and its
        share of the limits would be taken away from it. The first beats follow quickly: those that begin at the same
        time share the limits, and people look."""
        pause = FOLLOWED
        try:
            while True:
                # the store is away for a while: committing tells if it stays so
                with suppress(StoreError):
                    self._live()
                if ended.wait(min(pause, self.workers.lease / 3)):
                    return
                pause = (
                    min(1.5 * pause, BEAT)
                    if isinstance(self.root.objects, FolderObjects)
                    else 1.5 * pause
                )
        except Exception:
            self._loop.call_soon_threadsafe(self.stop.request)
            raise

    def _live(self) -> None:
        """Say so, and look whether the shard and the generation are still this worker's."""
        shard, stop = self.holding, self.shard_stop
        self.beat.status = msgspec.to_builtins(self._status())
        self.shares.refresh()
        if shard is not None and self.claims.holder(shard) != self.beat.worker:
            self._loop.call_soon_threadsafe(stop.request)
        if self.root.objects.read(generation_name(self.generation.number + 1)) is not None:
            self.outdated = True
            self._loop.call_soon_threadsafe(self.stop.request)

    def _status(self) -> WorkerStatus:
        told = worker_status(
            self.progress, [] if self.holding is None else [self.holding], self.before
        )
        told.committed = self.committed()
        return told

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(FOLLOWED)
            show([self._status()], self.display)

    async def _end(self, ended: threading.Event, beating: "asyncio.Future[None]") -> None:
        ended.set()
        await asyncio.wait([beating])
        with suppress(StoreError):
            await asyncio.to_thread(self.shares.leave)
        self.beat.ended, self.beat.status = True, msgspec.to_builtins(self.before)
        with suppress(StoreError):
            self.workers.beat(self.beat)
        beating.result()
