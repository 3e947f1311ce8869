"""Passes over rows, and measuring, by several processes of this machine: children that are forked
where the work begins, so that they have all that it needs, and that send their results through a
pipe.

A child that fails changes nothing: the work is then done again in this process, and fails as it
does there.
"""

import fcntl
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import Any, BinaryIO, TypeVar, cast

from assay.errors import RunFailed
from assay.interfaces import Log
from assay.store.lines import Part, cut
from assay.store.log import FileLog

T = TypeVar("T")
S = TypeVar("S")
# of a child: it decodes them in 16 ms; forking it and sending its columns takes about 5
LEAST_BYTES = 8 << 20
LEAST_ROWS = 50_000  # likewise, to sort and measure
_PIPE = 1 << 20
_SIZE = Struct("<Q")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Processes:
    """At most this many children at a time; none where the work is not worth it."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers if hasattr(os, "fork") else 1

    def over(self, logs: Sequence[Log], work: Callable[[], T]) -> list[T]:
        """Return what `work`, a pass over all rows of some logs, gives for the parts of them, in
        order."""
        shares = self._shares(logs)
        if len(shares) < 2:
            return [work()]
        files = cast("Sequence[FileLog]", logs)

        def read(share: list[list[Part]]) -> tuple[T, list[Any]]:
            for log, window in zip(files, share, strict=True):
                log.limit(window)
            return work(), [log.sums() for log in files]

        results = divided(shares, read)
        if results is None:
            return [work()]
        for log, *sums in zip(files, *(sums for _, sums in results), strict=True):
            log.join_sums(sums)
        return [result for result, _ in results]

    def each(
        self, units: Sequence[T], weights: Sequence[float], work: Callable[[Sequence[T]], S]
    ) -> list[S]:
        """What `work` gives for the units, of which each child has some that stand together, by
        weights in rows."""
        total, ends, begun = sum(weights), [0], 0.0
        count = max(1, min(self.workers, len(units), int(total / LEAST_ROWS)))
        for number, weight in enumerate(weights):
            if begun + weight / 2 > total * len(ends) / count and number > ends[-1]:
                ends.append(number)
            begun += weight
        shares = [
            units[start:stop] for start, stop in zip(ends, [*ends[1:], len(units)], strict=True)
        ]
        results = divided(shares, work) if len(shares) > 1 else None
        return [work(units)] if results is None else results

    def _shares(self, logs: Sequence[Log]) -> list[list[list[Part]]]:
        """For each child the parts of each log; one share at most where they are small, or not
        files."""
        if self.workers < 2:
            return []
        files: list[tuple[int, Part]] = []
        sizes: list[int] = []
        for at, log in enumerate(logs):
            if not isinstance(log, FileLog):
                return []
            for part in log.parts():
                try:
                    sizes.append(os.stat(part.path).st_size)
                except OSError:  # absent, or the pass will say what is wrong with it
                    sizes.append(0)
                files.append((at, part))
        count = max(1, min(self.workers, sum(sizes) // max(1, LEAST_BYTES)))
        shares: list[list[list[Part]]] = []
        for share in cut(sizes, count):
            windows: list[list[Part]] = [[] for _ in logs]
            for file, start, stop in share:
                at, part = files[file]
                windows[at].append(part._replace(start=start, stop=stop))
            shares.append(windows)
        return shares


def divided(shares: Sequence[S], work: Callable[[S], T]) -> list[T] | None:
    """What `work` gives for each share, each in a child of its own, in order. None if a child
    could not do it."""
    children: list[tuple[int, BinaryIO]] = []
    life, ours = os.pipe()  # has its end when this process has ended, however that came
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        for share in shares:
            children += [_started(partial(work, share), life, ours)]
        results: list[T] = []
        for child, pipe in list(children):
            result = _received(pipe)
            _, status = os.waitpid(child, 0)
            children.remove((child, pipe))
            pipe.close()
            if os.WIFSIGNALED(status):
                raise _ended(os.WTERMSIG(status))
            if result is None or status:
                return None
            results.append(pickle.loads(result[0], buffers=result[1:]))
        return results
    except OSError:  # no process or no memory left for another one
        return None
    finally:
        for child, pipe in children:
            # a caller may have told the kernel to forget its children at once
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            pipe.close()
        os.close(life)
        os.close(ours)


def _ended(number: int) -> BaseException:
    if number == signal.SIGINT:
        return KeyboardInterrupt()
    return RunFailed(
        f"a worker process was ended by {signal.Signals(number).name}",
        fix="if memory is short, use fewer --workers; nothing was written, the same command begins again",
    )


def _started(work: Callable[[], Any], life: int, ours: int) -> tuple[int, BinaryIO]:
    source, target = os.pipe()
    with suppress(AttributeError, OSError):  # where there is such a thing, and the user may
        fcntl.fcntl(target, fcntl.F_SETPIPE_SZ, _PIPE)
    # a handler of ours must not run in the child
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        child = os.fork()
        if not child:
            _work(work, life, ours, target)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(target)
    return child, open(source, "rb")


def _work(work: Callable[[], Any], life: int, ours: int, target: int) -> None:
    """In the child, which does not come back from here."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(ours)
        threading.Thread(target=_end_with_parent, args=(life,), daemon=True).start()
        _send(target, work())
        sys.stdout.flush()
        sys.stderr.flush()
        code = 0
    finally:
        os._exit(code)


def _end_with_parent(life: int) -> None:
    os.read(life, 1)
    os._exit(1)


def _send(target: int, value: Any) -> None:
    """Arrays go as they are, without a copy."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, 5, buffer_callback=buffers.append)
    parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    with open(target, "wb") as file:
        file.write(_SIZE.pack(len(parts)) + b"".join(_SIZE.pack(part.nbytes) for part in parts))
        for part in parts:
            file.write(part)


def _received(pipe: BinaryIO) -> list[bytearray] | None:
    """The parts of a message; None if the child ended before it was whole."""
    head = pipe.read(_SIZE.size)
    count = _SIZE.unpack(head)[0] if len(head) == _SIZE.size else 0
    sizes = pipe.read(count * _SIZE.size)
    if not count or len(sizes) < count * _SIZE.size:
        return None
    parts: list[bytearray] = []
    for (size,) in _SIZE.iter_unpack(sizes):
        part = bytearray(size)
        if cast("Any", pipe).readinto(part) != size:
            return None
        parts.append(part)
    return parts
