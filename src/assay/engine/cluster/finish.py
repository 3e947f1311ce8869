"""When every shard is finished: the manifests of the whole, and the metrics."""

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from assay.engine.cluster.root import Root, Whole
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment.experiment import BoundConfig, Experiment, Result
from assay.engine.run.artefact import close_artefact
from assay.engine.run.plan import plan_digest
from assay.sdk import Manifest, StoreError
from assay.store.lock import patient
from assay.store.repositories import AggregationRepository
from assay.store.sealed import seal_files
from assay.store.shared.generations import Generation, is_open
from assay.store.shared.segments import ClosedError

Parts = list[Manifest]
_LOOKS = 10


@dataclass
class Finish:
    """The manifests of the whole, and its metrics, from the shards of a generation."""

    root: Root
    generation: Generation
    experiment: Experiment
    bound: BoundConfig

    def __post_init__(self) -> None:
        plan = {"metrics": [metric.plan() for metric in self.bound.metrics]}
        self.measured = plan_digest(plan)
        self.result = Result(folder=self.root.place, notes=self.experiment.progress.notes)

    async def run(self) -> Result:
        """Leave behind what one process would have: manifests over all rows, metrics, and why rows failed."""
        try:
            is_made = await self._make()
        except StoreError:  # another one was quicker, perhaps
            if not await self._comes():
                raise
            is_made = False
        if not is_made:
            self.root.update(segments=False)
            self._load()
        self.experiment.note_failures(self.result)
        return self.result

    async def _make(self) -> bool:
        """Return whether this process has made manifests and metrics; False if they exist."""
        root, experiment = self.root, self.experiment
        if self._is_whole():
            return False
        names = map(self.generation.finished, range(self.generation.shards))
        contents = [content or b"{}" for content in root.objects.read_many(names)]
        with patient(experiment.store.lock(experiment.kind, experiment.id)):
            if self._is_whole():
                return False
            if not is_open(root.objects, self.generation):
                raise ClosedError(root.place)
            root.restore(self.generation)
            await self._write(
                [msgspec.json.decode(each, type=dict[str, Manifest]) for each in contents]
            )
            seal_files(experiment.folder)
            root.push()
            made = filter(None, (self.result.run, self.result.evaluation))
            counts = sum((Counter(manifest.counts) for manifest in made), Counter[str]())
            whole = Whole(counts=counts, metrics=self.measured)
            root.objects.write(self.generation.whole, msgspec.json.encode(whole))
        return True

    async def _write(self, parts: Sequence[dict[str, Manifest]]) -> None:
        result, bound, experiment = self.result, self.bound, self.experiment
        if experiment.makes_rows:
            result.run = self._close_run([part["run"] for part in parts])
        if bound.scorers:
            result.evaluation = self._close_evaluation([part["evaluation"] for part in parts])
            experiment.after_scoring(result.evaluation)
        if bound.metrics:
            experiment.options.workers = _cores()  # no shard is left that needs them
            result.metrics = await experiment.measure(bound.metrics)

    def _is_whole(self) -> bool:
        whole = self.root.whole(self.generation)
        return whole is not None and whole.metrics == self.measured

    async def _comes(self) -> bool:
        """Return whether another process says within some seconds that it has made the whole."""
        for _ in range(_LOOKS):
            if self._is_whole():
                return True
            await asyncio.sleep(0.5)
        return False

    def _load(self) -> None:
        """Have the result as another process, or an earlier one, has stored it."""
        result, bound, experiment = self.result, self.bound, self.experiment
        result.run = experiment.manifest("run") if experiment.makes_rows else None
        result.evaluation = experiment.manifest("evaluation") if bound.scorers else None
        if bound.metrics:
            result.metrics = AggregationRepository(experiment.store).metrics(experiment.id)

    def _close_run(self, shards: Parts) -> Manifest:
        manifest = self.experiment.manifest("run")
        assert manifest is not None  # the generation began with it
        _add_up(manifest, shards)
        manifest.complete = manifest.present == manifest.planned
        rates = [shard.metadata.get("rate", 0.0) for shard in shards]
        manifest.metadata["rate"] = sum(rates) / max(1, len(rates))
        tasks = (task.name for task in self.bound.tasks)
        return close_artefact(self.experiment.store, manifest, tasks)

    def _close_evaluation(self, shards: Parts) -> Manifest:
        experiment, scorers = self.experiment, self.bound.scorers
        evaluator, runs = Evaluator(experiment.store), experiment.runs()
        id, plan, _ = evaluator.describe(
            runs, scorers, id=experiment.id, dataset=experiment.id, budget=experiment.budget
        )
        name, remembered = experiment.config.name, experiment.metadata()
        manifest = evaluator.new_manifest(id, plan, runs, scorers, name=name, metadata=remembered)
        _add_up(manifest, shards)
        manifest.planned = manifest.present
        manifest.complete = all(shard.complete for shard in shards)
        return close_artefact(experiment.store, manifest, (scorer.name for scorer in scorers))


def _cores() -> int:
    """Return how many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _add_up(manifest: Manifest, shards: Parts) -> None:
    counts: Counter[str] = Counter()
    manifest.present = 0
    for shard in shards:
        counts.update(shard.counts)
        manifest.present += shard.present or 0
        manifest.started = min(manifest.started or shard.started, shard.started or manifest.started)
    manifest.counts = dict(+counts)
