"""An experiment whose rows many processes make: by `--shard`, by local workers, on Ray, or in a bucket."""

import asyncio
import os
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from assay.config import Config, resolved
from assay.engine.calls.executor import Shared
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.cluster.finish import Finish
from assay.engine.cluster.root import Root, plan_of, refuse_differences
from assay.engine.cluster.shipping import ship, variables
from assay.engine.cluster.status import Lanes, follow
from assay.engine.cluster.worker import Worked, Worker
from assay.engine.experiment.dataset import media_folder
from assay.engine.experiment.experiment import BoundConfig, Experiment, Result
from assay.engine.experiment.trust import write_config
from assay.engine.run.plan import plan_digest
from assay.sdk import VERSION, Interrupted, JsonObject, Manifest, RunFailed, StoreError, UserError
from assay.store.lock import patient
from assay.store.shared.generations import BASE, Generation, begin, close, compact, is_open, living

_UNKNOWN = 16  # workers of a plan that others will work on


@dataclass
class Placement:
    """Where the workers of an experiment are; called with it, it makes the rows. No `workers` means that this process
    is one, 0 that others will be."""

    root: Root
    workers: int | None = None
    shard: tuple[int, int] | None = None
    on: str = ""
    paths: Sequence[str] = ()

    async def __call__(self, experiment: Experiment, stop: Stop | None) -> Result:
        """Return the result of the whole, if this process finished it or waited for it."""
        async with AsyncExitStack() as stack:
            bound = experiment.open(stack)
            workers = await self._count(experiment.config)
            opening = Opening(self.root, experiment, bound, workers or _UNKNOWN, self.paths)
            generation = await opening.run()
            whole = Finish(self.root, generation, experiment, bound)
            if self.root.whole(generation) is not None:
                return await whole.run()
            if self.workers == 0:
                what = f"the plan has {generation.shards} shards: assay worker {self.root.place}"
                experiment.progress.note(what)
                return whole.result
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="assay-worker-")))
            worker = partial(Worker, whole, folder, self.shard, stop)
            if self.on or (workers > 1 and self.shard is None):
                worked = await self._with_others(workers, worker(shown=False), stop)
                if worked is not None and worked.result is not None:
                    return worked.result
                _until_asked(stop)
                if not self.root.unfinished_shards(generation):
                    return await whole.run()
            worked = await worker().work()  # also what others have left
        if worked.result is not None:
            return worked.result
        _until_asked(stop)
        left = len(self.root.unfinished_shards(generation))
        what = f"{left} of {generation.shards} shards are in the hands of other workers"
        experiment.progress.note(what)
        return whole.result

    async def _count(self, config: Config) -> int:
        """Return how many workers there will be; 0 if nobody knows."""
        if self.shard is not None:
            return self.shard[1]
        if self.on and not self.workers:
            from assay.engine.cluster.engines.ray import room

            return await asyncio.to_thread(room, config.on and config.on.ray)
        return 1 if self.workers is None else self.workers

    async def _with_others(self, workers: int, own: Worker, stop: Stop | None) -> Worked | None:
        """Have this many workers, and wait for them. On this machine this process is one of them."""
        generation, experiment = own.generation, own.experiment
        progress, planned = experiment.progress, _planned_rows(own.experiment, own.bound)
        following = asyncio.create_task(follow(self.root, generation, progress, planned))
        try:
            if not self.on:
                return await run_processes(self.root, workers - 1, progress, stop, own.work)
            from assay.engine.cluster.engines.ray import run_on_ray

            engine = experiment.config.on and experiment.config.on.ray
            names, place = variables(generation.config), self.root.place
            await asyncio.to_thread(run_on_ray, place, workers, engine, names=names, stop=stop)
        finally:
            following.cancel()


def _until_asked(stop: Stop | None) -> None:
    if stop is not None and stop.requested:
        raise Interrupted


def _planned_rows(experiment: Experiment, bound: BoundConfig) -> Lanes:
    """The rows of the whole, where that is what runs now."""
    manifest, options = experiment.manifest("run"), experiment.options
    narrowed = options.limit is not None or options.models or options.num_samples
    if manifest is None or not manifest.planned or narrowed:
        return {}
    lanes: Lanes = {
        ("evaluate", each.name): manifest.planned for each in bound.scorers if not each.of_several
    }
    for task in bound.tasks:
        lane = "run", task.lane or task.name
        lanes[lane] = lanes.get(lane, 0) + manifest.planned // len(bound.tasks)
    return lanes


_PER_WORKER = 4  # shards: so that one that is slow, or dies, leaves little to the others
_CHOSEN = ("mode", "models", "limit", "num_samples", "max_concurrency", "max_error_rate")
_ATTEMPTS = 5
# as asked, or nothing was left to do; `finish` looks at the share of errors
_STOPPED = (Interrupted, RunFailed)


@dataclass
class Opening:
    """A plan becomes a generation that so many workers can join, or the one under way is joined."""

    root: Root
    experiment: Experiment
    bound: BoundConfig
    workers: int
    paths: Sequence[str] = ()

    async def run(self) -> Generation:
        """Return the generation that has this experiment's plan: the one under way, or a new one, for which existing
        rows are settled as a run by one process would: what is no longer planned is set aside, what failed is tried
        again."""
        if self.experiment.config.objects:
            raise UserError(
                "functions of this process cannot travel to workers",
                fix="put them into a file, and name it",
            )
        for attempt in range(_ATTEMPTS):
            try:
                last = self.root.generation()
                generation = await self._join(last) or await self._begin(last)
            except StoreError:  # the bucket has changed meanwhile, perhaps
                if attempt == _ATTEMPTS - 1 or self.root.generation() is None:
                    raise
                generation = None
            if generation is not None:
                return generation
            self.root.update()
        raise StoreError(
            "other processes begin plans here, again and again",
            where=self.root.place,
            fix="run one at a time",
        )

    async def _join(self, last: Generation | None) -> Generation | None:
        """Return the generation under way, if its plan is this one, or workers are at it."""
        objects = self.root.objects
        if last is None or not last.shards or not is_open(objects, last):
            return None
        plan = self._plan()
        # workers read it there, also one that was raised
        budget = resolved(self.experiment.config).get("budget")
        same = last.config.get("budget") == budget and last.digest == plan_digest(plan)
        if same and not self._is_over(last):
            return last
        if workers_alive := await asyncio.to_thread(living, objects, last):
            refuse_differences(last, plan, f"{self.root.place}, where {workers_alive[0]} works")
            return last
        return None

    async def _begin(self, before: Generation | None) -> Generation | None:
        """Return a new generation; None if another process was quicker."""
        root, experiment = self.root, self.experiment
        with patient(experiment.store.lock(experiment.kind, experiment.id)):
            last = root.generation()
            is_shared = last is not None and last.shards
            if last is not None and is_shared:
                if before is None or before.number != last.number:
                    return None
                close(root.objects, last)
            # what was committed until now; another process cannot disturb the copy any more
            root.update(own=True)
            if last is not None and is_shared:
                compact(root.folder, last)
            dataset = await self._settle()
            root.push()
            experiment.config = _with_media(experiment.config, dataset)
            generation = self._generation(0 if last is None else last.number + 1, dataset)
            began = begin(root.objects, generation)
            # An opener on another machine may have put its files in place of these before it came too late.
            return generation if began and is_open(root.objects, generation) else None

    def _generation(self, number: int, dataset: Manifest) -> Generation:
        root, experiment = self.root, self.experiment
        plan = plan_of(experiment, self.bound, dataset)
        wanted = _PER_WORKER * self.workers
        chosen = {name: getattr(experiment.options, name) for name in _CHOSEN}
        beside = [root.folder / name for name in BASE]
        return Generation(
            number=number,
            shards=max(1, min(wanted, dataset.planned or wanted)),
            verb="run" if experiment.kind == "run" else "evaluate",
            id=experiment.id,
            digest=plan_digest(plan),
            plan=plan,
            config=self._vouch(),
            options={name: value for name, value in chosen.items() if value},
            paths=list(self.paths),
            files=ship(experiment, root.objects),
            versions={"assay": VERSION, "python": platform.python_version()},
            base={file.name: file.stat().st_size for file in beside if file.exists()},
            created=time.time(),
        )

    def _plan(self) -> JsonObject:
        """Return the plan as this process has it, without touching the root."""
        experiment = self.experiment
        if experiment.config.dataset is None:
            return plan_of(experiment, self.bound, experiment.manifest("dataset"))
        with experiment.trial_store() as store:
            return plan_of(experiment, self.bound, experiment.ingest(store))

    def _is_over(self, generation: Generation) -> bool:
        """Return whether all was done, and something of it is to be done again."""
        whole = self.root.whole(generation)
        if whole is None:
            return False
        experiment = self.experiment
        again = ("transient", "errored") if experiment.options.retry_errors else ("transient",)
        return not experiment.config.resume or any(whole.counts.get(state) for state in again)

    def _vouch(self) -> JsonObject:
        """Return the config as workers read it; that it is this user's word is remembered."""
        experiment = self.experiment
        with TemporaryDirectory(prefix="assay-") as folder:
            if note := write_config(Path(folder), experiment.config):
                experiment.progress.note(note)
        return resolved(experiment.config)

    async def _settle(self) -> Manifest:
        """Do what a run does before its first call: store config and items, check them, bring existing rows in line."""
        experiment, bound = self.experiment, self.bound
        stop = Stop()
        stop.request()
        async with AsyncExitStack() as stack:
            own: Shared = {"progress": Progress(notes=experiment.progress.notes)}
            shared = experiment.for_executors(bound.models, stop, own)
            with suppress(*_STOPPED):
                await experiment.make(bound, shared, stack)
            scored = experiment.store.log("evaluation", experiment.id).segments()
            if bound.scorers and any(segment.size for segment in scored):
                with suppress(*_STOPPED):
                    await experiment.score(bound.scorers, shared)
        dataset = experiment.manifest("dataset")
        assert dataset is not None
        return dataset


