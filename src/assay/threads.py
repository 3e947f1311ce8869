"""Threads for calls that block, and blocking calls of async code: in a notebook, whose loop already runs, those get a
thread and a loop of their own."""

import asyncio
import ctypes
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Chunk:
    """Calls that one thread makes one after the other, until they are done or given up on."""

    def __init__(self, calls: Sequence[Callable[[], Any]], done: Callable[[], None]) -> None:
        self.calls = calls
        self.done = done
        self.results: list[tuple[Any, BaseException | None]] = []
        self.started = 0.0  # when the current call began
        self.abandoned = False
        self._thread = 0
        self._lock = threading.Lock()

    def run(self) -> None:
        with self._lock:
            if self.abandoned:
                return
            self._thread = threading.get_ident()
        self.started = time.monotonic()
        for call in self.calls:
            try:
                result: tuple[Any, BaseException | None] = (call(), None)
            except (
                BaseException
            ) as error:  # whatever user code raises, SystemExit included, is its result
                result = (None, error)
            with self._lock:
                if self.abandoned:
                    return
                self.results.append(result)
                self.started = time.monotonic()
        self.done()

    def seconds_left(self, timeout: float) -> float:
        """Seconds that the current call still has."""
        return timeout - (time.monotonic() - self.started) if self.started else timeout

    def give_up(self, timeout: float | None = None) -> bool:
        """Leave the thread behind, if its current call has had its time; then the next call has not begun. The thread
        ends as soon as it works in Python; what waits, or works in C, is ended when it comes back."""
        with self._lock:
            unfinished = len(self.results) < len(self.calls)
            if timeout is None or (self.seconds_left(timeout) <= 0 and unfinished):
                self.abandoned = True
                if unfinished and self._thread:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._thread), ctypes.py_object(SystemExit)
                    )
            return self.abandoned


class Threads:
    """At most `size` threads at work; threads that were given up on do not count."""

    def __init__(self, size: int = 16) -> None:
        self.size = size
        self._places = asyncio.Semaphore(size)
        self._queue: queue.SimpleQueue[_Chunk | None] = queue.SimpleQueue()
        self._idle = 0
        self._closed = False
        self._lock = threading.Lock()

    async def call(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """The function's result; TimeoutError after `timeout` seconds, its thread left behind."""
        ((value, error),) = await self.map([function], timeout)
        # raised here, it would end the event loop
        if error is not None and not isinstance(error, Exception):
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        if error is not None:
            raise error
        return value

    async def map(
        self, calls: Sequence[Callable[[], Any]], timeout: float | None = None
    ) -> list[tuple[Any, BaseException | None]]:
        """(result, exception) of each call, in order; a call that hangs costs itself, not the ones after it."""
        results: list[tuple[Any, BaseException | None]] = []
        while len(results) < len(calls):
            async with self._places:
                results += await self._run(calls[len(results) :], timeout)
        return results

    async def _run(
        self, calls: Sequence[Callable[[], Any]], timeout: float | None
    ) -> list[tuple[Any, BaseException | None]]:
        loop = asyncio.get_running_loop()
        finished = asyncio.Event()

        def done() -> None:
            try:
                loop.call_soon_threadsafe(finished.set)
            except RuntimeError:  # the loop is gone: nobody waits any more
                pass

        chunk = _Chunk(calls, done)
        self._start(chunk)
        while True:
            try:
                wait = None if timeout is None else max(0.01, chunk.seconds_left(timeout))
                await asyncio.wait_for(finished.wait(), wait)
                return chunk.results
            except TimeoutError:
                if chunk.give_up(timeout):
                    return [*chunk.results, (None, TimeoutError(f"took longer than {timeout:g} s"))]
            except asyncio.CancelledError:
                chunk.give_up()
                raise

    def _start(self, chunk: _Chunk) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                threading.Thread(target=self._work, daemon=True, name="assay-user-code").start()
        self._queue.put(chunk)

    def _work(self) -> None:
        while True:
            chunk = self._queue.get()
            if chunk is None:
                return
            chunk.run()
            if chunk.abandoned:  # and about to be ended: it must not be while it holds the lock
                return
            with self._lock:
                if self._closed:
                    return
                self._idle += 1

    def close(self) -> None:
        """Let the threads end, the busy ones after their work."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._queue.put(None)


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    return ThreadPoolExecutor(1, "assay-run").submit(lambda: asyncio.run(make())).result()


def blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """An async function or method for callers that are not async."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        return run_blocking(lambda: function(*args, **keywords))

    return call
