"""Rows of other places, read where they are by a step that writes into a folder of its own."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from assay.interfaces import Log
from assay.records import Kind, Manifest
from assay.store.keys import digest
from assay.store.log import FileLog
from assay.store.stores import FlatStore

_LINES = 256


class View(FlatStore):
    """An experiment folder that shows some artefacts from elsewhere; nothing is ever written to those."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._shown: dict[tuple[Kind, str], tuple[Log, Manifest | None]] = {}

    def show(self, kind: Kind, id: str, log: Log, manifest: Manifest | None) -> None:
        self._shown[kind, id] = log, manifest

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        shown = self._shown.get((kind, id))
        return super().manifest(kind, id) if shown is None else shown[1]

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        shown = self._shown.get((kind, id))
        return super().log(kind, id, name) if shown is None or name else shown[0]


class _WithField(FileLog, ABC):
    """Rows with one more field, unless they have one of that name."""

    def scan(self) -> Iterator[tuple[int, bytes]]:
        return ((position, self._extended(line)) for position, line in super().scan())

    def blocks(self) -> Iterator[bytes]:
        lines = (line + b"\n" for _, line in self.scan())
        while block := b"".join(islice(lines, _LINES)):
            yield block

    def read(self, position: int) -> bytes:
        return self._extended(super().read(position))

    @abstractmethod
    def field(self, line: bytes) -> bytes:
        """The field of a row, as JSON."""

    def _extended(self, line: bytes) -> bytes:
        """The field comes first: of two fields of one name, readers take the last."""
        start = line.find(b"{") + 1
        rest = line[start:].lstrip()
        if not start or line[: start - 1].strip() or not rest:
            return line
        return b"{" + self.field(line) + (rest if rest[:1] == b"}" else b"," + rest)


class NamedLog(_WithField):
    """The rows of one of several sources, each with the name of that in `source`."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self._field = b'"source":' + msgspec.json.encode(name)

    def field(self, line: bytes) -> bytes:
        return self._field


class KeyedLog(_WithField):
    """Responses from elsewhere with the keys by which their evaluations name them."""

    def field(self, line: bytes) -> bytes:
        return b'"key":"%s"' % digest("line", line).hex().encode()