def _with_media(config: Config, dataset: Manifest) -> Config:
    """Return the config with the folder of the files that items name: workers have the items from elsewhere."""
    folder = media_folder(config.dataset) if dataset.metadata.get("media") else None
    if config.dataset is None or folder is None:
        return config
    return replace(config, dataset=replace(config.dataset, media=os.path.abspath(folder)))


async def run_processes(
    root: Root,
    workers: int,
    progress: Progress,
    stop: Stop | None,
    work: Callable[[], Awaitable[Worked]],
) -> Worked:
    """Return what `work`, this process's own part, gives while others work, when all have ended.
    One that dies is not missed: another one takes its shards, and if none is left, the caller
    does."""
    command = [sys.executable, "-m", "assay", "worker", root.place, "--quiet"]
    running = [
        await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(workers)
    ]
    if stop is not None:
        stop.listen(lambda: _ask_to_stop(running))
    others = asyncio.gather(*(process.communicate() for process in running))
    try:
        worked, endings = await asyncio.gather(work(), others)
        for number, ended in enumerate(endings):
            code = running[number].returncode
            if code and not (stop and stop.requested):
                text = ended[1].decode(errors="replace").strip().splitlines()
                progress.note(f"a worker ended with {code}: {text[-1] if text else 'no message'}")
        return worked
    finally:
        if not (stop and stop.requested):  # a second time would mean at once
            _ask_to_stop(running)
        await asyncio.gather(*(process.wait() for process in running))


def _ask_to_stop(processes: list[asyncio.subprocess.Process]) -> None:
    for process in processes:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
