"""What people and scripts see from outside: `status.json` (EEN's fields) and the log that a config asks for.

Texts in the log never hold a secret.
"""

import asyncio
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from assay.config import LoggingConfig
from assay.engine.calls.progress import Progress
from assay.errors import StoreError
from assay.store.files import make_folder, private_mode, write_file
from assay.text.plain import plain

INTERVAL = 2.0


class StatusFile:
    """Rewritten every two seconds while it is entered, and once more at the end."""

    def __init__(self, folder: Path, progress: Progress, mode: str) -> None:
        self._path = folder / "status.json"
        self._progress = progress
        self._mode = mode
        self._started = time.time()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._write("running", None)
        self._task = asyncio.create_task(self._keep())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
        try:
            self._write("complete" if error is None else "stopped", error)
        except StoreError:
            if error is None:
                raise

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            self._write("running", None)

    def _write(self, state: str, error: BaseException | None) -> None:
        write_file(
            self._path, msgspec.json.format(msgspec.json.encode(self._status(state, error))) + b"\n"
        )

    def _status(self, state: str, error: BaseException | None) -> dict[str, Any]:
        lanes = self._progress.of("run")
        total = sum(lane.total or 0 for lane in lanes)
        rows = sum(lane.present + lane.done for lane in lanes)
        failed = sum(lane.errors for lane in lanes)
        active = [
            lane
            for lane in self._progress.of(self._progress.step)
            if lane.ended is None and lane.total != 0
        ]
        left = [lane.left() for lane in active if lane.total is not None]
        tokens, cost = self._progress.spent()
        return {
            "mode": "complete" if state == "complete" else self._mode,
            "state": state,
            "step": self._progress.step,
            "total_samples": total,
            "processed_samples": rows - failed,
            "failed_samples": failed,
            "progress_percent": round(100 * rows / total, 2) if total else 0.0,
            "current_model": next((lane.name for lane in lanes if lane.ended is None), None),
            "rate": sum(lane.rate() for lane in active),
            "left_seconds": None
            if not left or None in left
            else max(filter(None, left), default=0.0),
            "waiting": self._progress.waiting(),
            "tokens": tokens,
            "cost": cost,
            "start_time": self._started,
            "last_update": time.time(),
            "errors": [*([str(error)] if error is not None else []), *self._progress.errors],
            "models": {lane.name: msgspec.to_builtins(lane.status()) for lane in lanes},
            "calls": {
                name: {
                    "calls": lane.calls,
                    "tokens": lane.tokens,
                    "cost": None if lane.unpriced else lane.cost,
                }
                for (_, name), lane in self._progress.lanes.items()
                if lane.calls
            },
            "notes": self._progress.notes,
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
