"""How users' functions are called: in threads until they proved quick, directly from then on."""

import asyncio
import threading
from typing import Any

import pytest

from assay.formats.sygra.graph import called
from assay.formats.sygra.graph.called import UserFunction
from tests.formats.sygra.graph.graphs import Quiet


class Clock:
    """Says how long calls take."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(called, "time", made)
    return made


def lasting(clock: Clock, *seconds: float) -> tuple[UserFunction, Quiet, list[Any]]:
    """What calls that take so long saw: the thread they were in, and the running loop."""
    seen: list[Any] = []
    waiting = list(seconds)

    def helper(config: Any, state: Any) -> Any:
        clock.now += waiting.pop(0)
        seen.append(threading.current_thread() is threading.main_thread())
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return {}

    helper.__module__ = "tasks.mine"
    function, context = UserFunction(helper, "helper", owner="node 'a'", where=""), Quiet()

    async def go() -> None:
        for _ in seconds:
            await function(context, {}, {})  # type: ignore[arg-type]
            asyncio.get_running_loop()

    asyncio.run(go())
    return function, context, seen


def test_quick_functions_leave_the_threads(clock: Clock) -> None:
    # the first call, which may import things, is not judged
    _, context, direct = lasting(clock, 0.2, *[0.0001] * 6)
    assert (context.threads, direct) == (4, [False] * 4 + [True] * 3)


def test_slow_functions_stay_in_them(clock: Clock) -> None:
    _, context, _ = lasting(clock, *[0.002] * 8)
    assert context.threads == 8


def test_one_that_becomes_slow_goes_back_for_good(clock: Clock) -> None:
    function, context, _ = lasting(clock, *[0.0001] * 5, 0.06, *[0.0001] * 10)
    assert (context.threads, function.direct) == (14, False)
    function, context, _ = lasting(clock, *[0.0001] * 5, 0.002, 0.002, 0.0001, 0.002, *[0.0001] * 5)
    assert (context.threads, function.direct) == (9, False)


def test_a_function_called_directly_may_run_a_loop_of_its_own() -> None:
    async def nothing() -> int:
        return 3

    def helper(config: Any, state: Any) -> Any:
        return {"n": asyncio.run(nothing())}

    helper.__module__ = "tasks.mine"
    function = UserFunction(helper, "helper", owner="", where="")
    function._quick = called.TRIALS

    async def go() -> Any:
        return await function(Quiet(), {}, {})  # type: ignore[arg-type]

    assert asyncio.run(go()) == {"n": 3}


def test_our_own_and_async_functions_are_called_directly() -> None:
    def ours(config: Any, state: Any) -> Any:
        return {}

    async def theirs(config: Any, state: Any) -> Any:
        return {}

    ours.__module__ = "assay.formats.sygra.eval_utils"
    for one in (ours, theirs):
        context = Quiet()
        function = UserFunction(one, "f", owner="", where="")
        asyncio.run(function(context, {}, {}))  # type: ignore[arg-type]
        assert context.threads == 0


@pytest.mark.parametrize(
    ("target", "arity"),
    [
        (lambda a: a, 1),
        (lambda a, b: a, 2),
        (lambda *a: a, 2),
        (lambda a, b, *, c=1: a, 2),
        (type("A", (), {"apply": staticmethod(lambda a: a)}), 1),
        (type("A", (), {"apply": classmethod(lambda cls, a, b: a)}), 2),
        (type("A", (), {"apply": eval("lambda self, a: a")}), 1),
        (type("A", (), {"apply": eval("lambda config, state: state")}), 2),
    ],
)
def test_how_many_arguments_a_helper_takes(target: Any, arity: int) -> None:
    function = UserFunction(target, "f", owner="", where="")
    assert function.arity == arity
    assert function.function(*range(arity)) is not None
