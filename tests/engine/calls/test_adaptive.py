"""The concurrency controller, inside its lane: against simulated servers in virtual time, and against a real one."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.engine.calls.adaptive import Adaptive
from assay.engine.calls.lanes import Lane
from assay.engine.calls.progress import LaneProgress
from assay.errors import TransientError
from assay.interfaces import Completion, Limits, Request
from assay.server import Options, running, stats
from tests.support import VirtualClock, in_virtual_time

CEILING = 64


class Server:
    """Takes `capacity` calls at a time and refuses the others at once; refuses a share `rate` of the rest too."""

    name = "server"
    identity: dict[str, Any] = {}

    def __init__(
        self, capacity: int, *, rate: float = 0.0, retry_after: float | None = None, seed: int = 0
    ) -> None:
        self.capacity = capacity
        self.rate = rate
        self.retry_after = retry_after
        self.random = random.Random(seed)
        self.in_flight = self.calls = self.refused = 0

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        if self.in_flight >= self.capacity or self.random.random() < self.rate:
            self.refused += 1
            await asyncio.sleep(0.002)
            raise TransientError("too many requests", overload=True, retry_after=self.retry_after)
        self.in_flight += 1
        await asyncio.sleep(0.5 * self.random.uniform(0.8, 1.2))
        self.in_flight -= 1
        return Completion()

    async def close(self) -> None: ...


def run(
    server: Server, calls: int, capacities: dict[float, int] | None = None
) -> list[tuple[float, float]]:
    """(when, limit) at the end of each call; `capacities` are set at these seconds."""

    async def go(clock: VirtualClock) -> list[tuple[float, float]]:
        lane = Lane("server", Limits(CEILING), LaneProgress("server"))
        lane._random.seed(0)
        ends: list[tuple[float, float]] = []
        left = iter(range(calls))
        begin = clock.now
        for seconds, capacity in (capacities or {}).items():
            asyncio.get_running_loop().call_later(seconds, setattr, server, "capacity", capacity)

        async def work() -> None:
            for _ in left:
                await lane.send(server, Request([]))
                ends.append((clock.now - begin, lane.adaptive.limit))

        await asyncio.gather(*(work() for _ in range(CEILING)))
        return ends

    return in_virtual_time(go)


def rate(ends: list[tuple[float, float]], begin: float, end: float) -> float:
    """Calls in flight that the throughput between two moments amounts to."""
    return 0.5 * sum(begin <= when < end for when, _ in ends) / (end - begin)


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("capacity", [1, 4, 7, 16, 23, 40, 60, 64])
def test_fixed_capacity(capacity: int, retry_after: float | None) -> None:
    server = Server(capacity, retry_after=retry_after)
    calls = 60 * capacity + 600
    ends = run(server, calls)
    best = calls * 0.5 / capacity
    assert ends[-1][0] < best / 0.8
    assert server.refused < 0.05 * server.calls


@pytest.mark.parametrize("share", [0.1, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_refusals_at_random_do_not_slow_down(share: float, seed: int) -> None:
    ends = run(Server(10**9, rate=share, seed=seed), 2000)
    limits = [limit for _, limit in ends]
    assert sum(limits) / len(limits) > CEILING / 2
    assert min(limits[-1000:]) > CEILING / 2


@pytest.mark.parametrize(("before", "less"), [(40, 8), (30, 20), (60, 6)])
def test_capacity_that_drops_and_comes_back(before: int, less: int) -> None:
    server = Server(before)
    ends = run(server, 240 * before + 100 * less, {50: less, 100: before})
    assert rate(ends, 20, 50) > 0.9 * before
    assert rate(ends, 60, 100) > 0.8 * less
    assert rate(ends, 130, 160) > 0.9 * before
    assert server.refused < 0.05 * server.calls


def test_capacity_that_grows_is_found() -> None:
    ends = run(Server(5), 6000, {30: 50})
    assert rate(ends, 60, 100) > 45


def test_a_limit_that_nobody_reached_does_not_grow() -> None:
    adaptive = Adaptive(1000)
    for _ in range(500):
        adaptive.end(adaptive.begin(3), False)
    assert adaptive.limit == Adaptive.START


@pytest.mark.parametrize("ceiling", [1, 3])
def test_the_ceiling_holds(ceiling: int) -> None:
    adaptive = Adaptive(ceiling)
    for _ in range(200):
        adaptive.end(adaptive.begin(ceiling), False)
    assert adaptive.limit == ceiling


def test_no_refusals_bring_it_below_one() -> None:
    adaptive = Adaptive(64)
    for _ in range(500):
        adaptive.end(adaptive.begin(1), True)
    assert adaptive.limit == 1


@pytest.mark.slow
def test_a_real_server_of_fixed_capacity(tmp_path: Path) -> None:
    """The best fixed setting, 16, against one that is found: the same run, the same server."""

    def seconds(folder: str, concurrency: int) -> float:
        config = {
            "dataset": str(tmp_path / "items.jsonl"),
            "models": [
                {"name": "m", "type": "openai", "endpoint": url, "max_concurrency": concurrency}
            ],
            "prompt_templates": {"plain": "What is {{question}}?"},
            "output_dir": str(tmp_path / folder),
        }
        began = time.monotonic()
        assay.run(config)
        return time.monotonic() - began

    (tmp_path / "items.jsonl").write_text(
        "".join(f'{{"question": "{i} + 1"}}\n' for i in range(1600))
    )
    with running(Options(capacity=16, latency_ms=20, retry_after=0.05)) as url:
        fixed = seconds("fixed", 16)
        before = stats(url)
        assert before["statuses"].get("429", 0) == 0
        found = seconds("found", 64)
        after = stats(url)
    refused = after["statuses"].get("429", 0)
    assert 0 < refused < 0.05 * (after["requests"] - before["requests"])
    assert found < fixed / 0.8
