"""An experiment whose rows many processes make: by `--shard`, by local workers, on Ray, or in a bucket."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.engine.calls.stop import Stop
from assay.engine.cluster.finish import finish
from assay.engine.cluster.open import open_generation
from assay.engine.cluster.processes import run_processes
from assay.engine.cluster.root import Root
from assay.engine.cluster.shipping import variables
from assay.engine.cluster.worker import Worker
from assay.engine.experiment.experiment import Experiment, Result


class Placement:
    """Where the workers of an experiment are; called with it, it makes the rows."""

    def __init__(
        self,
        root: Root,
        *,
        workers: int = 0,
        shard: tuple[int, int] | None = None,
        on: str = "",
        paths: Sequence[str] = (),
    ) -> None:
        self.root = root
        self.workers = workers
        self.shard = shard
        self.on = on
        self.paths = list(paths)

    async def __call__(self, experiment: Experiment, stop: Stop | None) -> Result:
        """The result of the whole, if this process finished it or waited for it."""
        bound = experiment.responses.bind(experiment)
        workers, engine = self.workers, experiment.config.on and experiment.config.on.ray
        if self.on and self.shard is None:
            from assay.engine.cluster.ray import room

            workers = workers or await asyncio.to_thread(room, engine)
        count = self.shard[1] if self.shard else max(1, workers)
        generation = await open_generation(self.root, experiment, bound, count, self.paths)
        if self.root.whole(generation) is not None:
            return await finish(self.root, generation, experiment, bound)
        if self.on and self.shard is None:
            from assay.engine.cluster.ray import run_on_ray

            names = variables(generation.config)
            await asyncio.to_thread(run_on_ray, self.root.place, workers, engine, names=names, stop=stop)
        elif workers and self.shard is None:
            await run_processes(self.root, workers, experiment.progress, stop)
        with TemporaryDirectory(prefix="assay-worker-") as folder:
            worked = await Worker(self.root, generation, experiment, Path(folder), self.shard, stop).work()
        if worked.result is not None:
            return worked.result
        left = len(self.root.unfinished(generation))
        experiment.progress.note(f"{left} of {generation.shards} shards are in the hands of other workers")
        return Result(folder=self.root.place, notes=experiment.progress.notes)
