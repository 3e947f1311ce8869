"""Lanes in virtual time: what is tried again and when, what gives up, what stops everybody."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from assay.engine.calls.lanes import ACCIDENT, BACKOFF, OVERLOAD_TRIES, PATIENCE, Lane, Lanes
from assay.engine.calls.progress import LaneProgress
from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.interfaces import Completion, Limits, Request
from tests.support import VirtualClock, in_virtual_time


class Scripted:
    """A model that does what its script says, call by call; the last entry goes on for ever."""

    name = "m"
    identity: dict[str, Any] = {}

    def __init__(self, *script: CallError | BaseException | float) -> None:
        self.script = list(script)
        self.calls = 0
        self.at: list[float] = []

    async def complete(self, request: Request) -> Completion:
        self.at.append(asyncio.get_running_loop().time())
        step = self.script[min(self.calls, len(self.script) - 1)]
        self.calls += 1
        if isinstance(step, BaseException):
            raise step
        await asyncio.sleep(step)
        return Completion(text=str(self.calls))

    async def close(self) -> None: ...


def lane_of(concurrency: int = 4, retries: int = 3) -> Lane:
    return Lane("m", Limits(concurrency, 300, retries), LaneProgress("m"))


def send(model: Scripted, lane: Lane | None = None, timeout: float = 300.0) -> Any:
    """The answer's text, or the error that came instead."""
    own = lane or lane_of()

    async def go(clock: VirtualClock) -> Any:
        try:
            return (await own.send(model, Request([], timeout=timeout))).text
        except CallError as error:
            return error

    return in_virtual_time(go)


def overload(retry_after: float | None = None) -> TransientError:
    return TransientError("too many", overload=True, retry_after=retry_after)


def test_transient_errors_are_tried_again() -> None:
    model, lane = Scripted(TransientError("500"), TransientError("500"), 0.1), lane_of()
    assert send(model, lane) == "3"
    assert lane.progress.retries == 2
    first, second, third = model.at
    assert BACKOFF / 2 <= second - first <= BACKOFF
    assert BACKOFF <= third - second <= 2 * BACKOFF


def test_accidents_of_a_healthy_server_are_tried_again_soon() -> None:
    failures = [TransientError("500")] * 6
    lane = lane_of(retries=9)

    async def go(clock: VirtualClock) -> float:
        await lane.send(Scripted(0.0), Request([]))
        model, began = Scripted(*failures, 0.0), clock.now
        await lane.send(model, Request([]))
        return clock.now - began

    assert in_virtual_time(go) <= 6 * ACCIDENT


@pytest.mark.parametrize("retries", [0, 2])
def test_max_retries(retries: int) -> None:
    model = Scripted(TransientError("500"))
    assert send(model, lane_of(retries=retries)).what == "500"
    assert model.calls == retries + 1


def test_overload_has_tries_of_its_own() -> None:
    model = Scripted(overload())
    assert send(model, lane_of(retries=0)).kind == "transient"
    assert model.calls == OVERLOAD_TRIES + 1


def test_permanent_errors_are_not_tried_again() -> None:
    model = Scripted(PermanentError("400"))
    assert send(model).kind == "permanent"
    assert model.calls == 1


def test_any_other_exception_is_permanent() -> None:
    error = send(Scripted(ZeroDivisionError("x")))
    assert isinstance(error, PermanentError)
    assert error.what == "ZeroDivisionError: x (test_lanes.py, line 32: raise step)"


def test_a_model_that_forgets_the_time_is_reminded() -> None:
    model = Scripted(1e6, 0.1)
    assert send(model, timeout=10) == "2"
    assert model.at[1] - model.at[0] > 15


def test_retry_after_pauses_the_whole_lane() -> None:
    model, lane = Scripted(overload(60.0), 0.1), lane_of()

    async def go(clock: VirtualClock) -> None:
        first = asyncio.create_task(lane.send(model, Request([])))
        await asyncio.sleep(1)
        await asyncio.gather(first, lane.send(model, Request([])))

    in_virtual_time(go)
    assert [at - model.at[0] >= 60 for at in model.at] == [False, True, True]
    assert lane.progress.waiting_until >= model.at[0] + 60


