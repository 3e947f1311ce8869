"""Lanes: one per model. A lane bounds the calls in flight, retries what is worth it, and stops what is hopeless.

A server that answers nobody stops its lane instead of filling the run with error rows.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.engine.calls.adaptive import Adaptive
from assay.engine.calls.budget import Budget, expected_tokens
from assay.engine.calls.pace import Pace
from assay.engine.calls.progress import LaneProgress
from assay.engine.calls.usage import cost_of
from assay.sdk import (
    CallError,
    Completion,
    LaneError,
    Limits,
    Model,
    PermanentError,
    Request,
    RunFailed,
    TransientError,
)
from assay.text.likelihoods import WHO_HAS_THEM
from assay.usercode import raised

BACKOFF = 0.25
ACCIDENT = 0.05
LONGEST_BACKOFF = 30.0
OVERLOAD_TRIES = 20
HEALTHY = 1.0  # seconds since a success: a failure is then an accident, and waiting longer each time helps nobody
# seconds that a server may be silent, whatever the number of tries, before its lane stops
PATIENCE = 3.0
# a probe that fails costs a pause: at most one part in thirty of the time
PAUSES_BETWEEN_PROBES = 30
# seconds after which one who waits for a limit looks whether the share of it has changed
LOOK = 1.0


class Lane:
    """The limits that all calls of one model share."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        progress: LaneProgress,
        budget: Budget | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.name = name
        self.limits = limits
        self.progress = progress
        self.budget = budget
        self.pace = pace or Pace(limits)
        self.adaptive = Adaptive(limits.max_concurrency)
        self.stopped: LaneError | None = None
        self._halt = asyncio.Event()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._probe_from = 0.0
        self._last_answer = self._last_success = float("-inf")
        self._random = random.Random()

    async def send(self, model: Model, request: Request) -> Completion:
        """One answer, after as many tries as its errors deserve, within the budget."""
        if self.budget is None:
            return self._with_cost(await self._send(model, request))
        reserved = await self.budget.reserve(request, self.limits.price)
        completion = None
        try:
            completion = self._with_cost(await self._send(model, request))
            return completion
        finally:
            self.budget.settle(reserved, self.limits.price, completion)

    def _with_cost(self, completion: Completion) -> Completion:
        completion.cost = cost_of(self.limits.price, completion)
        if completion.cost is None:
            self.progress.unpriced += 1
        else:
            self.progress.cost += completion.cost
        return completion

    async def _send(self, model: Model, request: Request) -> Completion:
        failures = overloads = 0
        first_try = time.monotonic()
        while True:
            try:
                return await self._try(model, request)
            except TransientError as error:
                refused = error.overload and not error.timed_out
                failures += not refused
                overloads += refused
                self._give_up_or(error, failures, overloads, first_try)
                self.progress.retries += 1
                await self._back_off(error, failures + overloads)

    async def _try(self, model: Model, request: Request) -> Completion:
        expected = await self._pace(request)
        await self._enter()
        token = self.adaptive.begin(self.pace.in_flight)
        overloaded, pause = False, None
        try:
            ask = model.complete if type(request) is Request else _likelihood(model)
            if getattr(model, "keeps_time", False):
                completion = await ask(request)
            else:
                async with asyncio.timeout(request.timeout + 5):
                    completion = await ask(request)
            self._last_answer = self._last_success = time.monotonic()
            if self.pace.tokens is not None and completion.total_tokens is not None:
                self.pace.tokens.give_back(expected - completion.total_tokens)
            self.progress.why = ""
            return completion
        except TimeoutError:
            overloaded = True
            what = f"no answer within {request.timeout:g} s"
            raise TransientError(what, overload=True, timed_out=True) from None
        except TransientError as error:
            overloaded, pause = error.overload, error.retry_after
            if not error.unreachable and not error.timed_out:
                self._last_answer = time.monotonic()
            raise
        except LaneError as error:
            self.stop(error)
            raise
        except CallError:
            self._last_answer = time.monotonic()
            raise
        except Exception as error:
            raise PermanentError(raised(error)) from error
        finally:
            self.adaptive.end(
                token, overloaded, cheap=not pause and time.monotonic() >= self._probe_from
            )
            self._leave()

    def stop(self, error: LaneError) -> None:
        """No further call can succeed: wake everybody who waits for a place."""
        self.stopped = self.stopped or error
        self._halt.set()
        self.progress.why = f"stopped: {error.what}"
        self._wake(len(self._waiting))

    def _give_up_or(
        self, error: TransientError, failures: int, overloads: int, first_try: float
    ) -> None:
        if self.stopped is not None:
            raise self.stopped
        if failures <= self.limits.max_retries and overloads <= max(
            OVERLOAD_TRIES, self.limits.max_retries
        ):
            return
        silent = (error.unreachable or error.timed_out) and self._last_answer < first_try
        if silent and time.monotonic() - first_try < PATIENCE:
            return
        if silent:
            stop = LaneError(
                f"the server of {self.name!r} does not answer: {error.what}",
                where=error.where,
                fix="start the server or mend its address; the same command resumes where it stopped",
            )
            self.stop(stop)
            raise stop
        raise error

    async def _back_off(self, error: TransientError, tries: int) -> None:
        if error.retry_after is not None:
            self._paused_until = max(self._paused_until, time.monotonic() + error.retry_after)
            self._probe_from = self._paused_until + PAUSES_BETWEEN_PROBES * error.retry_after
            self._wait_until(time.time() + error.retry_after, "the server asks to wait")
        else:
            self.progress.why = f"trying again: {error.what}"
        delay = min(LONGEST_BACKOFF, BACKOFF * 2 ** (tries - 1))
        if time.monotonic() - self._last_success < HEALTHY:
            delay = ACCIDENT * 2 ** min(tries - 1, 2) if error.overload else ACCIDENT
        await self._sleep(delay * self._random.uniform(0.5, 1.0))

    async def _pace(self, request: Request) -> int:
        """Wait as long as the requests and tokens per minute ask for; the tokens that were taken."""
        if not self.pace.is_limited:
            return 0
        expected = expected_tokens(request)
        places = self.pace.take(expected)
        while (wait := self.pace.wait(places)) > 0:
            self._wait_until(time.time() + min(wait, LOOK), "within its limits per minute")
            await self._sleep(min(wait, LOOK))
        return expected

    async def _sleep(self, seconds: float) -> None:
        """Wait, unless the lane stops: then nothing is worth waiting for."""
        try:
            async with asyncio.timeout(seconds):
                await self._halt.wait()
        except TimeoutError:
            return
        assert self.stopped is not None
        raise self.stopped

    def _wait_until(self, when: float, why: str) -> None:
        self.progress.waiting_until = max(self.progress.waiting_until, when)
        self.progress.why = why

    async def _enter(self) -> None:
        while True:
            if self.stopped is not None:
                raise self.stopped
            pause = self._paused_until - time.monotonic() if self._paused_until else 0.0
            if pause > 0:
                await self._sleep(pause)
                continue
            places = self.pace.places
            if self.pace.in_flight < min(places, int(self.adaptive.limit)):
                self.pace.in_flight += 1
                return
            if not places and not self.pace.in_flight:
                self._wait_until(time.time() + LOOK, "other workers have all places of its limits")
                await self._sleep(LOOK)
                continue
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._wake(1)
                raise

    def _leave(self) -> None:
        self.pace.in_flight -= 1
        self._wake(max(1, min(self.pace.places, int(self.adaptive.limit)) - self.pace.in_flight))

    def _wake(self, count: int) -> None:
        while count > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                count -= 1


