"""An experiment whose rows many processes make: by `--shard`, by local workers, on Ray, or in a bucket."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.config import Config
from assay.engine.calls.stop import Stop
from assay.engine.cluster.engines.processes import run_processes
from assay.engine.cluster.finish import finish
from assay.engine.cluster.open import open_generation
from assay.engine.cluster.root import Root
from assay.engine.cluster.shipping import variables
from assay.engine.cluster.status import Lanes, follow
from assay.engine.cluster.worker import Worked, Worker
from assay.engine.experiment.experiment import Bound, Experiment, Result
from assay.errors import Interrupted

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
        """The result of the whole, if this process finished it or waited for it."""
        async with AsyncExitStack() as stack:
            bound = experiment.open(stack)
            workers = await self._count(experiment.config)
            generation = await open_generation(
                self.root, experiment, bound, workers or _UNKNOWN, self.paths
            )
            if self.root.whole(generation) is not None:
                return await finish(self.root, generation, experiment, bound)
            if self.workers == 0:
                experiment.progress.note(
                    f"the plan has {generation.shards} shards: assay worker {self.root.place}"
                )
                return Result(folder=self.root.place, notes=experiment.progress.notes)
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="assay-worker-")))
            worker = partial(
                Worker, self.root, generation, experiment, bound, folder, self.shard, stop
            )
            if self.on or (workers > 1 and self.shard is None):
                worked = await self._with_others(workers, worker(shown=False), stop)
                if worked is not None and worked.result is not None:
                    return worked.result
                _until_asked(stop)
                if not self.root.unfinished(generation):
                    return await finish(self.root, generation, experiment, bound)
            worked = await worker().work()  # also what others have left
        if worked.result is not None:
            return worked.result
        _until_asked(stop)
        left = len(self.root.unfinished(generation))
        experiment.progress.note(
            f"{left} of {generation.shards} shards are in the hands of other workers"
        )
        return Result(folder=self.root.place, notes=experiment.progress.notes)

    async def _count(self, config: Config) -> int:
        """How many workers there will be; 0 if nobody knows."""
        if self.shard is not None:
            return self.shard[1]
        if self.on and not self.workers:
            from assay.engine.cluster.engines.ray import room

            return await asyncio.to_thread(room, config.on and config.on.ray)
        return 1 if self.workers is None else self.workers

    async def _with_others(self, workers: int, own: Worker, stop: Stop | None) -> Worked | None:
        """Have this many workers, and wait for them. On this machine this process is one of them."""
        generation, experiment, planned = (
            own.generation,
            own.experiment,
            _planned(own.experiment, own.bound),
        )
        following = asyncio.create_task(follow(self.root, generation, experiment.progress, planned))
        try:
            if not self.on:
                return await run_processes(
                    self.root, workers - 1, experiment.progress, stop, own.work
                )
            from assay.engine.cluster.engines.ray import run_on_ray

            engine, names = (
                experiment.config.on and experiment.config.on.ray,
                variables(generation.config),
            )
            await asyncio.to_thread(
                run_on_ray, self.root.place, workers, engine, names=names, stop=stop
            )
        finally:
            following.cancel()


def _until_asked(stop: Stop | None) -> None:
    if stop is not None and stop.requested:
        raise Interrupted("stopped; every finished row is kept", fix="the same command resumes")


def _planned(experiment: Experiment, bound: Bound) -> Lanes:
    """The rows of the whole, where that is what runs now."""
    manifest = experiment.manifest("run")
    options = experiment.options
    if (
        manifest is None
        or not manifest.planned
        or options.limit is not None
        or options.models
        or options.num_samples
    ):
        return {}
    lanes: Lanes = {
        ("evaluate", each.name): manifest.planned for each in bound.scorers if not each.of_several
    }
    for task in bound.tasks:
        lane = "run", task.lane or task.name
        lanes[lane] = lanes.get(lane, 0) + manifest.planned // len(bound.tasks)
    return lanes
