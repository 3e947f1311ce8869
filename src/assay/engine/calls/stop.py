"""How a run is asked to stop: once for a clean stop, twice for at once."""

import asyncio
from collections.abc import Callable


class Stop:
    """Set from a signal handler or from another task; the executors look at it and wait for it."""

    def __init__(self) -> None:
        self.requests = 0
        self._event = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []

    @property
    def requested(self) -> bool:
        return self.requests > 0

    def request(self) -> None:
        self.requests += 1
        self._event.set()
        for listener in self._listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` at every request, and now if there was one."""
        self._listeners.append(listener)
        if self.requested:
            listener()

    async def wait(self) -> None:
        await self._event.wait()


async def finish(workers: list[asyncio.Task[None]], stop: Stop, grace: float) -> None:
    """Wait for workers. After a request to stop they have `grace` seconds for what is in flight (a second request
    ends that too), then they are cancelled; the first exception of a worker cancels the others and is raised."""
    stopped = asyncio.ensure_future(stop.wait())
    pending: set[asyncio.Future[None]] = set(workers)
    try:
        while pending and not stop.requested:
            done, pending = await asyncio.wait(
                {*pending, stopped}, return_when=asyncio.FIRST_COMPLETED
            )
            pending.discard(stopped)
            _raise_first(done - {stopped})
        if pending:
            await _drain(pending, stop, grace)
    finally:
        stopped.cancel()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, stopped, return_exceptions=True)
    _raise_first(set(workers))


async def _drain(pending: set[asyncio.Future[None]], stop: Stop, grace: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + grace
    while pending and stop.requests < 2 and loop.time() < end:
        _, pending = await asyncio.wait(pending, timeout=0.1)


def _raise_first(workers: set[asyncio.Future[None]]) -> None:
    for worker in workers:
        if worker.done() and not worker.cancelled():
            error = worker.exception()
            if error is not None:
                raise error
