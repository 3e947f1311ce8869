"""How a run is doing: who works on what, how fast, at what cost, and what is left. No row is read."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from assay import reading
from assay.analysis.look.ls import State, listed_of
from assay.engine.calls.usage import CALLS, USAGE, Usage
from assay.engine.cluster.root import Root
from assay.engine.cluster.status import LaneStatus, WorkerStatus, sum_lanes
from assay.engine.experiment.resolve import folders_at
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


class _File(msgspec.Struct):
    """What `status.json` says."""

    step: str = ""
    rate: float = 0.0
    left_seconds: float | None = None
    tokens: int = 0
    cost: float | None = None
    waiting: str = ""
    notes: list[str] = []
    models: dict[str, LaneStatus] = {}


class _Planned(msgspec.Struct):
    planned: int | None = None


class _Part(msgspec.Struct):
    """What is needed of the manifest of a finished shard."""

    present: int = 0
    counts: dict[str, int] = {}


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
    """What the workers in a folder say; None if one process runs there, or what they say cannot be read."""
    with suppress(AssayError):
        watch = Watch(folder)
        generation = watch.generation()
        return watch.of_workers(generation) if generation is not None else None


class Watch:
    """Looks at a run again and again; what cannot change any more is read once."""

    def __init__(self, path: str | Path, place: str = "") -> None:
        self.path = place or str(path)
        self._root = Root(path)
        self._parts: dict[str, dict[str, _Part]] = {}

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
        objects = self._root.objects
        shards = range(generation.shards)
        ended = {entry.name for entry in objects.names(f"shards/{generation.number}/")}
        new = [
            name
            for name in map(generation.finished, shards)
            if name in ended and name not in self._parts
        ]
        for name, content in zip(new, objects.read_many(new), strict=True):
            self._parts[name] = msgspec.json.decode(content or b"{}", type=dict[str, _Part])
        workers = _workers(self._root, generation)
        working = [line for line in workers if line.state == "working"]
        left = {shard for shard in shards if generation.finished(shard) not in self._parts}
        held = left.intersection(shard for line in working for shard in line.status.shards)
        free = left - held
        kind = "run" if generation.verb == "run" else "evaluation"
        parts = [part[kind] for part in self._parts.values() if kind in part]
        # a beat may be old
        making = [line.status for line in working if held.intersection(line.status.shards)]
        under_way = [lane for status in making for lane in status.models.values()]
        rows = sum(part.present for part in parts) + sum(
            lane.present + lane.done for lane in under_way
        )
        planned = self._planned(kind)
        rate = sum(line.status.rate for line in working)
        everything = [line.status for line in workers]
        finished = len(self._parts)
        state: State = (
            "running" if working else "complete" if finished == generation.shards else "stopped"
        )
        return RunStatus(
            path=self.path,
            state=state,
            step=" and ".join(sorted({line.status.step for line in working if line.status.step})),
            rows=rows,
            planned=planned,
            errors=sum(part.counts.get("errored", 0) for part in parts)
            + sum(lane.errors for lane in under_way),
            rate=rate,
            left_seconds=max(0, planned - rows) / rate if planned is not None and rate else None,
            tokens=sum(status.tokens for status in everything),
            cost=None
            if any(status.cost is None for status in everything)
            else sum(s.cost or 0 for s in everything),
            shards=generation.shards,
            finished=finished,
            under_way=len(held),
            free=len(free),
            waiting=[*_waiting(workers, free)],
            notes=list(dict.fromkeys(note for status in everything for note in status.notes)),
            workers=workers,
            models=sum_lanes(line.status.models for line in working),
        )

    def _planned(self, kind: str) -> int | None:
        content = self._root.objects.read(MANIFEST) or b"{}"
        section = manifest_sections(content, self._root.place).get(kind, b"{}")
        return msgspec.json.decode(section, type=_Planned).planned


def _workers(root: Root, generation: Generation) -> list[WorkerLine]:
    """In the order of beginning. When a worker was heard of last is told by the store's clock and ours: for people."""
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


def _waiting(workers: list[WorkerLine], free: set[int]) -> Iterator[str]:
    """What does not move, and why; the same reason of many workers once."""
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
    told = _File()
    with suppress(OSError, ValueError, RecursionError):
        told = msgspec.json.decode(reading.content(folder / "status.json"), type=_File)
    under_way = listed.state == "running"
    tokens, cost = (told.tokens, told.cost) if under_way else _spent(folder)
    return RunStatus(
        path=path,
        state=listed.state,
        step=told.step if under_way else "",
        rows=listed.responses or listed.evaluations,
        planned=listed.planned,
        errors=listed.errors + listed.label_errors,
        rate=told.rate if under_way else 0.0,
        left_seconds=told.left_seconds if under_way else None,
        tokens=tokens,
        cost=cost,
        waiting=[told.waiting] if under_way and told.waiting else [],
        notes=told.notes,
        models=told.models,
    )


def _spent(folder: Path) -> tuple[int, float | None]:
    """Tokens and dollars of all rows and of the calls behind them; None for what nobody knows."""
    used: list[Any] = []
    for manifest in read_manifests(folder, "run", "evaluation").values():
        used += manifest.metadata.get(USAGE, {}).values()
        used += (
            usage
            for models in manifest.metadata.get(CALLS, {}).values()
            for usage in models.values()
        )
    every = msgspec.convert(used, list[Usage])
    return sum(each.total_tokens for each in every), (
        None if any(each.unpriced for each in every) else sum(each.cost for each in every)
    )
