"""Workers as processes of this machine."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.cluster.root import Root

T = TypeVar("T")


async def run_processes(
    root: Root,
    workers: int,
    progress: Progress,
    stop: Stop | None,
    work: Callable[[], Awaitable[T]],
) -> T:
    """What `work`, this process's own part, gives while others work, when all have ended. One that dies is not missed:
    another one takes its shards, and if none is left, the caller does."""
    command = [sys.executable, "-m", "assay", "worker", root.place, "--quiet"]
    running = [
        await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        for _ in range(workers)
    ]
    if stop is not None:
        stop.listen(lambda: _ask_to_stop(running))
    others = asyncio.gather(*(process.communicate() for process in running))
    try:
        worked, endings = await asyncio.gather(work(), others)
        for number, ended in enumerate(endings):
            code = running[number].returncode
            if code and not (stop and stop.requested):
                text = ended[1].decode(errors="replace").strip().splitlines()
                progress.note(f"a worker ended with {code}: {text[-1] if text else 'no message'}")
        return worked
    finally:
        if not (stop and stop.requested):  # a second time would mean at once
            _ask_to_stop(running)
        await asyncio.gather(*(process.wait() for process in running))


def _ask_to_stop(processes: list[asyncio.subprocess.Process]) -> None:
    for process in processes:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
