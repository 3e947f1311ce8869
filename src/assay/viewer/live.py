"""Experiments while they run: what the page `experiments` lists, and the progress of those that are under way."""

import threading
import time
from pathlib import Path

import msgspec

from assay import reading
from assay.analysis.look.status import of_workers
from assay.records import JsonObject
from assay.viewer.experiments import Experiments

INTERVAL = 1.0  # seconds between two looks
SHARE = 0.1  # of the time, at most, goes into looking


class _Lane(msgspec.Struct):
    """A model's part of `status.json`."""

    total: int | None = None
    present: int = 0
    done: int = 0
    errors: int = 0
    retries: int = 0


class _Status(msgspec.Struct):
    rate: float | None = None
    left_seconds: float | None = None
    cost: float | None = None
    tokens: int | None = None
    waiting: str = ""
    models: dict[str, _Lane] = {}


_decode = msgspec.json.Decoder(_Status).decode


class Live:
    """`news` is shared by all who listen, so that many of them cost no more than one."""

    def __init__(self, experiments: Experiments) -> None:
        self._experiments = experiments
        self._lock = threading.Lock()
        self._news = b""
        self._next = 0.0

    def news(self) -> bytes:
        """The state of everything as JSON; the same bytes while nothing changes."""
        with self._lock:
            started = time.monotonic()
            if started >= self._next:
                self._news = msgspec.json.encode(self._look())
                took = time.monotonic() - started
                self._next = started + max(0.9 * INTERVAL, took / SHARE)
            return self._news

    def _look(self) -> JsonObject:
        listed = self._experiments.list()
        running = {
            id: Path(entry.folder) for id, entry in listed.items() if entry.state == "running"
        }
        progress = {
            id: own for id, folder in running.items() if (own := progress_of(folder)) is not None
        }
        experiments = [{"id": id, **msgspec.to_builtins(entry)} for id, entry in listed.items()]
        return {"experiments": experiments, "live": progress}


def progress_of(folder: Path) -> JsonObject | None:
    """What a run, or its workers, report of themselves; None where they have not yet."""
    if (told := of_workers(folder)) is not None:
        lane = {"total": told.planned, "done": told.rows, "errors": told.errors, "retries": 0}
        working = sum(line.state == "working" for line in told.workers)
        status = _Status(
            told.rate, told.left_seconds, told.cost, told.tokens, "; ".join(told.waiting)
        )
        return {**msgspec.structs.asdict(status), "models": {f"{working} workers": lane}}
    try:
        with reading.opened(folder / "status.json") as file:
            status = _decode(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    models = {
        name: {
            "total": lane.total,
            "done": lane.present + lane.done,
            "errors": lane.errors,
            "retries": lane.retries,
        }
        for name, lane in status.models.items()
    }
    return {**msgspec.structs.asdict(status), "models": models}
