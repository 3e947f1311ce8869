"""What a worker tells people about itself, in the `status` of its beat."""

from collections.abc import Iterable

import msgspec

from assay.engine.calls.progress import Progress


class LaneStatus(msgspec.Struct, kw_only=True):
    """A model's, a task's or a scorer's part of the shards that the worker holds."""

    total: int | None = None
    present: int = 0
    done: int = 0
    errors: int = 0
    retries: int = 0
    tokens: int = 0
    cost: float | None = 0.0


class WorkerStatus(msgspec.Struct, kw_only=True):
    """`total`, `present`, `done` and `errors` are of the step that is under way, in the shards it holds; `tokens` and
    `cost` (None: not known) are all that its progress has counted. `models` are the lanes that make responses."""

    shards: list[int] = []
    step: str = ""
    total: int = 0
    present: int = 0
    done: int = 0
    errors: int = 0
    rate: float = 0.0
    tokens: int = 0
    cost: float | None = 0.0
    waiting: str = ""
    notes: list[str] = []
    models: dict[str, LaneStatus] = {}


def worker_status(progress: Progress, shards: Iterable[int], before: WorkerStatus | None = None) -> WorkerStatus:
    """What a worker's progress comes to; `before` is what the shards before came to, which used tokens and money."""
    before = before or WorkerStatus()
    lanes = progress.of(progress.step)
    everything = [*progress.lanes.values()]
    waiting = {lane.name: why for lane in everything if (why := lane.waiting())}
    return WorkerStatus(
        shards=sorted(shards),
        step=progress.step,
        total=sum(lane.total or 0 for lane in lanes),
        present=sum(lane.present for lane in lanes),
        done=sum(lane.done for lane in lanes),
        errors=sum(lane.errors for lane in lanes),
        rate=sum(lane.rate() for lane in lanes if lane.ended is None),
        tokens=before.tokens + sum(lane.tokens for lane in everything),
        cost=None
        if before.cost is None or any(lane.unpriced for lane in everything)
        else before.cost + sum(lane.cost for lane in everything),
        waiting="; ".join(f"{name}: {why}" for name, why in waiting.items()),
        notes=progress.notes[-3:],
        models={
            lane.name: LaneStatus(
                total=lane.total,
                present=lane.present,
                done=lane.done,
                errors=lane.errors,
                retries=lane.retries,
                tokens=lane.tokens,
                cost=None if lane.unpriced else lane.cost,
            )
            for lane in progress.of("run")
        },
    )
