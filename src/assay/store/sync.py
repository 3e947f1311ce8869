"""Grouped fsync: rows reach the kernel one by one, the disk every 200 ms or 4 MB.

A power cut costs at most the last interval; the appender never waits for the disk.
"""

import threading
from types import TracebackType

from assay.interfaces import Log


class GroupSync:
    """Appends to logs and syncs them from one background thread, which sleeps while nothing is written.

    An error of that thread is raised by the next `append`, `flush` or `close`.
    """

    def __init__(self, *, interval: float = 0.2, limit: int = 4 << 20) -> None:
        self._interval = interval
        self._limit = limit
        self._dirty: set[Log] = set()
        self._bytes = 0
        self._error: Exception | None = None
        self._closing = False
        self._guard = threading.Lock()
        self._syncing = threading.Lock()
        self._some = threading.Event()
        self._enough = threading.Event()
        self._thread: threading.Thread | None = None

    def append(self, log: Log, lines: bytes) -> None:
        """Commit lines to a log; they survive a killed process now, a power cut soon."""
        self._raise()
        log.append(lines)
        with self._guard:
            self._dirty.add(log)
            self._bytes += len(lines)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="assay-sync", daemon=True)
                self._thread.start()
        if self._bytes >= self._limit:
            self._enough.set()
        if not self._some.is_set():
            self._some.set()

    def flush(self) -> None:
        """Return once everything appended so far would survive a power cut."""
        self._sync()
        self._raise()

    def close(self) -> None:
        """Flush and end the thread."""
        with self._guard:
            self._closing = True
            self._enough.set()
            self._some.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def __enter__(self) -> "GroupSync":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while not self._closing:
            self._some.wait()
            self._enough.wait(self._interval)
            self._sync()

    def _sync(self) -> None:
        # Whoever waits here returns only after the sync under way, so a flush never comes too early.
        with self._syncing:
            with self._guard:
                logs, self._dirty, self._bytes = self._dirty, set(), 0
                if not self._closing:
                    self._some.clear()
                    self._enough.clear()
            for log in logs:
                try:
                    log.sync()
                except Exception as error:
                    self._error = error
