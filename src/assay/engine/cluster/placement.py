"""An experiment whose rows many processes make: by `--shard`, by local workers, on Ray, or in a bucket."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from assay.config import Config, RayConfig
from assay.engine.calls.stop import Stop
from assay.engine.cluster.open import open_generation
from assay.engine.cluster.processes import run_processes
from assay.engine.cluster.root import Root
from assay.engine.cluster.worker import Worker
from assay.engine.experiment.experiment import Experiment, Result

_UNKNOWN = 16  # workers of a cluster that may grow


class Placement:
    """Where the workers of an experiment are; called with it, it makes the rows."""

    def __init__(
        self,
        root: Root,
        *,
        workers: int | None = None,
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
        count = self.shard[1] if self.shard else self.workers or _ray(experiment.config).workers
        generation = await open_generation(self.root, experiment, bound, count or _UNKNOWN, self.paths)
        if self.shard is None and (self.workers or self.on):
            await self._start(experiment, stop)
        with TemporaryDirectory(prefix="assay-worker-") as folder:
            worked = await Worker(self.root, generation, experiment, Path(folder), self.shard, stop).work()
        if worked.result is not None:
            return worked.result
        left = len(self.root.unfinished(generation))
        experiment.progress.note(f"{left} of {generation.shards} shards are in the hands of other workers")
        return Result(folder=self.root.place, notes=experiment.progress.notes)

    async def _start(self, experiment: Experiment, stop: Stop | None) -> None:
        config = experiment.config
        if self.on != "ray":
            await run_processes(self.root, self.workers or 1, experiment.progress, stop)
            return
        from assay.engine.cluster.ray import run_on_ray
        from assay.engine.cluster.shipping import variables

        names = variables(config)
        await asyncio.to_thread(run_on_ray, self.root.place, self.workers, _ray(config), names=names, stop=stop)


def _ray(config: Config) -> RayConfig:
    return (config.on.ray if config.on else None) or RayConfig()
