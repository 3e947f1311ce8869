"""Who works on what. Claims save money and carry no correctness: two workers on one shard only pay some calls twice.

A worker tells that it lives by writing its own object again and again. Another one takes it for dead if that object
has not changed for a lease's time of its own clock: no two clocks are ever compared. A claim of a shard is a numbered
object that is created once; the last number counts.
"""

import os
import socket
import time
from collections.abc import Callable
from uuid import uuid4

import msgspec

from assay.store.files import here, lives
from assay.store.shared.objects import Objects

LEASE = 30.0  # seconds of silence after which a worker is taken for dead


class Beat(msgspec.Struct, kw_only=True):
    """What a worker says about itself; `status` is for people. It works by state `seen` of the shared limits, and has
    spent this much of the budget."""

    worker: str
    count: int = 0
    host: str = ""
    pid: int = 0
    place: str = ""  # within which `pid` means something
    started: float = 0.0
    ended: bool = False
    seen: int = -1
    tokens: int = 0
    usd: float = 0.0
    status: dict[str, object] = {}


class Claim(msgspec.Struct, kw_only=True):
    worker: str


def new_beat(name: str = "") -> Beat:
    """That of a new worker in this process."""
    host = socket.gethostname()
    worker = f"{name or host}-{uuid4().hex[:8]}"
    return Beat(worker=worker, host=host, pid=os.getpid(), place=here(), started=time.time())


class Workers:
    """The workers of a generation, as one of them, or a reader, watches them."""

    def __init__(
        self, objects: Objects, prefix: str, *, lease: float = LEASE, clock: Callable[[], float] = time.monotonic
    ):
        self.objects = objects
        self.prefix = prefix
        self.lease = lease
        self._clock = clock
        self._seen: dict[str, tuple[bytes, float]] = {}

    def beat(self, beat: Beat) -> None:
        """Say that the worker lives."""
        beat.count += 1
        self.objects.write(self._name(beat.worker), msgspec.json.encode(beat))

    def all(self) -> list[Beat]:
        """What every worker said last."""
        entries = (self.objects.read(entry.name) for entry in self.objects.names(self.prefix))
        return [msgspec.json.decode(content, type=Beat) for content in entries if content]

    def last(self, worker: str) -> Beat | None:
        """What a worker said last."""
        content = self.objects.read(self._name(worker))
        return msgspec.json.decode(content, type=Beat) if content else None

    def is_alive(self, worker: str) -> bool:
        """Whether the worker has said something within a lease, as far as this observer can tell."""
        content = self.objects.read(self._name(worker))
        if not content:
            return False
        beat = msgspec.json.decode(content, type=Beat)
        if beat.ended or (beat.place == here() and not lives(beat.pid)):
            return False
        before = self._seen.get(worker)
        if before is None or before[0] != content:
            self._seen[worker] = content, self._clock()
            return True
        return self._clock() - before[1] < self.lease

    def _name(self, worker: str) -> str:
        return f"{self.prefix}{worker}.json"


class Claims:
    """The claims on the shards of a generation."""

    def __init__(self, objects: Objects, prefix: str, workers: Workers) -> None:
        self.objects = objects
        self.prefix = prefix
        self.workers = workers
        self._next: dict[int, int] = {}
        self._holder: dict[int, str] = {}

    def take(self, shard: int, worker: str) -> bool:
        """Claim a shard for a worker, unless a living one has it."""
        holder = self.holder(shard)
        if holder == worker:
            return True
        if holder and self.workers.is_alive(holder):
            return False
        if not self.objects.create(self._name(shard), msgspec.json.encode(Claim(worker=worker))):
            return self.holder(shard) == worker  # another one was quicker, or our own reply was lost
        self._read(shard, Claim(worker=worker))
        return True

    def holder(self, shard: int) -> str:
        """Who claimed the shard last; empty if nobody has."""
        while (content := self.objects.read(self._name(shard))) is not None:
            self._read(shard, msgspec.json.decode(content, type=Claim))
        return self._holder.get(shard, "")

    def _read(self, shard: int, claim: Claim) -> None:
        self._holder[shard] = claim.worker
        self._next[shard] = self._next.get(shard, 0) + 1

    def _name(self, shard: int) -> str:
        return f"{self.prefix}{shard:05}/{self._next.get(shard, 0):05}.json"
