"""Threads for user code: what hangs costs itself, and nothing that user code raises ends the run."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from assay.threads import Threads
from tests.support import wait_for


def mapped(
    calls: list[Callable[[], Any]], timeout: float | None = None, size: int = 2
) -> list[Any]:
    async def go() -> list[Any]:
        threads = Threads(size)
        try:
            return await threads.map(calls, timeout)
        finally:
            threads.close()

    return asyncio.run(go())


def test_results_are_in_order() -> None:
    assert mapped([lambda number=number: number * number for number in range(50)]) == [
        (n * n, None) for n in range(50)
    ]


def test_whatever_user_code_raises_is_its_result() -> None:
    def leave() -> None:
        raise SystemExit(3)

    def interrupt() -> None:
        raise KeyboardInterrupt

    def stop() -> None:
        raise StopIteration

    results = mapped([leave, interrupt, stop, lambda: "after"])
    assert [type(error).__name__ for _, error in results] == [
        "SystemExit",
        "KeyboardInterrupt",
        "StopIteration",
        "NoneType",
    ]
    assert results[-1][0] == "after"


def test_a_hanging_call_costs_itself_only() -> None:
    release = threading.Event()
    before = set(threading.enumerate())
    made: list[str] = []

    def hang() -> None:
        release.wait()
        made.append("hung")

    calls = [
        lambda: made.append("first"),
        hang,
        lambda: made.append("second"),
        hang,
        lambda: made.append("third"),
    ]
    results = mapped(calls, timeout=0.05, size=1)
    assert [type(error) for _, error in results] == [
        type(None),
        TimeoutError,
        type(None),
        TimeoutError,
        type(None),
    ]
    assert made == ["first", "second", "third"]
    release.set()
    wait_for(lambda: set(threading.enumerate()) <= before)
    assert made == ["first", "second", "third"]  # what was left behind went no further


def test_the_timeout_is_each_calls_own() -> None:
    results = mapped([lambda: time.sleep(0.03)] * 5, timeout=0.1)
    assert [error for _, error in results] == [None] * 5


def test_a_call_returns_or_raises() -> None:
    async def go() -> None:
        threads = Threads(1)
        assert await threads.call(lambda: 7) == 7
        with pytest.raises(KeyError):
            await threads.call(lambda: {}["x"])
        with pytest.raises(RuntimeError, match="SystemExit: 3"):
            await threads.call(lambda: (_ for _ in ()).throw(SystemExit(3)))
        release = threading.Event()
        with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"):
            await threads.call(release.wait, 0.05)
        release.set()
        assert await threads.call(lambda: 8) == 8
        threads.close()

    asyncio.run(go())


def test_no_more_than_its_size_at_work() -> None:
    at_work = most = 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.005)
        with lock:
            at_work -= 1

    async def go() -> None:
        threads = Threads(3)
        await asyncio.gather(*(threads.call(work) for _ in range(12)))
        threads.close()

    asyncio.run(go())
    assert most == 3


def test_a_cancelled_call_gives_its_place_back() -> None:
    async def go() -> None:
        threads = Threads(1)
        release = threading.Event()
        waiting = asyncio.create_task(threads.call(release.wait))
        await asyncio.sleep(0.01)
        waiting.cancel()
        assert await asyncio.wait_for(threads.call(lambda: "mine"), 5) == "mine"
        release.set()
        threads.close()

    asyncio.run(go())


def test_no_thread_outlives_its_work() -> None:
    def alive() -> int:
        return sum(thread.name == "assay-user-code" for thread in threading.enumerate())

    before = alive()  # of other tests in this process
    mapped([lambda: None] * 10)
    wait_for(lambda: alive() <= before)


def test_what_works_beyond_its_time_is_ended() -> None:
    """The thread itself ends, and burns no more CPU; `except Exception` does not keep it."""

    def burn() -> None:
        while True:
            try:
                sum(range(100))
            except Exception:  # as user code does
                pass

    before = set(threading.enumerate())
    (result, after) = mapped([burn, lambda: "after"], timeout=0.1)
    assert isinstance(result[1], TimeoutError)
    assert after == ("after", None)
    wait_for(lambda: set(threading.enumerate()) <= before)


def test_what_ends_a_call_reaches_no_other() -> None:
    """Calls that end just as they are given up on, or are cancelled, in threads that others use next."""

    def work(seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass

    async def go() -> list[BaseException]:
        threads, errors = Threads(3), list[BaseException]()

        async def timed(number: int) -> None:
            for turn in range(25):
                calls = [partial(work, (number + turn + call) % 5 * 0.005) for call in range(3)]
                errors.extend(
                    error for _, error in await threads.map(calls, 0.015) if error is not None
                )

        async def cancelled() -> None:
            for turn in range(50):
                calls = asyncio.create_task(threads.map([partial(work, 0.002)] * 2))
                await asyncio.sleep(turn % 10 * 0.001)
                calls.cancel()
                await asyncio.gather(calls, return_exceptions=True)

        await asyncio.gather(timed(0), timed(1), cancelled())
        threads.close()
        return errors

    assert {type(error) for error in asyncio.run(go())} <= {TimeoutError}


def test_what_never_began_does_not_begin() -> None:
    ran: list[int] = []

    async def go() -> None:
        threads = Threads(1)
        chunk = asyncio.create_task(threads.call(lambda: time.sleep(0.05)))
        await asyncio.sleep(0.01)
        chunk.cancel()
        await asyncio.gather(chunk, return_exceptions=True)
        waiting = asyncio.create_task(threads.call(lambda: ran.append(1)))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        threads.close()

    asyncio.run(go())
    assert not ran
