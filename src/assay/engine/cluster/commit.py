"""The rows of a shard while a worker makes them: an ordinary folder of its own, the lines of which go to the root in
groups. A row counts when its group is a segment of the root."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path

from assay.sdk import ROWS_FILE, Manifest, StoreError
from assay.store.log import FileLog
from assay.store.shared.generations import STEMS, Generation
from assay.store.shared.objects import Objects
from assay.store.shared.segments import ClosedError, Segments
from assay.store.stores import View

GROUP = 256  # rows that a dead worker may take with it,
# or this many bytes for each: of labels, which are quick to make again; calls to judges are rows
CHEAP = 1 << 14
SECONDS = 1.0  # that a row waits for others


class TakenOver(StoreError):
    """Another worker has written to this shard: it is at work there."""


class Committer:
    """Sends lines to the root from a thread of its own, so that the engine does not wait for the network unless a whole
    group is on its way. An error is raised by the next `add` or `flush`."""

    def __init__(
        self, order: Sequence[Segments], group: int = GROUP, seconds: float = SECONDS
    ) -> None:
        self._order = order
        self._group = group
        self._seconds = seconds
        self._waiting: dict[Segments, list[bytes]] = {}
        self._rows = 0  # that wait, by weight
        self._sent = 0  # and that are being committed
        self._oldest = 0.0
        self._urgent = False
        self._closing = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, segments: Segments, lines: bytes, *, cheap: bool = False) -> None:
        """Lines that belong together: they become part of one segment."""
        with self._changed:
            while self._rows + self._sent >= self._group and self._error is None:
                self._changed.wait()
            self._raise()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="assay-commit", daemon=True)
                self._thread.start()
            is_first = not self._waiting
            if is_first:
                self._oldest = time.monotonic()
            self._waiting.setdefault(segments, []).append(lines)
            self._rows += max(1, len(lines) // CHEAP) if cheap else lines.count(b"\n")
            # to wake a thread costs as much as a row
            if is_first or self._rows >= self._group // 2:
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when everything that was added is committed."""
        with self._changed:
            self._urgent = True
            self._changed.notify_all()
            while (self._waiting or self._sent) and self._error is None:
                self._changed.wait()
            self._urgent = False
            self._raise()

    def close(self) -> None:
        """End the thread; what is not committed is given up."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (groups := self._next()) is not None:
            try:
                for segments in filter(groups.__contains__, self._order):
                    segments.commit(b"".join(groups[segments]))
                    if segments.contested:
                        raise TakenOver(
                            "another worker has taken this shard over", where=segments.prefix
                        )
            except Exception as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._sent = 0
                self._changed.notify_all()

    def _next(self) -> dict[Segments, list[bytes]] | None:
        """The next groups to commit; None at the end."""
        with self._changed:
            while not self._closing:
                left = self._oldest + self._seconds - time.monotonic()
                if self._waiting and (self._urgent or left <= 0 or self._rows >= self._group // 2):
                    groups, self._waiting = self._waiting, {}
                    self._sent, self._rows = self._rows, 0
                    return groups
                self._changed.wait(left if self._waiting else None)
            return None


class CommittedLog(FileLog):
    """A file whose lines go to the root as well. Labels go there alone: no step reads those that it made."""

    def __init__(self, path: Path, segments: Segments, committer: Committer) -> None:
        super().__init__(path)
        self._segments = segments
        self._committer = committer
        self._is_labels = path.name == ROWS_FILE["evaluation"]

    def append(self, lines: bytes) -> None:
        if not self._is_labels:
            super().append(lines)
        if lines:
            self._committer.add(self._segments, lines, cheap=self._is_labels)

    def fill(self, blocks: Iterable[bytes]) -> None:
        """Lines that the root has already."""
        for block in blocks:
            super().append(block)

    def replace(self, lines: Iterable[bytes]) -> None:
        fix = "run the same command with one process: it sets bad rows aside, and makes the folder whole"
        raise StoreError(
            "rows of this shard cannot be read, or are there twice",
            where=self._segments.prefix,
            fix=fix,
        )

    def sync(self) -> None:
        """The root keeps the rows; this file ends with the worker."""


class ShardStore(View):
    """An experiment folder for one shard; what is appended goes to the root."""

    def __init__(
        self, folder: Path, id: str, objects: Objects, generation: Generation, shard: int
    ) -> None:
        super().__init__(folder)
        self.id = id
        self._segments = {stem: generation.segments(objects, stem, shard) for stem in STEMS}
        self.committer = Committer(list(self._segments.values()))
        self._filled: list[CommittedLog] = []  # a store remembers its logs weakly

    def fill(self, before: Callable[[str], Iterable[bytes]]) -> None:
        """Have the rows that the root has: those of earlier generations, which `before` gives by the name of their
        file, and those of this one."""
        for stem, segments in self._segments.items():
            path = self.folder / f"{stem}.jsonl"
            log = CommittedLog(path, segments, self.committer)
            self._filled.append(log)
            self._logs[path] = log
            log.fill(before(stem))
            log.fill(segments.read())
            if segments.closed:  # then its rows may be among those before as well
                raise ClosedError(segments.prefix)

    def segment_counts(self) -> dict[str, int]:
        """Return how many segments each log of the shard has."""
        return {stem: segments.next for stem, segments in self._segments.items()}

    def put_items(self, id: str, blocks: Iterable[bytes]) -> int:
        """Store the items of the shard; how many there are."""
        log, content, count = self.log("dataset", id), blake2b(digest_size=16), 0
        for block in blocks:
            log.append(block)
            content.update(block)
            count += block.count(b"\n")
        log.sync()
        manifest = Manifest(
            kind="dataset", id=id, complete=True, digest=content.hexdigest(), planned=count
        )
        self.put_manifest(manifest)
        return count
