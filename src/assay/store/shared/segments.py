"""A log that many workers may append to, as numbered segments that are each created once.

Segment n of a log is the object `<prefix><n>.jsonl`. Whoever creates n has read 0 to n-1, so a row's key is in one
segment at most. A number that is taken means that another worker was here, or that the reply to an earlier attempt was
lost: both are settled by reading what is there. An empty segment closes the log for good.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec
from xxhash import xxh3_64_intdigest

from assay.errors import StoreError
from assay.store.keyset import Seen
from assay.store.shared.objects import Objects

Key = Callable[[bytes], bytes]
_WAITS = (0.0, 0.05, 0.2, 1.0, 2.0)  # seconds: NFS may remember for a while that a name was missing


class ClosedError(StoreError):
    """Another generation has begun, or is about to: nothing that this worker does counts any more."""

    def __init__(self, where: str) -> None:
        fix = "start a new worker, or run the config again"
        super().__init__("a newer generation has begun", where=where, fix=fix)


class _Row(msgspec.Struct, gc=False):
    key: str = ""


_decode = msgspec.json.Decoder(_Row).decode
_decode_lines = msgspec.json.Decoder(_Row).decode_lines


def name_of(prefix: str, number: int) -> str:
    return f"{prefix}{number:08}.jsonl"


def key_of(line: bytes) -> bytes:
    """The key of a row. It is decoded, because metadata and details come before it and may have a `key` of their own,
    and because a torn line has none; a line without a key stands for itself."""
    try:
        return _decode(line).key.encode() or line
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return line


class _Group(NamedTuple):
    """Lines, and what memory holds of their keys; nothing where each line is kept."""

    content: bytes
    numbers: list[int]


def _numbers_of(content: bytes, key: Key) -> list[int]:
    """What memory holds of keys. Rows of which each has one are decoded together."""
    if key is key_of:
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            keys = [row.key for row in _decode_lines(content)]
            if len(keys) == content.count(b"\n") and all(keys):
                return [*map(xxh3_64_intdigest, map(str.encode, keys))]
    return [xxh3_64_intdigest(key(line)) for line in _lines(content)]


def _lines(content: bytes) -> list[bytes]:
    return content.removesuffix(b"\n").split(b"\n") if content else []


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
        self._attempts: list[
            _Group
        ] = []  # to create `next`: any of them may have succeeded, or still do so
        self._done = b""  # committed by calls of `commit` that could not say so

    def read(self) -> Iterator[bytes]:
        """What others have committed since the last time, segment by segment. No listing is trusted: numbers are tried
        until there is none."""
        while (
            not self.closed
            and (content := self.objects.read(name_of(self.prefix, self.next))) is not None
        ):
            if not self._take(content) and content:
                yield content

    def commit(self, lines: bytes) -> bytes:
        """Commit whole lines, in order, as the next segment; those that others have committed meanwhile are left out.
        The lines that are in the log because of this worker. After a StoreError the same lines come first again."""
        if lines and not lines.endswith(b"\n"):
            raise ValueError("segments take whole lines: the last one lacks its line feed")
        mine = self._missing(self._group(lines), self._done)
        while mine.content:
            if self.closed:
                raise ClosedError(self.objects.address)
            self._attempts.append(mine)
            content = mine.content
            if not self.objects.create(name_of(self.prefix, self.next), content):
                content = self._existing(self.next)
            own = self._take(content)
            self.contested = self.contested or not own
            mine = self._missing(mine, own)
        done, self._done = self._done, b""
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

    def _take(self, content: bytes) -> bytes:
        """Go past a segment; its lines, if this worker put them there."""
        own = next((attempt for attempt in self._attempts if attempt.content == content), None)
        self._attempts = []
        self.next += 1
        self.closed = not content
        new = own or self._missing(self._group(content), b"")
        self._keys.update(new.numbers)
        if own is None:
            return b""
        self._done = self._done + content if self._done else content
        return content

    def _missing(self, group: _Group, done: bytes) -> _Group:
        """What is not in the log yet; `done` are the lines at the beginning that are."""
        content, numbers = group
        if done and content.startswith(done):
            content, numbers = content[len(done) :], numbers[done.count(b"\n") :]
        if self._keys.isdisjoint(numbers):
            return _Group(content, numbers)
        kept = [
            pair for pair in zip(_lines(content), numbers, strict=True) if pair[1] not in self._keys
        ]
        return _Group(b"".join(line + b"\n" for line, _ in kept), [number for _, number in kept])

    def _group(self, content: bytes) -> _Group:
        return _Group(content, [] if self._key is None else _numbers_of(content, self._key))
