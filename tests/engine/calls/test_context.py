"""The door to models, threads, seeds and traces, as tasks and scorers see it."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from assay.engine.calls.context import RowContext, Surroundings
from assay.engine.calls.lanes import Lanes
from assay.engine.calls.log import CallLog
from assay.engine.calls.progress import LaneProgress
from assay.errors import UserError
from assay.interfaces import Limits
from assay.models.python import python
from assay.store.memory_log import MemoryLog
from assay.threads import Threads

ASK = [{"role": "user", "content": "hello"}]


class Room:
    """Logs that outlive a step, and contexts for rows of a new one."""

    def __init__(self) -> None:
        self.calls, self.traces = MemoryLog(), MemoryLog()
        self.asked: list[str] = []
        self.models = {name: python(name, function=self._answer) for name in ("one", "two")}

    def _answer(self, request: Any) -> str:
        self.asked.append(request.messages[0]["content"])
        return f"{len(self.asked)} {request.seed}"

    def enter(self, use: Callable[[Callable[..., RowContext]], Coroutine[Any, Any, Any]]) -> Any:
        async def go() -> Any:
            threads = Threads(4)
            lanes = Lanes({}, Limits(), LaneProgress)
            around = Surroundings(
                lanes, threads, self.models, lambda: CallLog(self.calls), self.traces, 5.0
            )

            def row(owner: bytes = b"row", model: str = "one") -> RowContext:
                return RowContext(
                    around,
                    item_id="i",
                    sample_index=0,
                    seed=100,
                    owner=owner,
                    name="task",
                    model=model,
                )

            try:
                return await use(row)
            finally:
                threads.close()

        return asyncio.run(go())


@pytest.fixture
def room() -> Room:
    return Room()


def test_equal_calls_of_one_row_are_two_samples_and_both_are_remembered(room: Room) -> None:
    async def twice(row: Callable[..., RowContext]) -> list[str]:
        context = row()
        return [(await context.complete(ASK)).text, (await context.complete(ASK)).text]

    first, second = answers = room.enter(twice)
    assert first.split()[1] != second.split()[1]  # each has a seed of its own
    assert room.enter(twice) == answers
    assert len(room.asked) == 2


def test_two_owners_share_no_call(room: Room) -> None:
    async def two(row: Callable[..., RowContext]) -> None:
        await row(b"a").complete(ASK)
        await row(b"b").complete(ASK)

    room.enter(two)
    assert len(room.asked) == 2


@pytest.mark.parametrize("change", [{"step": "review"}, {"model": "two"}, {"temperature": 1}])
def test_a_call_is_its_step_model_and_parameters(room: Room, change: dict[str, Any]) -> None:
    async def with_change(row: Callable[..., RowContext]) -> None:
        await row().complete(ASK, step="write", temperature=0)

    async def without(row: Callable[..., RowContext]) -> None:
        await row().complete(ASK, **{"step": "write", "temperature": 0, **change})

    room.enter(with_change)
    room.enter(without)
    assert len(room.asked) == 2


def test_side_by_side_calls_are_found_again_in_any_order(room: Room) -> None:
    async def first(row: Callable[..., RowContext]) -> None:
        context = row()
        await asyncio.gather(
            *(context.complete([{"role": "user", "content": text}]) for text in "abc")
        )

    async def other_way_round(row: Callable[..., RowContext]) -> None:
        context = row()
        await asyncio.gather(
            *(context.complete([{"role": "user", "content": text}]) for text in "cba")
        )

    room.enter(first)
    room.enter(other_way_round)
    assert sorted(room.asked) == ["a", "b", "c"]


def test_a_torn_call_is_made_again(room: Room) -> None:
    async def once(row: Callable[..., RowContext]) -> None:
        await row().complete(ASK)

    room.enter(once)
    (line,) = [line for _, line in room.calls.scan()]
    room.calls.replace([line[:40] + b"\n"])
    room.enter(once)
    assert len(room.asked) == 2


def test_from_a_thread(room: Room) -> None:
    async def in_thread(row: Callable[..., RowContext]) -> str:
        context = row()
        return await context.thread(lambda: context.complete_sync(ASK).text)

    assert room.enter(in_thread).startswith("1 ")
    assert len(list(room.calls.scan())) == 1


def test_complete_sync_does_not_wait_for_itself(room: Room) -> None:
    async def misused(row: Callable[..., RowContext]) -> None:
        row().complete_sync(ASK)

    with pytest.raises(UserError, match="would wait for itself"):
        room.enter(misused)


@pytest.mark.parametrize(
    ("named", "default", "what"),
    [("on", "", "unknown model 'on'"), (None, "", "does not say which model")],
)
def test_an_unknown_model_is_named(room: Room, named: str | None, default: str, what: str) -> None:
    async def call(row: Callable[..., RowContext]) -> None:
        await row(model=default).complete(ASK, model=named)

    with pytest.raises(UserError, match=what) as caught:
        room.enter(call)
    assert "one" in caught.value.fix


def test_spans_nest_and_branches_keep_their_own(room: Room) -> None:
    async def branches(row: Callable[..., RowContext]) -> None:
        context = row()

        async def branch(name: str, seconds: float) -> None:
            with context.span(name):
                await asyncio.sleep(seconds)
                with context.span(f"{name} inner"):
                    await asyncio.sleep(0.01)

        def in_thread() -> None:
            with context.span("thread") as data:
                data["odd"] = {(1, 2): object}

        with context.span("outer", why="test") as data:
            await asyncio.gather(branch("a", 0.005), branch("b", 0.0))
            await context.thread(in_thread)
            data["seen"] = 1
        with pytest.raises(KeyError), context.span("failing"):
            raise KeyError("x")
        context.write_trace(b"key")

    room.enter(branches)
    (line,) = [json.loads(line) for _, line in room.traces.scan()]
    spans = line["spans"]
    parents = {
        span["name"]: None if span["parent"] is None else spans[span["parent"]]["name"]
        for span in spans
    }
    assert parents == {
        "outer": None,
        "a": "outer",
        "b": "outer",
        "a inner": "a",
        "b inner": "b",
        "thread": "outer",
        "failing": None,
    }
    by_name = {span["name"]: span for span in spans}
    assert by_name["outer"]["data"] == {"why": "test", "seen": 1}
    assert by_name["failing"]["error"] == "KeyError: 'x'"
    assert all(span["end"] >= span["start"] for span in spans)
    assert (line["key"], line["item_id"], line["owner"]) == (b"key".hex(), "i", "task")


def test_no_spans_no_trace(room: Room) -> None:
    async def nothing(row: Callable[..., RowContext]) -> None:
        row().write_trace(b"key")

    room.enter(nothing)
    assert list(room.traces.scan()) == []
