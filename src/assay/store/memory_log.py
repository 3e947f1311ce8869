"""A log that ends with the process."""

from collections.abc import Iterable, Iterator
from itertools import count

from assay.errors import StoreError
from assay.records import Damage, Manifest, Segment


class MemoryLog:
    """A log in memory; a position is a line's number."""

    _changes = count(1)

    def __init__(self, name: str = "rows.jsonl") -> None:
        self.name = name
        self._lines: list[bytes] = []
        self._changed = 0

    def append(self, lines: bytes) -> None:
        if not lines:
            return
        if lines[-1:] != b"\n":
            raise ValueError("a log takes whole lines: the last one lacks its line feed")
        self._lines += lines[:-1].split(b"\n")
        self._changed = next(self._changes)

    def scan(self) -> Iterator[tuple[int, bytes]]:
        yield from enumerate(self._lines)

    def blocks(self) -> Iterator[bytes]:
        for start in range(0, len(self._lines), 256):
            yield b"\n".join([*self._lines[start : start + 256], b""])

    def read(self, position: int) -> bytes:
        try:
            return self._lines[position]
        except IndexError:
            raise StoreError("there is no line at this position", where=self.name) from None

    def replace(self, lines: Iterable[bytes]) -> None:
        self._lines = [line for chunk in lines for line in chunk[:-1].split(b"\n")]
        self._changed = next(self._changes)

    def segments(self) -> list[Segment]:
        """`mtime_ns` counts the changes of all logs in this process: equal means unchanged."""
        if not self._changed:
            return []
        size = sum(len(line) + 1 for line in self._lines)
        return [Segment(name=self.name, size=size, mtime_ns=self._changed)]

    def checksums(self) -> dict[str, str]:
        return {}

    def damage(self, manifest: Manifest) -> list[Damage]:
        return []

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass
