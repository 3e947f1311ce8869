"""What people and scripts see from outside: `status.json` (EEN's fields) and the log that a config asks for.

Texts in the log never hold a secret.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from assay.config import LoggingConfig
from assay.engine.calls.progress import LaneProgress, Progress
from assay.errors import StoreError
from assay.store.files import make_folder, private_mode, write_file
from assay.text.plain import plain

INTERVAL = 2.0


@asynccontextmanager
async def status_file(folder: Path, progress: Progress, mode: str) -> AsyncGenerator[None]:
    """Rewrite the file every two seconds, and once more at the end."""
    started = time.time()

    def write(state: str, error: BaseException | None = None) -> None:
        status = {"mode": "complete" if state == "complete" else mode, "state": state}
        status |= {**_counts(progress), "start_time": started, "last_update": time.time()}
        errors = [*([str(error)] if error is not None else []), *progress.errors]
        status |= {"errors": errors, **_details(progress)}
        write_file(folder / "status.json", msgspec.json.format(msgspec.json.encode(status)) + b"\n")

    async def keep() -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            write("running")

    write("running")
    keeping = asyncio.create_task(keep())
    try:
        yield
    except BaseException as error:
        keeping.cancel()
        with suppress(StoreError):
            write("stopped", error)
        raise
    keeping.cancel()
    write("complete")


def _counts(progress: Progress) -> dict[str, Any]:
    lanes = progress.of("run")
    total = sum(lane.total or 0 for lane in lanes)
    rows = sum(lane.present + lane.done for lane in lanes)
    failed = sum(lane.errors for lane in lanes)
    tokens, cost = progress.spent()
    return {
        "step": progress.step,
        "total_samples": total,
        "processed_samples": rows - failed,
        "failed_samples": failed,
        "progress_percent": round(100 * rows / total, 2) if total else 0.0,
        "current_model": next((lane.name for lane in lanes if lane.ended is None), None),
        **_speed(progress.of(progress.step)),
        "waiting": progress.waiting(),
        "tokens": tokens,
        "cost": cost,
    }


def _speed(lanes: list[LaneProgress]) -> dict[str, Any]:
    active = [lane for lane in lanes if lane.ended is None and lane.total != 0]
    left = [lane.left() for lane in active if lane.total is not None]
    longest = None if not left or None in left else max(filter(None, left), default=0.0)
    return {"rate": sum(lane.rate() for lane in active), "left_seconds": longest}


def _details(progress: Progress) -> dict[str, Any]:
    calling = [(name, lane) for (_, name), lane in progress.lanes.items() if lane.calls]
    return {
        "models": {lane.name: lane.status() for lane in progress.of("run")},
        "calls": {
            name: {"calls": lane.calls, "tokens": lane.tokens, "cost": lane.status().cost}
            for name, lane in calling
        },
        "notes": progress.notes,
    }


logger = logging.getLogger("assay")


class _Harmless(logging.Formatter):
    """A log is read on a terminal, and its messages hold what servers and user code say."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


@contextmanager
def log_to(config: LoggingConfig) -> Generator[None]:
    """Send Assay's log records to the config's file, if it names one."""
    before = logger.level
    logger.setLevel(config.level)
    handler: logging.Handler | None = None
    if config.file:
        path = Path(config.file)
        try:
            make_folder(path.parent)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, private_mode()))
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"the log cannot be written: {error.strerror}", where=str(path)
            ) from error
        handler.setFormatter(_Harmless("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(before)
        if handler is not None:
            logger.removeHandler(handler)
            handler.close()
