"""One writer per folder: flock on `.lock`, which the kernel releases when the holder dies.

The file holds one JSON line that says who holds it. It is never removed: removing a lock file is a race.
"""

import fcntl
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

import msgspec

from assay.errors import LockedError
from assay.store.files import make_folder, open_own, store_error, sweep
from assay.store.sealed import LOCK as LOCK, sealed_line


class _Holder(msgspec.Struct):
    pid: int
    host: str
    command: str
    since: float


class FolderLock:
    """A context manager. The object that holds the lock may enter again: a run does in each of its steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fd = -1
        self._depth = 0
        self._guard = threading.Lock()

    def __enter__(self) -> None:
        with self._guard:
            if self._depth == 0:
                self._fd = self._take()
            self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._guard:
            self._depth -= 1
            if self._depth == 0:
                os.close(self._fd)
                self._fd = -1

    def _take(self) -> int:
        path = self.folder / LOCK
        try:
            make_folder(self.folder)
            fd = open_own(path, os.O_RDWR)
        except OSError as error:
            raise store_error(error, self.folder) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, sealed_line(msgspec.json.encode(_this_process())), 0)
            sweep(self.folder)
        except BlockingIOError:
            holder = os.pread(fd, 1 << 16, 0)
            os.close(fd)
            raise _refusal(self.folder, holder) from None
        except OSError as error:
            os.close(fd)
            raise store_error(error, path) from error
        return fd


def _this_process() -> _Holder:
    # Options are left out of the command: their values may be secrets.
    words = [Path(sys.argv[0]).name]
    for argument in sys.argv[1:]:
        if argument.startswith("-"):
            break
        words.append(argument)
    command = re.sub(r"//[^/\s]*@", "//", " ".join(words))
    return _Holder(pid=os.getpid(), host=socket.gethostname(), command=command, since=time.time())


def _refusal(folder: Path, line: bytes) -> LockedError:
    try:
        holder = msgspec.json.decode(line, type=_Holder)
    except ValueError:  # the holder has not written its name yet
        return LockedError(
            "another process is using this folder", where=str(folder), fix="wait until it has ended"
        )
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
    return LockedError(
        f"process {holder.pid} on {holder.host} (`{holder.command}`) has used this folder since {since}",
        where=str(folder),
        fix=f"wait until it has ended, or stop it there with `kill {holder.pid}`",
    )


@contextmanager
def patient(lock: AbstractContextManager[None], seconds: float = 600.0) -> Generator[None]:
    """Hold a lock for which one waits: another process holds it that makes the same thing."""
    end = time.monotonic() + seconds
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock)
                break
            except LockedError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)
        yield
