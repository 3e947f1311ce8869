"""How a run is doing: who works on what, how fast, at what cost, and what is left. No row is read."""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay import reading
from assay.analysis.look.ls import ManifestSection, State, listed_of, section_of
from assay.engine.calls.usage import CALLS, USAGE, Usage
from assay.engine.cluster.root import Root
from assay.engine.cluster.status import LaneStatus, WorkerStatus, sum_lanes
from assay.engine.experiment.resolve import folders_at
from assay.engine.experiment.status import Status
from assay.errors import AssayError, UserError
from assay.records import manifest_sections
from assay.shown import Shown
from assay.store.files import here, lives
from assay.store.shared.claims import Beat
from assay.store.shared.generations import Generation
from assay.store.stores import MANIFEST, read_manifests


class WorkerLine(msgspec.Struct, kw_only=True):
    """A worker: `silent` seconds ago it said something; one that is `dead` has not for a whole lease, or its process is
    gone."""

    worker: str
    host: str
    state: Literal["working", "ended", "dead"]
    since: float
    silent: float
    status: WorkerStatus


class RunStatus(Shown, kw_only=True):
    """`shards` is 0 for a run by one process, which has no `workers`. `rows` are responses, or labels where responses
    are evaluated; `errors`, `tokens` and `cost` (None: not known) are those of this run, or of its workers."""

    path: str
    state: State
    step: str = ""
    rows: int = 0
    planned: int | None = None
    errors: int = 0
    rate: float = 0.0
    left_seconds: float | None = None
    tokens: int = 0
    cost: float | None = None
    shards: int = 0
    finished: int = 0
    under_way: int = 0
    free: int = 0
    waiting: list[str] = []
    notes: list[str] = []
    workers: list[WorkerLine] = []
    models: dict[str, LaneStatus] = {}


def status(path: str | Path) -> list[RunStatus]:
    """Return how each experiment in a folder, or at an address such as s3://bucket/prefix, is
    doing."""
    return [watch.look() for watch in watches(path)]


def watches(path: str | Path) -> "list[Watch]":
    """Return a watch for each experiment at a path."""
    watch = Watch(path)
    if watch.generation() is not None:
        return [watch]
    return [Watch(folder, place) for folder, place in folders_at(path, rows=False)]


def of_workers(folder: str | Path) -> RunStatus | None:
    """Return what the workers in a folder say; None if one process runs there, or what they say
    cannot be read."""
    with suppress(AssayError):
        watch = Watch(folder)
        generation = watch.generation()
        return watch.of_workers(generation) if generation is not None else None


class Watch:
    """Looks at a run again and again; what cannot change any more is read once."""

    def __init__(self, path: str | Path, place: str = "") -> None:
        self.path = place or str(path)
        self._root = Root(path)
        self._parts: dict[str, dict[str, ManifestSection]] = {}

    def look(self) -> RunStatus:
        generation = self.generation()
        return (
            _of_folder(self._root.folder, self.path)
            if generation is None
            else self.of_workers(generation)
        )

    def generation(self) -> Generation | None:
        """The one that workers make, if they do."""
        generation = self._root.generation()
        return generation if generation is not None and generation.shards else None

    def of_workers(self, generation: Generation) -> RunStatus:
        parts = self._finished_parts(generation)
        kind = "run" if generation.verb == "run" else "evaluation"
        workers = _workers(self._root, generation)
        left = {each for each in range(generation.shards) if generation.finished(each) not in parts}
        run = RunStatus(
            path=self.path,
            state="stopped" if left else "complete",
            planned=self._plan_size(kind),
            shards=generation.shards,
            finished=len(parts),
            workers=workers,
        )
        _add_finished(run, [part[kind] for part in parts.values() if kind in part])
        _add_workers(run, left)
        if run.planned is not None and run.rate:
            run.left_seconds = max(0, run.planned - run.rows) / run.rate
        return run

    def _finished_parts(self, generation: Generation) -> dict[str, dict[str, ManifestSection]]:
        """Return the manifests of finished shards, by name; each is read once."""
        objects = self._root.objects
        ended = {entry.name for entry in objects.names(f"shards/{generation.number}/")}
        names = map(generation.finished, range(generation.shards))
        new = [name for name in names if name in ended and name not in self._parts]
        for name, content in zip(new, objects.read_many(new), strict=True):
            self._parts[name] = msgspec.json.decode(
                content or b"{}", type=dict[str, ManifestSection]
            )
        return self._parts

    def _plan_size(self, kind: str) -> int | None:
        content = self._root.objects.read(MANIFEST) or b"{}"
        return section_of(manifest_sections(content, self._root.place).get(kind, b"{}")).planned


def _add_finished(run: RunStatus, parts: Iterable[ManifestSection]) -> None:
    for part in parts:
        run.rows += part.present or 0
        run.errors += part.counts.get("errored", 0)


