"""Who works on what. Claims save money and carry no correctness: two workers on one shard only pay some calls twice.

A worker tells that it lives by writing its own object again and again. Another one takes it for dead if that object
has not changed for a lease's time of its own clock: no two clocks are ever compared. A claim of a shard is a numbered
object that is created once; the last number counts.
"""

import os
import socket
import time
from collections.abc import Callable, Sequence
from uuid import uuid4

import msgspec

from assay.errors import UserError
from assay.store.files import here, lives, safe_name
from assay.store.shared.objects import Objects

LEASE = 30.0  # seconds of silence after which a worker is taken for dead; ASSAY_LEASE has another number


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
    worker: str = ""


_NOBODY = Claim()
_LOOKS = 16  # claimed shards that a waiting worker watches


def new_beat(name: str = "") -> Beat:
    """That of a new worker in this process."""
    host = socket.gethostname()
    worker = safe_name(f"{name or host}-{uuid4().hex[:8]}")
    return Beat(worker=worker, host=host, pid=os.getpid(), place=here(), started=time.time())


def lease_seconds() -> float:
    """The lease of this process."""
    text = os.environ.get("ASSAY_LEASE") or str(LEASE)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise UserError(
            f"{text!r} is not a lease",
            where="ASSAY_LEASE",
            fix="give seconds from 0.1 to 86400, e.g. 30",
        )
    return seconds


class Workers:
    """The workers of a generation, as one of them, or a reader, watches them."""

    def __init__(
        self,
        objects: Objects,
        prefix: str,
        *,
        lease: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.objects = objects
        self.prefix = prefix
        self.lease = lease_seconds() if lease is None else lease
        self._clock = clock
        self._seen: dict[str, tuple[bytes, float]] = {}

    def beat(self, beat: Beat) -> None:
        """Say that the worker lives: every third of a lease, and before its first claim."""
        beat.count += 1
        self.objects.write(self._name(beat.worker), msgspec.json.encode(beat))

    def all(self) -> list[Beat]:
        """What every worker said last."""
        contents = (self.objects.read(entry.name) for entry in self.objects.names(self.prefix))
        beats = (_beat(content) for content in contents)
        return [beat for beat in beats if beat is not None]

    def last(self, worker: str) -> Beat | None:
        """What a worker said last."""
        return _beat(self.objects.read(self._name(worker)))

    def is_alive(self, worker: str) -> bool:
        """Whether the worker has said something within a lease, as far as this observer can tell."""
        content = self.objects.read(self._name(worker)) or b""
        beat = _beat(content)
        if beat and (beat.ended or (beat.place == here() and not lives(beat.pid))):
            return False
        before = self._seen.get(worker)
        if before is None or before[0] != content:
            self._seen[worker] = content, self._clock()
            return True
        return self._clock() - before[1] < self.lease

    def _name(self, worker: str) -> str:
        return f"{self.prefix}{worker}.json"


class Claims:
    """The claims on the shards of a generation. Threads may share it."""

    def __init__(self, objects: Objects, prefix: str, workers: Workers) -> None:
        self.objects = objects
        self.prefix = prefix
        self.workers = workers
        self._last: dict[
            int, tuple[int, str]
        ] = {}  # how many claims of a shard were read, and whose the last is

    def take(self, shard: int, worker: str) -> bool:
        """Claim a shard for a worker, unless a living one has it."""
        number, holder = self._read(shard)
        if holder == worker:
            return True
        if holder and self.workers.is_alive(holder):
            return False
        if not self.objects.create(
            self._name(shard, number), msgspec.json.encode(Claim(worker=worker))
        ):
            # another one was quicker, or our own reply was lost
            return self.holder(shard) == worker
        self._last[shard] = number + 1, worker
        return True

    def holder(self, shard: int) -> str:
        """Who claimed the shard last; empty if nobody has."""
        return self._read(shard)[1]

    def candidates(self, shards: Sequence[int]) -> list[int]:
        """The shards that are worth trying to take: those without a listed claim, then the first few others. A thousand
        workers that wait for a thousand shards must not read a million objects."""
        listed = {
            entry.name.removeprefix(self.prefix).partition("/")[0]
            for entry in self.objects.names(self.prefix)
        }
        claimed = [shard for shard in shards if f"{shard:05}" in listed]
        return [shard for shard in shards if f"{shard:05}" not in listed] + claimed[:_LOOKS]

    def _read(self, shard: int) -> tuple[int, str]:
        number, holder = self._last.get(shard, (0, ""))
        while (content := self.objects.read(self._name(shard, number))) is not None:
            number, holder = number + 1, _claim(content).worker
        self._last[shard] = number, holder
        return number, holder

    def _name(self, shard: int, number: int) -> str:
        return f"{self.prefix}{shard:05}/{number:05}.json"


def _beat(content: bytes | None) -> Beat | None:
    try:
        return msgspec.json.decode(content, type=Beat) if content else None
    except (msgspec.DecodeError, UnicodeError):
        return None


def _claim(content: bytes) -> Claim:
    """A claim that cannot be read is nobody's: the next number is free to take."""
    try:
        return msgspec.json.decode(content, type=Claim)
    except (msgspec.DecodeError, UnicodeError):
        return _NOBODY
