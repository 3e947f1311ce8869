"""Progress for three readers: a person at a terminal, a log file, a program."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, redirect_stdout
from types import TracebackType
from typing import Any, Literal, TextIO, TypeVar

import msgspec

from assay.engine.calls.progress import LaneProgress, Progress
from assay.engine.calls.stop import Stop
from assay.reports.sheet import Cell, Column, Line, Row, Sheet, Table, columns_of, cost_text
from assay.text.plain import plain, plain_json

STOPPING = "stopping: no new call begins; those under way have 10 s, or none if asked again"

T = TypeVar("T")


class _Display:
    """Looks at the counters every `interval` seconds while it is entered, and once at the end."""

    interval = 0.25

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self.begin()
        self._task = asyncio.create_task(self._keep())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()
        self.end()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self.interval)
            self.show()

    def begin(self) -> None: ...

    def show(self) -> None: ...

    def end(self) -> None:
        self.show()

    def stopping(self) -> None:
        """Tell at once that a request to stop was heard."""
        print(STOPPING, file=sys.stderr, flush=True)


class Silent(_Display):
    """For --no-progress."""


class LiveDisplay(_Display):
    """A table that is redrawn in place."""

    def begin(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(console=Console(stderr=True), auto_refresh=False)
        self._live.start()
        self.show()

    def show(self) -> None:
        from rich.text import Text

        width = self._live.console.width
        self._live.update(
            Text.from_ansi(self._sheet().form(width=width, colour=True)), refresh=True
        )

    def end(self) -> None:
        self.show()
        self._live.stop()

    def stopping(self) -> None:
        self._live.console.print(STOPPING)

    def _sheet(self) -> Sheet:
        name = Column("", text=True)
        columns = columns_of(
            "<step", name, "<done", "rate", "left", "errors", "retries", "tokens", "cost"
        )
        rows: list[Row] = []
        for (step, _), lane in self.progress.lanes.items():
            errors = Cell(str(lane.errors), "open" if lane.errors else "")
            speed = (_rate(lane), _time_left(lane))
            rows.append(
                [
                    step,
                    lane.name,
                    _done(lane),
                    *speed,
                    errors,
                    str(lane.retries),
                    f"{lane.tokens:,}",
                    _cost(lane),
                ]
            )
        waiting = [
            Line(f"{lane.name}: {why}", "quiet")
            for lane in self.progress.lanes.values()
            if (why := _why(lane))
        ]
        return Sheet([Table(columns, rows), *waiting], self.progress.notes)


class LineDisplay(_Display):
    """A line per model every few seconds, for output that is not a terminal."""

    interval = 5.0

    def __init__(self, progress: Progress, out: TextIO | None = None) -> None:
        super().__init__(progress)
        self._out = out or sys.stderr
        self._printed: dict[tuple[str, str], str] = {}
        self._notes = 0

    def show(self) -> None:
        for note in self.progress.notes[self._notes :]:
            print(f"note: {plain(note)}", file=self._out)
        self._notes = len(self.progress.notes)
        for key, lane in self.progress.lanes.items():
            why = f"  ({reason})" if (reason := _why(lane)) else ""
            counts = f"{_done(lane)}{why}  errors {lane.errors}  retries {lane.retries}"
            if self._printed.get(key) != counts:
                self._printed[key] = counts
                speed = f"{_rate(lane)}  left {_time_left(lane)}  tokens {lane.tokens}  cost {_cost(lane)}"
                print(f"{key[0]} {plain(lane.name)}: {counts}  {speed}", file=self._out, flush=True)


class Events(_Display):
    """JSON lines on standard output, for --json."""

    interval = 1.0

    def show(self) -> None:
        lanes = [
            {
                "step": step,
                "name": lane.name,
                "total": lane.total,
                "present": lane.present,
                "done": lane.done,
                "errors": lane.errors,
                "retries": lane.retries,
                "tokens": lane.tokens,
                "cost": None if lane.unpriced else lane.cost,
            }
            for (step, _), lane in self.progress.lanes.items()
        ]
        emit({"event": "progress", "step": self.progress.step, "lanes": lanes})

    def stopping(self) -> None:
        emit({"event": "stopping"})


DISPLAYS = {"none": Silent, "live": LiveDisplay, "lines": LineDisplay, "events": Events}


def watch(
    progress: Progress,
    run: Callable[[Stop], Awaitable[T]],
    display: Literal["none", "live", "lines", "events"] = "live",
) -> T:
    """Return what `run(stop)` gives, with a display of its progress meanwhile; SIGINT and SIGTERM
    ask it to stop."""

    async def run_watched() -> T:
        stop = Stop()
        loop = asyncio.get_running_loop()
        shown = DISPLAYS[display](progress)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.request)
        async with shown:
            stop.listen(shown.stopping)
            return await run(stop)

    return asyncio.run(run_watched())


def emit(event: Any) -> None:
    """Print a value for a program: one JSON document on one line."""
    print(plain_json(msgspec.json.encode(event).decode()), file=program_output(), flush=True)


def program_output() -> TextIO:
    """Return where `emit` prints: standard output, also while user code prints elsewhere."""
    return _for_programs or sys.stdout


_for_programs: TextIO | None = None


@contextmanager
def for_programs() -> Generator[None]:
    """Keep standard output for `emit`: what user code prints meanwhile goes to standard error."""
    global _for_programs
    _for_programs = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _for_programs = None


def _done(lane: LaneProgress) -> str:
    rows = lane.present + lane.done
    if lane.calls and not rows:
        return f"{lane.calls:,} calls"
    return f"{rows:,}" if lane.total is None else f"{rows:,}/{lane.total:,}"


def _why(lane: LaneProgress) -> str:
    return plain(lane.waiting())


def _cost(lane: LaneProgress) -> str:
    """Dollars so far and, while it runs, what it will come to at this rate."""
    if not lane.cost:
        return "unknown" if lane.unpriced else "–"
    shown = cost_text(lane.cost, lane.unpriced)
    rows = lane.total - lane.present if lane.total is not None else 0
    return (
        f"{shown} of {cost_text(lane.cost * rows / lane.done, 0)}"
        if lane.ended is None and lane.done < rows
        else shown
    )


def _rate(lane: LaneProgress) -> str:
    return f"{lane.rate():,.0f}/s" if lane.done else "–"


def _time_left(lane: LaneProgress) -> str:
    seconds = None if lane.ended else lane.seconds_left()
    if seconds is None:
        return "–"
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
