"""Threads for user code that is not async. They are daemons: code that hangs can be left behind, never waited for."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _Chunk:
    """Calls that one thread makes one after the other; `started` tells how long the current one has been running."""

    def __init__(self, calls: Sequence[Callable[[], Any]], done: Callable[[], None]) -> None:
        self.calls = calls
        self.done = done
        self.results: list[tuple[Any, BaseException | None]] = []
        self.started = 0.0
        self.abandoned = False

    def run(self) -> None:
        for call in self.calls:
            self.started = time.monotonic()
            try:
                result: tuple[Any, BaseException | None] = (call(), None)
            except BaseException as error:  # whatever user code raises, SystemExit included, is its result
                result = (None, error)
            if self.abandoned:
                return
            self.results.append(result)
        self.done()


class Threads:
    """At most `size` threads at work; threads that were given up on do not count."""

    def __init__(self, size: int = 16) -> None:
        self.size = size
        self._places = asyncio.Semaphore(size)
        self._queue: queue.SimpleQueue[_Chunk | None] = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    async def call(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """The function's result; TimeoutError after `timeout` seconds, its thread left behind."""
        (result,) = await self.map([function], timeout)
        value, error = result
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
                wait = None if timeout is None else self._wait(chunk, timeout)
                await asyncio.wait_for(finished.wait(), wait)
                return chunk.results
            except TimeoutError:
                finished_calls = len(chunk.results)
                if timeout is not None and chunk.started and time.monotonic() - chunk.started >= timeout:
                    chunk.abandoned = True
                    results = list(chunk.results)
                    if len(results) == finished_calls:  # else it ended in this very moment: not the one that hangs
                        results.append((None, TimeoutError(f"took longer than {timeout:g} s")))
                    return results
            except asyncio.CancelledError:
                chunk.abandoned = True
                raise

    @staticmethod
    def _wait(chunk: _Chunk, timeout: float) -> float:
        running = time.monotonic() - chunk.started if chunk.started else 0.0
        return max(0.01, timeout - running)

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
            if chunk.abandoned:
                return
            with self._lock:
                self._idle += 1

    def close(self) -> None:
        """Let the idle threads end."""
        with self._lock:
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._queue.put(None)