def test_a_server_that_nobody_reaches_stops_the_lane() -> None:
    model, lane = Scripted(TransientError("connection refused", unreachable=True)), lane_of()
    error = send(model, lane)
    assert isinstance(error, LaneError)
    assert "does not answer" in error.what
    assert lane.stopped is error
    assert send(model, lane) is error
    assert PATIENCE <= model.at[-1] - model.at[0] <= 3 * PATIENCE


def test_a_server_that_answered_others_meanwhile_does_not() -> None:
    unreachable = TransientError("reset", unreachable=True)
    model, other, lane = Scripted(unreachable), Scripted(0.3), lane_of()

    async def go(clock: VirtualClock) -> Any:
        results = await asyncio.gather(
            lane.send(model, Request([])), lane.send(other, Request([])), return_exceptions=True
        )
        return results[0]

    assert in_virtual_time(go) is unreachable
    assert lane.stopped is None


def test_a_lane_error_wakes_everybody_who_waits() -> None:
    stopped = LaneError("no such model")
    lane = lane_of(concurrency=1)

    class Late(Scripted):
        async def complete(self, request: Request) -> Completion:
            await asyncio.sleep(1)
            return await super().complete(request)

    model = Late(stopped)

    async def go(clock: VirtualClock) -> list[Any]:
        calls: list[Awaitable[Any]] = [lane.send(model, Request([])) for _ in range(5)]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert in_virtual_time(go) == [stopped] * 5
    assert model.calls == 1


@pytest.mark.parametrize("cancelled", [0, 1], ids=["in flight", "waiting"])
def test_cancellation_gives_the_place_back(cancelled: int) -> None:
    lane, model = lane_of(concurrency=1), Scripted(10.0)

    async def go(clock: VirtualClock) -> list[Any]:
        tasks = [asyncio.create_task(lane.send(model, Request([]))) for _ in range(3)]
        await asyncio.sleep(1)
        tasks[cancelled].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = in_virtual_time(go)
    assert [isinstance(result, Completion) for result in results].count(True) == 2
    assert lane.pace.in_flight == 0


def test_a_place_given_to_somebody_just_cancelled_goes_on() -> None:
    tasks: list[asyncio.Task[Completion]] = []

    class Cancelling(Scripted):
        async def complete(self, request: Request) -> Completion:
            completion = await super().complete(request)
            if self.calls == 1:  # the second task is woken just before this cancels it
                asyncio.get_running_loop().call_soon(tasks[1].cancel)
            return completion

    lane, model = lane_of(concurrency=1), Cancelling(10.0)

    async def go(clock: VirtualClock) -> str:
        tasks.extend(asyncio.create_task(lane.send(model, Request([]))) for _ in range(3))
        return (await tasks[2]).text

    assert in_virtual_time(go) == "2"
    assert tasks[1].cancelled()


@pytest.mark.parametrize("concurrency", [1, 3, 20])
def test_no_more_in_flight_than_allowed(concurrency: int) -> None:
    most = at_work = 0

    class Counting(Scripted):
        async def complete(self, request: Request) -> Completion:
            nonlocal most, at_work
            at_work += 1
            most = max(most, at_work)
            completion = await super().complete(request)
            at_work -= 1
            return completion

    lane, model = lane_of(concurrency), Counting(1.0)

    async def go(clock: VirtualClock) -> None:
        await asyncio.gather(*(lane.send(model, Request([])) for _ in range(100)))

    in_virtual_time(go)
    assert most == concurrency


def test_each_model_has_a_lane_with_its_limits() -> None:
    progress: Callable[[str], LaneProgress] = LaneProgress
    lanes = Lanes({"a": Limits(3)}, Limits(5), progress)
    assert (lanes["a"].limits.max_concurrency, lanes["b"].limits.max_concurrency) == (3, 5)
    assert lanes["a"] is lanes["a"]
    assert [lane.name for lane in lanes] == ["a", "b"]
