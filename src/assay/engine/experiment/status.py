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

import msgspec

from assay.config import LoggingConfig
from assay.engine.calls.progress import LaneProgress, LaneStatus, Progress
from assay.sdk import StoreError, make_folder, private_mode, write_file
from assay.text.plain import plain

INTERVAL = 2.0


class CallStatus(msgspec.Struct):
    """What the calls inside of rows came to."""

    calls: int
    tokens: int
    cost: float | None


class Status(msgspec.Struct, kw_only=True):
    """What `status.json` says of a run by one process. Samples and models are those of the run,
    `rate` and `left_seconds` of the step that is under way."""

    mode: str = ""
    state: str = ""
    step: str = ""
    total_samples: int = 0
    processed_samples: int = 0
    failed_samples: int = 0
    progress_percent: float = 0.0
    current_model: str | None = None
    rate: float = 0.0
    left_seconds: float | None = None
    waiting: str = ""
    tokens: int = 0
    cost: float | None = None
    start_time: float = 0.0
    last_update: float = 0.0
    errors: list[str] = []
    models: dict[str, LaneStatus] = {}
    calls: dict[str, CallStatus] = {}
    notes: list[str] = []


@asynccontextmanager
async def status_file(folder: Path, progress: Progress, mode: str) -> AsyncGenerator[None]:
    """Rewrite the file every two seconds, and once more at the end."""
    started = time.time()

    def write(state: str, error: BaseException | None = None) -> None:
        status = _status(progress)
        status.mode, status.state = "complete" if state == "complete" else mode, state
        status.start_time, status.last_update = started, time.time()
        status.errors = [*([str(error)] if error is not None else []), *progress.errors]
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


def _status(progress: Progress) -> Status:
    lanes = progress.of("run")
    status = Status(step=progress.step, waiting=progress.waiting(), notes=progress.notes)
    status.tokens, status.cost = progress.spent()
    status.failed_samples = sum(lane.errors for lane in lanes)
    rows = sum(lane.present + lane.done for lane in lanes)
    status.processed_samples = rows - status.failed_samples
    status.total_samples = total = sum(lane.total or 0 for lane in lanes)
    status.progress_percent = round(100 * rows / total, 2) if total else 0.0
    status.current_model = next((lane.name for lane in lanes if lane.ended is None), None)
    _set_speed(status, progress.of(progress.step))
    status.models = {lane.name: lane.status() for lane in lanes}
    for (_, name), lane in progress.lanes.items():
        if lane.calls:
            status.calls[name] = CallStatus(lane.calls, lane.tokens, lane.status().cost)
    return status


def _set_speed(status: Status, lanes: list[LaneProgress]) -> None:
    active = [lane for lane in lanes if lane.ended is None and lane.total != 0]
    status.rate = sum(lane.rate() for lane in active)
    left = [lane.seconds_left() for lane in active if lane.total is not None]
    if left and None not in left:
        status.left_seconds = max(filter(None, left), default=0.0)


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
