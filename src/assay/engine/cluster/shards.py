"""Which rows of a log belong to a shard: those of its items."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay.engine.cluster.root import Root
from assay.interfaces import Log
from assay.records import Damage, Manifest, Segment
from assay.store.log import FileLog
from assay.store.shared.generations import Generation
from assay.store.shared.objects import FolderObjects
from assay.store.shared.segments import ClosedError
from assay.store.table.decode import read_rows


class _ItemRow(msgspec.Struct):
    item_id: str = ""
    id: str = ""


class ShardPlaces:
    """Where the rows of each shard are in a log, learned in one pass: 12 bytes a row."""

    def __init__(self, log: Log, generation: Generation) -> None:
        self.log = log
        self._rows: Any = np.fromiter(self._places(generation), [("shard", "i4"), ("place", "i8")])

    def _places(self, generation: Generation) -> Iterator[tuple[int, int]]:
        item, shard = "", generation.shard_of("")
        for position, row in read_rows(self.log, _ItemRow):
            if (row.item_id or row.id) != item:  # the samples of an item are mostly neighbours
                item = row.item_id or row.id
                shard = generation.shard_of(item)
            yield shard, position

    def _of(self, shard: int) -> list[int]:
        return self._rows["place"][self._rows["shard"] == shard].tolist()

    def of(self, shard: int) -> "ShardLog":
        return ShardLog(self.log, self._of(shard))

    def among_first(self, shard: int, count: int) -> int:
        """Return how many rows of a shard are among the first of the log."""
        places = self._of(shard)
        beyond = next(islice(self.log.scan(), count, None), None)
        return len(places) if beyond is None else bisect_left(places, beyond[0])


@dataclass(eq=False)
class ShardLog:
    """The rows of one shard, to be read."""

    log: Log
    places: Sequence[int]

    def scan(self) -> Iterator[tuple[int, bytes]]:
        log, places = self.log, self.places
        found = log.read_many(places) if isinstance(log, FileLog) else map(log.read, places)
        return zip(places, found, strict=True)

    def blocks(self) -> Iterator[bytes]:
        lines = (line + b"\n" for _, line in self.scan())
        while block := b"".join(islice(lines, 256)):
            yield block

    def read(self, position: int) -> bytes:
        return self.log.read(position)

    def segments(self) -> list[Segment]:
        return self.log.segments()

    def checksums(self) -> dict[str, str]:
        return {}

    def damage(self, manifest: Manifest) -> list[Damage]:
        return []

    def append(self, lines: object) -> None:
        raise TypeError("a shard of a log is read, not written")

    replace = append

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class OrdinaryLog(FileLog):
    """The rows of the ordinary file alone, without the segments beside it."""

    def _names(self) -> list[str]:
        return [self.path.name]


@dataclass(eq=False)
class Parted:
    """The logs that a worker reads, by shard; `folder` is its own."""

    root: Root
    generation: Generation
    folder: Path

    def __post_init__(self) -> None:
        self._places: dict[str, ShardPlaces] = {}

    def before(self, shard: int, stem: str) -> Iterable[bytes]:
        """Rows of earlier generations, which are in the ordinary files."""
        name = f"{stem}.jsonl"
        return self.places(name).of(shard).blocks() if name in self.generation.base else ()

    def places(self, name: str, log: Callable[[], Log] | None = None) -> ShardPlaces:
        """Return the places in a log, by default in a file that the generation began with."""
        if name not in self._places:
            self._places[name] = ShardPlaces(log() if log else self._base(name), self.generation)
        return self._places[name]

    def _base(self, name: str) -> Log:
        """A file as the generation began with it. From a bucket this worker has it for itself: other processes of the
        machine bring their common copy up to date, or begin the next plan there."""
        path, objects = self.root.folder / name, self.root.objects
        if not isinstance(objects, FolderObjects):
            path = self.folder / "base" / name
            objects.fetch(name, path)
        if not path.exists() or path.stat().st_size != self.generation.base[name]:
            raise ClosedError(f"{self.root.place}/{name}")
        return OrdinaryLog(path)
