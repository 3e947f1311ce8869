"""What a worker tells people about itself, in the `status` of its beat."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from assay.engine.calls.progress import LaneProgress, LaneStatus, Progress
from assay.engine.cluster.root import Root
from assay.errors import StoreError
from assay.store.shared.generations import Generation

FOLLOWED = 0.5  # seconds between two looks at what workers tell


class WorkerStatus(msgspec.Struct, kw_only=True):
    """`total`, `present`, `done` and `errors` are of the step that is under way, in the shards it holds; the rows that
    it has `made`, `tokens` and `cost` (None: not known) are of all its shards. `models` are the lanes that make rows,
    of the shards it holds; `lanes` are those of all its shards, by step; its shard's logs had `committed` segments."""

    shards: list[int] = []
    step: str = ""
    total: int = 0
    present: int = 0
    done: int = 0
    errors: int = 0
    rate: float = 0.0
    made: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    waiting: str = ""
    notes: list[str] = []
    models: dict[str, LaneStatus] = {}
    lanes: dict[str, dict[str, LaneStatus]] = {}
    committed: dict[str, int] = {}


def worker_status(
    progress: Progress, shards: Sequence[int], before: WorkerStatus | None = None
) -> WorkerStatus:
    """Return what a worker's progress in its shards comes to; `before` is what the shards before came to."""
    before = before or WorkerStatus()
    status = WorkerStatus(shards=sorted(shards), step=progress.step)
    for lane in progress.of(progress.step):
        status.total += lane.total or 0
        status.present += lane.present
        status.done += lane.done
        status.errors += lane.errors
        if shards and lane.ended is None:
            status.rate += lane.rate()
    for step in ("run", "evaluate"):
        lanes = {lane.name: lane.status() for lane in progress.of(step)}
        status.lanes[step] = sum_lanes([before.lanes.get(step, {}), lanes])
    makers = progress.of("run") or [lane for lane in progress.of("evaluate") if not lane.calls]
    status.models = {lane.name: lane.status() for lane in makers}
    status.made = before.made + sum(lane.done for lane in status.models.values())
    tokens, cost = progress.spent()
    status.tokens = before.tokens + tokens
    status.cost = None if before.cost is None or cost is None else before.cost + cost
    status.waiting, status.notes = progress.waiting(), progress.notes[-3:]
    return status


def sum_lanes(several: Iterable[Mapping[str, LaneStatus]]) -> dict[str, LaneStatus]:
    """Lanes of several shards or workers, added up by name."""
    lanes: dict[str, LaneStatus] = {}
    for names in several:
        for name, lane in names.items():
            sum_ = lanes.setdefault(name, LaneStatus(total=0))
            if lane == LaneStatus():  # of a shard without items
                continue
            sum_.total = (
                None if lane.total is None or sum_.total is None else sum_.total + lane.total
            )
            for field in ("present", "done", "errors", "retries", "tokens"):
                setattr(sum_, field, getattr(sum_, field) + getattr(lane, field))
            sum_.cost = None if lane.cost is None or sum_.cost is None else sum_.cost + lane.cost
    return lanes


Lanes = dict[tuple[str, str], int]  # by step and name


async def follow(root: Root, generation: Generation, progress: Progress, planned: Lanes) -> None:
    """Show what the workers of a generation tell, as if this process did it, until it is cancelled. Rows that were
    there when it began are not part of the rate."""
    workers = generation.workers(root.objects)
    earlier: Lanes | None = None
    while True:
        with suppress(StoreError):
            beats = await asyncio.to_thread(workers.all)
            show([msgspec.convert(beat.status, WorkerStatus) for beat in beats], progress)
            if earlier is None:
                earlier = {key: lane.done for key, lane in progress.lanes.items()}
            for key, lane in progress.lanes.items():
                lane.total = planned.get(key)
                lane.done -= earlier.get(key, 0)
                lane.present += earlier.get(key, 0)
                if lane.total is not None:  # what a dead worker said is made again, and said again
                    lane.present = max(0, min(lane.present, lane.total - lane.done))
        await asyncio.sleep(FOLLOWED)


def show(workers: Sequence[WorkerStatus], progress: Progress) -> None:
    """Have a display show what workers did, in all their shards."""
    lanes: dict[tuple[str, str], LaneProgress] = {}
    for step in ("run", "evaluate"):
        for name, lane in sum_lanes(worker.lanes.get(step, {}) for worker in workers).items():
            before = progress.lanes.get((step, name))
            started = before.started if before else time.monotonic()
            counts = {
                field: getattr(lane, field)
                for field in ("total", "done", "present", "errors", "retries", "tokens")
            }
            shown = LaneProgress(
                name, **counts, cost=lane.cost or 0.0, unpriced=lane.cost is None, started=started
            )
            lanes[step, name] = shown
    progress.lanes = lanes
    progress.step = next((worker.step for worker in workers if worker.step), progress.step)
