"""A log that many workers may append to, as numbered segments that are each created once.

Segment n of a log is the object `<prefix><n>.jsonl`. Whoever creates n has read 0 to n-1, so a row's key is in one
segment at most. A number that is taken means that another worker was here, or that the reply to an earlier attempt was
lost: both are settled by reading what is there. An empty segment closes the log for good.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import compress, repeat
from typing import NamedTuple

import msgspec
import numpy as np
from xxhash import xxh3_64_intdigest

from assay.errors import StoreError
from assay.store.keyset import Keys, Seen
from assay.store.shared.objects import Objects

Key = Callable[[bytes], bytes]
_NONE = np.zeros(0, np.uint64)
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
    """Lines, what memory holds of their keys (nothing where each line is kept), and all of them as a segment has it."""

    lines: list[bytes]
    numbers: Keys
    content: bytes


def _numbers_of(lines: list[bytes], content: bytes, key: Key) -> Keys:
    """What memory holds of keys. Rows of which each has one are decoded together."""
    if key is key_of:
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            keys = [row.key for row in _decode_lines(content)]
            if len(keys) == len(lines) and all(keys):
                return np.fromiter(map(xxh3_64_intdigest, map(str.encode, keys)), np.uint64, len(keys))
    return np.fromiter((xxh3_64_intdigest(key(line.rstrip(b"\n"))) for line in lines), np.uint64, len(lines))


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
        self._attempts: list[_Group] = []  # to create `next`: any of them may have succeeded, or still do so
        self._done: list[bytes] = []  # committed by calls of `commit` that could not say so

    def read(self) -> Iterator[bytes]:
        """What others have committed since the last time, segment by segment. No listing is trusted: numbers are tried
        until there is none."""
        while not self.closed and (content := self.objects.read(name_of(self.prefix, self.next))) is not None:
            if not self._take(content) and content:
                yield content

    def commit(self, lines: list[bytes]) -> list[bytes]:
        """Commit whole lines, in order, as the next segment; those that others have committed meanwhile are left out.
        The lines that are in the log because of this worker. After a StoreError the same lines come first again."""
        group = self._group(lines.copy())  # the caller may add to its own
        if group.content.count(b"\n") != len(lines) or not all(map(bytes.endswith, lines, repeat(b"\n"))):
            raise ValueError("segments take whole lines, one by one, with their line feeds")
        mine = self._missing(group, self._done)
        while mine.lines:
            if self.closed:
                raise ClosedError(self.objects.address)
            self._attempts.append(mine)
            content = mine.content
            if not self.objects.create(name_of(self.prefix, self.next), content):
                content = self._existing(self.next)
            own = self._take(content)
            self.contested = self.contested or not own
            mine = self._missing(mine, own)
        done, self._done = self._done, []
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

    def _take(self, content: bytes) -> list[bytes]:
        """Go past a segment; the lines that this worker put there, if it was this one."""
        own = next((attempt for attempt in self._attempts if attempt.content == content), None)
        self._attempts = []
        self.next += 1
        self.closed = not content
        if self._key is not None:
            numbers = (own or self._group(content.splitlines(keepends=True))).numbers
            self._keys.update(numbers if own else numbers[~self._keys.among(numbers)])
        self._done += own.lines if own else []
        return own.lines if own else []

    def _missing(self, group: _Group, done: list[bytes]) -> _Group:
        """What is not in the log yet; `done` are the lines at the beginning that are."""
        start = len(done) if group.lines[: len(done)] == done else 0
        lines, numbers = group.lines[start:], group.numbers[start:]
        if self._key is not None and lines:
            is_new = ~self._keys.among(numbers)
            lines, numbers = [*compress(lines, is_new)], numbers[is_new]
        return group if len(lines) == len(group.lines) else _Group(lines, numbers, b"".join(lines))

    def _group(self, lines: list[bytes]) -> _Group:
        content = b"".join(lines)
        return _Group(lines, _NONE if self._key is None else _numbers_of(lines, content, self._key), content)
