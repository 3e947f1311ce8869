"""Before anything is spent on a lane: what its tasks must know of their model is asked."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from assay.engine.calls.lanes import Lane
from assay.engine.run.plan import Cell
from assay.errors import CallError, LaneError
from assay.interfaces import Model, Request, Task
from assay.records import Manifest


async def probed(
    lane: Lane,
    missing: Iterator[Cell],
    total: int,
    models: Mapping[str, Model],
    tasks: Sequence[Task],
    manifest: Manifest,
) -> tuple[Lane, Iterator[Cell], int]:
    """A lane's cells, once the probes of its tasks are answered; the manifest keeps how. A model that cannot answer
    stops its lane; where no cell is missing nobody is asked."""
    probes: list[Request | None] = [
        getattr(task, "probe", None) for task in tasks if task.lane == lane.name
    ]
    requests = [
        probe for at, probe in enumerate(probes) if probe is not None and probe not in probes[:at]
    ]
    if not requests or (first := next(missing, None)) is None:
        return lane, missing, total
    for request in requests:
        try:
            answer = await lane.send(models[lane.name], request)
        except CallError as error:
            lane.stop(LaneError(error.what, where=error.where, fix=error.fix))
            raise lane.stopped or error from None
        way = {"way": getattr(answer, "way", ""), "served_model": answer.served_model}
        manifest.metadata.setdefault("probes", {})[lane.name] = way
    return lane, chain([first], missing), total
