"""Counters that the executors write and that a display reads whenever it likes; nobody waits for anybody."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from assay.records import JsonObject

logger = logging.getLogger("assay")
# a program that wants the log adds its own; otherwise nothing is printed
logger.addHandler(logging.NullHandler())


Note = Callable[[str], None]  # hears what the user should read once


class LaneStatus(msgspec.Struct, kw_only=True):
    """What is told of a model, a task or a scorer; `cost` is None if it is not known."""

    total: int | None = None
    present: int = 0
    done: int = 0
    errors: int = 0
    retries: int = 0
    tokens: int = 0
    cost: float | None = 0.0


@dataclass
class LaneProgress:
    """One model, task or scorer: `total` is None where it cannot be known; `calls` are those inside rows."""

    name: str
    total: int | None = None
    done: int = 0
    present: int = 0
    errors: int = 0
    retries: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    waiting_until: float = 0.0
    why: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None

    def status(self) -> LaneStatus:
        own: JsonObject = {name: getattr(self, name) for name in LaneStatus.__struct_fields__}
        own["cost"] = None if self.unpriced else self.cost
        return LaneStatus(**own)

    def rate(self) -> float:
        """Rows per second of this run, rows that were already there not counted."""
        seconds = (self.ended or time.monotonic()) - self.started
        return self.done / seconds if seconds > 0 else 0.0

    def seconds_left(self) -> float | None:
        """Seconds to go at this rate, where that can be known."""
        rate = self.rate()
        if self.total is None or not rate:
            return None
        return max(0, self.total - self.present - self.done) / rate

    def waiting(self) -> str:
        """Why nothing moves, if nothing does."""
        if self.ended is not None and not self.why.startswith("stopped"):
            return ""
        if self.waiting_until > time.time():
            until = time.strftime("%H:%M:%S", time.localtime(self.waiting_until))
            return f"{self.why or 'waiting'} until {until}"
        return self.why


@dataclass
class Progress:
    """The whole run. `step` is run, evaluate or aggregate; lanes are listed in the order they began; `errors`
    are the reasons of errored rows, at the end."""

    step: str = ""
    lanes: dict[tuple[str, str], LaneProgress] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def begin(self, step: str) -> None:
        self.step = step
        logger.info("step %s begins", step)

    def lane(self, name: str) -> LaneProgress:
        return self.lanes.setdefault((self.step, name), LaneProgress(name))

    def of(self, step: str) -> list[LaneProgress]:
        return [lane for (owner, _), lane in [*self.lanes.items()] if owner == step]

    def spent(self) -> tuple[int, float | None]:
        """Tokens, and dollars where all prices are known."""
        lanes = self.lanes.values()
        cost = None if any(lane.unpriced for lane in lanes) else sum(lane.cost for lane in lanes)
        return sum(lane.tokens for lane in lanes), cost

    def waiting(self) -> str:
        waiting = {lane.name: why for lane in [*self.lanes.values()] if (why := lane.waiting())}
        return "; ".join(f"{name}: {why}" for name, why in waiting.items())

    def note(self, text: str) -> None:
        """Something the user should read once: rows set aside, lines rejected, a dataset that changed."""
        self.notes.append(text)
        logger.warning(text)
