"""A log that many workers may append to, as numbered segments that are each created once.

Segment n of a log is the object `<prefix><n>.jsonl`. Whoever creates n has read 0 to n-1, so a row's key is in one
segment at most. A number that is taken means that another worker was here, or that the reply to an earlier attempt was
lost: both are settled by reading what is there. An empty segment closes the log for good.
"""

import time
from collections.abc import Callable, Iterator

import msgspec
from xxhash import xxh3_64_intdigest

from assay.errors import StoreError
from assay.store.keyset import Seen
from assay.store.shared.objects import Objects

Key = Callable[[bytes], bytes]
_WAITS = (
    0.0,
    0.05,
    0.2,
    1.0,
    2.0,
)  # seconds: NFS may remember for a while that a name was missing


class ClosedError(StoreError):
    """Another generation has begun: nothing that this worker does counts any more."""


class _Row(msgspec.Struct):
    key: str = ""


_decode = msgspec.json.Decoder(_Row).decode


def name_of(prefix: str, number: int) -> str:
    return f"{prefix}{number:08}.jsonl"


def key_of(line: bytes) -> bytes:
    """The key of a row. It is decoded, because metadata and details come before it and may have a `key` of their own,
    and because a torn line has none; a line without a key stands for itself."""
    try:
        return _decode(line).key.encode() or line
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return line


class Segments:
    """One shard's rows of one kind, as this worker knows them; one thread uses it. `key` tells which rows stand for the
    same work; without it each row is kept, because it records what was paid. All rows of a key must be in one `commit`.

    `contested` says that another worker has committed rows that `read` did not give: read them anew from the start.
    """

    def __init__(self, objects: Objects, prefix: str, key: Key | None = key_of) -> None:
        self.objects = objects
        self.prefix = prefix
        self.next = 0
        self.closed = False
        self.contested = False
        self._key = key
        self._keys = Seen()
        self._attempts: list[list[bytes]] = []  # to create `next`: any of them may have succeeded, or still do so

    def read(self) -> Iterator[bytes]:
        """What others have committed since the last time, segment by segment. No listing is trusted: numbers are tried
        until there is none."""
        while not self.closed and (content := self.objects.read(name_of(self.prefix, self.next))) is not None:
            self._take(content)
            if content:
                yield content

    def commit(self, lines: list[bytes]) -> list[bytes]:
        """Commit whole lines, in order, as the next segment; those that others have committed meanwhile are left out.
        The lines that are in the log because of this worker. After a StoreError the same lines come first again."""
        if any(line.find(b"\n") != len(line) - 1 for line in lines):
            raise ValueError("segments take whole lines, one by one, with their line feeds")
        done: list[bytes] = []
        mine = self._without_keys(lines)
        while mine:
            if self.closed:
                raise ClosedError("a newer generation has begun", where=self.objects.address, fix="start a new worker")
            self._attempts.append(mine)
            content = b"".join(mine)
            if self.objects.create(name_of(self.prefix, self.next), content):
                self._take(content)
                return done + mine
            theirs = self._existing(self.next)
            own = next((attempt for attempt in self._attempts if b"".join(attempt) == theirs), [])
            self.contested = self.contested or not own
            self._take(theirs)
            done += own
            mine = self._without_keys(mine[len(own) :] if mine[: len(own)] == own else mine)
        return done

    def close(self) -> None:
        """Commit the empty segment, unless there is one; what others committed before it is for `read`."""
        number = self.next
        while not self.closed:
            content = self.objects.read(name_of(self.prefix, number))
            if content is None:
                if self.objects.create(name_of(self.prefix, number), b""):
                    return
                content = self._existing(number)
            if not content:
                return
            number += 1

    def _existing(self, number: int) -> bytes:
        """A segment that cannot be created because it is there."""
        name = name_of(self.prefix, number)
        for wait in _WAITS:
            time.sleep(wait)
            if (content := self.objects.read(name)) is not None:
                return content
        raise StoreError(
            "an object exists and cannot be read: this store does not keep its promises",
            where=f"{self.objects.address}/{name}",
            fix="use a store with conditional writes and reads of what was just written",
        )

    def _take(self, content: bytes) -> None:
        self.next += 1
        self.closed = not content
        self._attempts = []
        if self._key is not None:
            for line in content.splitlines():
                self._keys.add(xxh3_64_intdigest(self._key(line)))

    def _without_keys(self, lines: list[bytes]) -> list[bytes]:
        if self._key is None:
            return list(lines)
        return [line for line in lines if xxh3_64_intdigest(self._key(line.rstrip(b"\n"))) not in self._keys]
