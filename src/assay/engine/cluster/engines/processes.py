"""Workers as processes of this machine."""

import asyncio
import signal
import sys
from contextlib import suppress

from assay.engine.calls.progress import Progress
from assay.engine.calls.stop import Stop
from assay.engine.cluster.root import Root


async def run_processes(root: Root, workers: int, progress: Progress, stop: Stop | None) -> None:
    """Start workers, and return when all have ended. One that dies is not missed: another one takes its shards, and if
    none is left, the caller does."""
    command = [sys.executable, "-m", "assay", "worker", root.place, "--quiet"]
    running = [
        await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
        for _ in range(workers)
    ]
    if stop is not None:
        stop.listen(lambda: _ask_to_stop(running))
    try:
        for number, ended in enumerate(await asyncio.gather(*(process.communicate() for process in running))):
            code = running[number].returncode
            if code and not (stop and stop.requested):
                text = ended[1].decode(errors="replace").strip().splitlines()
                progress.note(f"a worker ended with {code}: {text[-1] if text else 'no message'}")
    finally:
        _ask_to_stop(running)


def _ask_to_stop(processes: list[asyncio.subprocess.Process]) -> None:
    for process in processes:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
