"""A plan becomes a generation that workers can join, or the one under way is joined."""

import asyncio
import os
import platform
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from assay.config import Config, resolved
from assay.engine.calls.executor import Shared
from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.cluster.root import Patient, Root, plan_of, refuse_differences
from assay.engine.cluster.shipping import ship
from assay.engine.experiment.dataset import media_folder
from assay.engine.experiment.experiment import Bound, Experiment
from assay.engine.experiment.trust import write_config
from assay.engine.run.plan import plan_digest
from assay.errors import VERSION, Interrupted, RunFailed, StoreError, UserError
from assay.records import Manifest
from assay.store.shared.generations import BASE, Generation, begin, close, compact, is_open, living

_PER_WORKER = 4  # shards: so that one that is slow, or dies, leaves little to the others
_CHOSEN = ("mode", "models", "limit", "num_samples", "max_concurrency", "max_error_rate")
_ATTEMPTS = 5
# as asked, or nothing was left to do; `finish` looks at the share of errors
_STOPPED = (Interrupted, RunFailed)


async def open_generation(
    root: Root, experiment: Experiment, bound: Bound, workers: int, paths: Sequence[str] = ()
) -> Generation:
    """The generation that has this experiment's plan: the one under way, or a new one, for which existing rows are
    settled as a run by one process would: what is no longer planned is set aside, what failed is tried again."""
    if experiment.config.objects:
        raise UserError(
            "functions of this process cannot travel to workers",
            fix="put them into a file, and name it",
        )
    for attempt in range(_ATTEMPTS):
        try:
            generation = await _open(root, experiment, bound, workers, paths)
        except StoreError:  # the bucket has changed meanwhile, perhaps
            if attempt == _ATTEMPTS - 1 or root.generation() is None:
                raise
            generation = None
        if generation is not None:
            return generation
        root.update()
    raise StoreError(
        "other processes begin plans here, again and again",
        where=root.place,
        fix="run one at a time",
    )


async def _open(
    root: Root, experiment: Experiment, bound: Bound, workers: int, paths: Sequence[str]
) -> Generation | None:
    """A generation; None if another process was quicker."""
    last = root.generation()
    if last is not None and last.shards and is_open(root.objects, last):
        plan = _plan(experiment, bound)
        # workers read it there, also one that was raised
        budget = resolved(experiment.config).get("budget")
        same = last.config.get("budget") == budget and last.digest == plan_digest(plan)
        if same and not _is_over(root, experiment, last):
            return last
        if workers_alive := await asyncio.to_thread(living, root.objects, last):
            refuse_differences(last, plan, f"{root.place}, where {workers_alive[0]} works")
            return last
    with Patient(experiment.store.lock(experiment.kind, experiment.id)):
        before, last = last, root.generation()
        if last is not None and last.shards:
            if before is None or before.number != last.number:
                return None
            close(root.objects, last)
        # what was committed until now; another process cannot disturb the copy any more
        root.update(own=True)
        if last is not None and last.shards:
            compact(root.folder, last)
        dataset = await _settle(experiment, bound)
        root.push()
        plan = plan_of(experiment, bound, dataset)
        experiment.config = _with_media(experiment.config, dataset)
        generation = Generation(
            number=0 if last is None else last.number + 1,
            shards=max(1, min(_PER_WORKER * workers, dataset.planned or _PER_WORKER * workers)),
            verb="run" if experiment.kind == "run" else "evaluate",
            id=experiment.id,
            digest=plan_digest(plan),
            plan=plan,
            config=_vouched(experiment),
            options={
                name: value for name in _CHOSEN if (value := getattr(experiment.options, name))
            },
            paths=list(paths),
            files=ship(experiment, root.objects),
            versions={"assay": VERSION, "python": platform.python_version()},
            base={
                name: (root.folder / name).stat().st_size
                for name in BASE
                if (root.folder / name).exists()
            },
            created=time.time(),
        )
        # An opener on another machine may have put its files in place of these before it came too late.
        return (
            generation
            if begin(root.objects, generation) and is_open(root.objects, generation)
            else None
        )


def _plan(experiment: Experiment, bound: Bound) -> dict[str, Any]:
    """The plan as this process has it, without touching the root."""
    if experiment.config.dataset is None:
        return plan_of(experiment, bound, experiment.manifest("dataset"))
    with experiment.trial_store() as store:
        return plan_of(experiment, bound, experiment.ingest(store))


def _is_over(root: Root, experiment: Experiment, generation: Generation) -> bool:
    """Whether all was done, and something of it is to be done again."""
    whole = root.whole(generation)
    if whole is None:
        return False
    again = ("transient", "errored") if experiment.options.retry_errors else ("transient",)
    return not experiment.config.resume or any(whole.counts.get(state) for state in again)


def _with_media(config: Config, dataset: Manifest) -> Config:
    """The config with the folder of the files that items name: workers have the items from elsewhere."""
    folder = media_folder(config.dataset) if dataset.metadata.get("media") else None
    if config.dataset is None or folder is None:
        return config
    return replace(config, dataset=replace(config.dataset, media=os.path.abspath(folder)))


def _vouched(experiment: Experiment) -> dict[str, Any]:
    """The config as workers read it; that it is this user's word is remembered."""
    with TemporaryDirectory(prefix="assay-") as folder:
        if note := write_config(Path(folder), experiment.config):
            experiment.progress.note(note)
    return resolved(experiment.config)


async def _settle(experiment: Experiment, bound: Bound) -> Manifest:
    """What a run does before its first call: store config and items, check them, bring existing rows in line."""
    stop = Stop()
    stop.request()
    async with AsyncExitStack() as stack:
        own: Shared = {"progress": Progress(notes=experiment.progress.notes)}
        shared = experiment.shared(bound.models, stop, own)
        with suppress(*_STOPPED):
            await experiment.make(bound, shared, stack)
        scored = experiment.store.log("evaluation", experiment.id).segments()
        if bound.scorers and any(segment.size for segment in scored):
            with suppress(*_STOPPED):
                await experiment.score(bound.scorers, shared)
    dataset = experiment.manifest("dataset")
    assert dataset is not None
    return dataset