def _add_workers(run: RunStatus, left: set[int]) -> None:
    """Set what workers do about the shards that are left, and what all of them did so far."""
    statuses = [line.status for line in run.workers]
    working = [line.status for line in run.workers if line.state == "working"]
    held = left.intersection(chain.from_iterable(map(attrgetter("shards"), working)))
    free = left - held
    if working:
        run.state = "running"
    run.step = " and ".join(sorted({status.step for status in working} - {""}))
    run.rate = sum(map(attrgetter("rate"), working))
    run.tokens = sum(map(attrgetter("tokens"), statuses))
    run.cost = _total([*map(attrgetter("cost"), statuses)])
    run.under_way = len(held)
    run.free = len(free)
    run.waiting = [*_waiting(run.workers, free)]
    run.notes = list(dict.fromkeys(note for status in statuses for note in status.notes))
    run.models = sum_lanes(status.models for status in working)
    # a beat may be old: of a worker whose shards are finished, nothing is under way
    _add_lanes(run, [status for status in working if held.intersection(status.shards)])


def _add_lanes(run: RunStatus, making: Iterable[WorkerStatus]) -> None:
    for lane in chain.from_iterable(status.models.values() for status in making):
        run.rows += lane.present + lane.done
        run.errors += lane.errors


def _workers(root: Root, generation: Generation) -> list[WorkerLine]:
    """In the order of beginning. When a worker was heard of last is told by the store's clock and
    ours: for people."""
    workers = generation.workers(root.objects)
    lines: list[WorkerLine] = []
    for entry in root.objects.names(workers.prefix):
        beat = workers.last(entry.name.removeprefix(workers.prefix).removesuffix(".json"))
        if beat is not None:
            silent = max(0.0, time.time() - entry.mtime_ns / 1e9)
            lines.append(_line(beat, silent, workers.lease))
    return sorted(lines, key=lambda line: line.since)


def _line(beat: Beat, silent: float, lease: float) -> WorkerLine:
    gone = silent > lease or (beat.place == here() and not lives(beat.pid))
    try:
        told = msgspec.convert(beat.status, WorkerStatus)
    except msgspec.ValidationError:  # a worker of another version
        told = WorkerStatus()
    return WorkerLine(
        worker=beat.worker,
        host=beat.host,
        state="ended" if beat.ended else "dead" if gone else "working",
        since=beat.started,
        silent=silent,
        status=told,
    )


def _total(costs: list[float | None]) -> float | None:
    """Return the sum; None where one of them is not known."""
    return None if None in costs else sum(filter(None, costs))


def _waiting(workers: list[WorkerLine], free: set[int]) -> Iterator[str]:
    """Yield what does not move, and why; the same reason of many workers once."""
    reasons: dict[str, list[str]] = {}
    for line in workers:
        if line.state == "working" and line.status.waiting:
            reasons.setdefault(line.status.waiting, []).append(line.worker)
        elif line.state == "dead" and (left := free.intersection(line.status.shards)):
            shards = ", ".join(map(str, sorted(left)))
            yield f"shard {shards} was that of {line.worker}, which is dead: the next free worker takes it"
    for reason, names in reasons.items():
        yield f"{reason} ({names[0] if len(names) == 1 else f'{len(names)} workers'})"


def _of_folder(folder: Path, path: str) -> RunStatus:
    """That of a run by one process, by its manifest and its status file."""
    listed = listed_of(folder)
    if listed is None:
        raise UserError(
            "there is no experiment here", where=path, fix="assay ls lists those below a folder"
        )
    now = Status()
    with suppress(OSError, ValueError, RecursionError):
        now = msgspec.json.decode(reading.content(folder / "status.json"), type=Status)
    run = RunStatus(
        path=path,
        state=listed.state,
        rows=listed.responses or listed.evaluations,
        planned=listed.planned,
        errors=listed.errors + listed.label_errors,
        notes=now.notes,
        models=now.models,
    )
    if run.state != "running":
        run.tokens, run.cost = _spent(folder)
        return run
    run.step, run.rate, run.left_seconds = now.step, now.rate, now.left_seconds
    run.tokens, run.cost = now.tokens, now.cost
    run.waiting = [now.waiting] if now.waiting else []
    return run


def _spent(folder: Path) -> tuple[int, float | None]:
    """Tokens and dollars of all rows and of the calls behind them; None for what nobody knows."""
    used: list[Any] = []
    for manifest in read_manifests(folder, "run", "evaluation").values():
        for models in ({"": manifest.metadata.get(USAGE, {})}, manifest.metadata.get(CALLS, {})):
            used += chain.from_iterable(each.values() for each in models.values())
    every = msgspec.convert(used, list[Usage])
    costs = [None if each.unpriced else each.cost for each in every]
    return sum(each.total_tokens for each in every), _total(costs)
