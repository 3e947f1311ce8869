"""The rows that a log will have: written beside it, sealed as they come, and in its place at once."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.store.files import NewFile
from assay.store.seal import Checksums

if TYPE_CHECKING:
    from assay.store.log import FileLog

_CHUNK = 1 << 16  # bytes that are summed and written at once


class NewRows:
    """`commit` replaces the log by these rows; until then, and without it, the log is as it was. `read` is given all
    of their bytes, some at a time."""

    def __init__(self, log: "FileLog", read: Callable[[bytes], object] | None = None) -> None:
        self._log = log
        self._file = NewFile(log.path)
        self._read = read
        self._checksums = Checksums()
        self._waiting: list[bytes] = []
        self._size = 0

    def __enter__(self) -> "NewRows":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.__exit__()

    def write(self, lines: bytes) -> None:
        """Further whole lines."""
        self._waiting.append(lines)
        self._size += len(lines)
        if self._size >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        chunk = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        if chunk:
            self._checksums.add(chunk)
            self._file.write(chunk)
            if self._read is not None:
                self._read(chunk)

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._checksums.size

    def commit(self) -> None:
        self._flush()
        self._log.put(self._file, self._checksums)
