"""When every shard is finished: the manifests of the whole, and the metrics."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterable

import msgspec

from assay.engine.cluster.root import Patient, Root, Whole
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.experiment.experiment import Bound, Experiment, Result
from assay.engine.run.artefact import close_artefact
from assay.engine.run.plan import plan_digest
from assay.errors import StoreError
from assay.records import Manifest
from assay.store.repositories import AggregationRepository
from assay.store.sealed import seal_files
from assay.store.shared.generations import Generation, is_open
from assay.store.shared.segments import ClosedError

Parts = list[dict[str, Manifest]]
_LOOKS = 10


async def finish(
    root: Root, generation: Generation, experiment: Experiment, bound: Bound
) -> Result:
    """What one process would have left behind: manifests over all rows, metrics, and why rows failed."""
    result = Result(folder=root.place, notes=experiment.progress.notes)
    measured = plan_digest({"metrics": [metric.plan() for metric in bound.metrics]})
    try:
        is_made = await _make(root, generation, experiment, bound, result, measured)
    except StoreError:  # another one was quicker, perhaps
        if not await _comes(root, generation, measured):
            raise
        is_made = False
    if not is_made:
        root.update(segments=False)
        _read(experiment, bound, result)
    experiment.note_failures(result)
    return result


async def _make(
    root: Root,
    generation: Generation,
    experiment: Experiment,
    bound: Bound,
    result: Result,
    measured: str,
) -> bool:
    """Whether this process has made manifests and metrics; False if they exist."""
    if _is_whole(root, generation, measured):
        return False
    contents = root.objects.read_many(
        generation.finished(shard) for shard in range(generation.shards)
    )
    parts = [
        msgspec.json.decode(content or b"{}", type=dict[str, Manifest]) for content in contents
    ]
    with Patient(experiment.store.lock(experiment.kind, experiment.id)):
        if _is_whole(root, generation, measured):
            return False
        if not is_open(root.objects, generation):
            raise ClosedError(root.place)
        root.restore(generation)
        if experiment.makes_rows:
            result.run = _close_run(experiment, bound, parts)
        if bound.scorers:
            result.evaluation = _close_evaluation(experiment, bound, parts)
            experiment.scored(result.evaluation)
        if bound.metrics:
            experiment.options.workers = _cores()  # no shard is left that needs them
            result.metrics = await experiment.measure(bound.metrics)
        seal_files(experiment.folder)
        root.push()
        counts: Counter[str] = Counter()
        for manifest in filter(None, (result.run, result.evaluation)):
            counts.update(manifest.counts)
        root.objects.write(
            generation.whole, msgspec.json.encode(Whole(counts=counts, metrics=measured))
        )
    return True


def _is_whole(root: Root, generation: Generation, measured: str) -> bool:
    whole = root.whole(generation)
    return whole is not None and whole.metrics == measured


async def _comes(root: Root, generation: Generation, measured: str) -> bool:
    """Whether another process says within some seconds that it has made the whole."""
    for _ in range(_LOOKS):
        if _is_whole(root, generation, measured):
            return True
        await asyncio.sleep(0.5)
    return False


def _read(experiment: Experiment, bound: Bound, result: Result) -> None:
    """The result as another process, or an earlier one, has stored it."""
    result.run = experiment.manifest("run") if experiment.makes_rows else None
    result.evaluation = experiment.manifest("evaluation") if bound.scorers else None
    result.metrics = (
        AggregationRepository(experiment.store).metrics(experiment.id) if bound.metrics else []
    )


def _cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _close_run(experiment: Experiment, bound: Bound, parts: Parts) -> Manifest:
    manifest = experiment.manifest("run")
    assert manifest is not None  # the generation began with it
    shards = [part["run"] for part in parts]
    _add_up(manifest, shards)
    manifest.complete = manifest.present == manifest.planned
    rates = [shard.metadata.get("rate", 0.0) for shard in shards]
    manifest.metadata["rate"] = sum(rates) / max(1, len(rates))
    return close_artefact(experiment.store, manifest, (task.name for task in bound.tasks))


def _close_evaluation(experiment: Experiment, bound: Bound, parts: Parts) -> Manifest:
    evaluator, runs, scorers = Evaluator(experiment.store), experiment.runs(), bound.scorers
    id, plan, _ = evaluator.describe(
        runs, scorers, id=experiment.id, dataset=experiment.id, budget=experiment.budget
    )
    name, remembered = experiment.config.name, experiment.metadata()
    manifest = evaluator.new_manifest(id, plan, runs, scorers, name=name, metadata=remembered)
    shards = [part["evaluation"] for part in parts]
    _add_up(manifest, shards)
    manifest.planned, manifest.complete = manifest.present, all(shard.complete for shard in shards)
    return close_artefact(experiment.store, manifest, (scorer.name for scorer in scorers))


def _add_up(manifest: Manifest, shards: Iterable[Manifest]) -> None:
    counts: Counter[str] = Counter()
    manifest.present = 0
    for shard in shards:
        counts.update(shard.counts)
        manifest.present += shard.present or 0
        manifest.started = min(manifest.started or shard.started, shard.started or manifest.started)
    manifest.counts = dict(+counts)
