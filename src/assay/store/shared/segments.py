"""A log that many workers may append to, as numbered segments that are each created once.

Segment n of a log is the object `<prefix><n>.jsonl`. Whoever creates n has read 0 to n-1, so a row's key is in one
segment at most. A number that is taken means that another worker was here, or that the reply to an earlier attempt was
lost: both are settled by reading what is there. An empty segment closes the log for good.
"""

from collections.abc import Callable, Iterable, Iterator

from assay.errors import StoreError
from assay.store.shared.objects import Objects

Key = Callable[[bytes], bytes]


class ClosedError(StoreError):
    """Another generation has begun: nothing that this worker does counts any more."""


def name_of(prefix: str, number: int) -> str:
    return f"{prefix}{number:08}.jsonl"


def key_of(line: bytes) -> bytes:
    """The key of a row as Assay writes it: the text behind the first `"key":"`, which is 32 digits."""
    start = line.find(b'"key":"') + 7
    return line[start : line.find(b'"', start)] if start > 6 else line


class Segments:
    """One shard's rows of one kind, as this worker knows them. `key` tells which rows stand for the same work; without
    it each row is kept, because it records what was paid."""

    def __init__(self, objects: Objects, prefix: str, key: Key | None = key_of) -> None:
        self.objects = objects
        self.prefix = prefix
        self.next = 0
        self.closed = False
        self.contested = False
        self._key = key
        self._keys: set[bytes] = set()

    def read(self) -> Iterator[bytes]:
        """What others have committed since the last time, segment by segment. No listing is trusted: numbers are tried
        until there is none."""
        while not self.closed and (content := self.objects.read(name_of(self.prefix, self.next))) is not None:
            self._take(content)
            if content:
                yield content

    def commit(self, lines: list[bytes]) -> list[bytes]:
        """Commit whole lines, in order, as the next segment; those that others have committed meanwhile are left out.
        The lines that are in the log because of this call."""
        mine = self._without_keys(lines)
        while mine:
            if self.closed:
                raise ClosedError("a newer generation has begun", where=self.objects.address, fix="start a new worker")
            content = b"".join(mine)
            number = self.next
            if self.objects.create(name_of(self.prefix, number), content):
                self._take(content)
                return mine
            theirs = self.objects.read(name_of(self.prefix, number))
            if theirs is None:
                raise StoreError(
                    "an object exists and cannot be read: this store does not keep its promises",
                    where=f"{self.objects.address}/{name_of(self.prefix, number)}",
                    fix="use a store with conditional writes and reads of what was just written",
                )
            self._take(theirs)
            if theirs == content:  # an earlier attempt, the reply to which was lost
                return mine
            self.contested = True
            mine = self._without_keys(mine)
        return []

    def close(self) -> None:
        """Commit the empty segment; what others committed before it is for `read`."""
        number = self.next
        while (content := self.objects.read(name_of(self.prefix, number))) is not None or not self.objects.create(
            name_of(self.prefix, number), b""
        ):
            if content == b"":
                return
            number += content is not None

    def _take(self, content: bytes) -> None:
        self.next += 1
        self.closed = not content
        if self._key is not None:
            self._keys.update(map(self._key, content.splitlines()))

    def _without_keys(self, lines: Iterable[bytes]) -> list[bytes]:
        if self._key is None:
            return list(lines)
        return [line for line in lines if self._key(line) not in self._keys]
