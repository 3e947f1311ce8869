"""Stopping: a request gives what is in flight a grace period, a second one does not; failures end the others."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from assay.engine.calls.stop import Stop, finish
from tests.support import VirtualClock, in_virtual_time


def finished(
    *workers: Coroutine[Any, Any, None], at: Sequence[float] = (), grace: float = 10.0
) -> float:
    """Seconds until `finish` returned, with requests to stop at these moments."""

    async def go(clock: VirtualClock) -> float:
        stop = Stop()
        assert not stop.requested
        for moment in at:
            asyncio.get_running_loop().call_later(moment, stop.request)
        begin = clock.now
        await finish([asyncio.create_task(worker) for worker in workers], stop, grace)
        return clock.now - begin

    return in_virtual_time(go)


async def work(seconds: float, done: list[float]) -> None:
    await asyncio.sleep(seconds)
    done.append(seconds)


async def fail(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise ZeroDivisionError


def test_without_a_request_it_waits_for_all() -> None:
    done: list[float] = []
    assert finished(work(3, done), work(100, done)) == pytest.approx(100)
    assert done == [3, 100]


def test_a_request_gives_a_grace_period() -> None:
    done: list[float] = []
    assert finished(work(8, done), work(100, done), at=[5]) == pytest.approx(15, abs=0.2)
    assert done == [8]


def test_who_is_done_in_time_is_not_waited_for() -> None:
    done: list[float] = []
    assert finished(work(6, done), at=[5]) == pytest.approx(6, abs=0.2)
    assert done == [6]


def test_a_second_request_ends_the_grace_period() -> None:
    done: list[float] = []
    assert finished(work(8, done), at=[5, 6]) == pytest.approx(6, abs=0.2)
    assert done == []


@pytest.mark.parametrize("at", [[], [1]], ids=["running", "stopping"])
def test_the_first_failure_ends_the_others_and_is_raised(at: list[float]) -> None:
    done: list[float] = []
    with pytest.raises(ZeroDivisionError):
        finished(fail(2), work(100, done), at=at)
    assert done == []