def _likelihood(model: Model) -> Callable[[Any], Awaitable[Completion]]:
    """The second kind of request, of models that have it."""
    ask = getattr(model, "likelihood", None)
    if ask is None:
        raise LaneError(f"the model {model.name!r} gives no likelihoods of texts", fix=WHO_HAS_THEM)
    return ask


Paces = Callable[[str, Limits], Pace | None]  # by lane: those that are shared with other workers


@dataclass
class Lanes:
    """All lanes of a run, made when they are first asked for."""

    limits: Mapping[str, Limits]
    default: Limits
    progress: Callable[[str], LaneProgress]
    budget: Budget | None = None
    paces: Paces | None = None

    def __post_init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._stopped: LaneError | None = None

    def __getitem__(self, name: str) -> Lane:
        if name not in self._lanes:
            limits = self.limits.get(name, self.default)
            pace = self.paces(name, limits) if self.paces is not None else None
            self._lanes[name] = Lane(name, limits, self.progress(name), self.budget, pace)
            if self._stopped is not None:
                self._lanes[name].stop(self._stopped)
        return self._lanes[name]

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes.values())

    def stop(self, error: LaneError) -> None:
        """No lane sends anything more, nor one that is made later."""
        self._stopped = self._stopped or error
        for lane in self:
            lane.stop(error)

    def raise_if_stopped(self) -> None:
        """Say why not everything could be done: a budget used up, or a lane that had to stop."""
        if self.budget is not None and self.budget.exhausted is not None:
            raise self.budget.exhausted
        for lane in self:
            if lane.stopped is not None:
                raise RunFailed(lane.stopped.what, where=lane.stopped.where, fix=lane.stopped.fix)

    def send(self, model: Model, request: Request) -> Awaitable[Completion]:
        return self[model.name].send(model, request)
