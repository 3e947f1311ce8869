"""Limits and budget that workers share: what all of them use together, whatever happens to any of them."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.engine.calls.budget import Spending
from assay.engine.calls.pace import Bucket, Pace
from assay.engine.cluster.shares.ledger import WHOLE
from assay.engine.cluster.shares.shares import Shares
from assay.errors import StoreError
from assay.interfaces import Limits
from assay.store.shared.claims import Beat, Workers
from assay.store.shared.generations import Generation
from assay.store.shared.objects import Entry, Objects

LEASE = 30.0
PLACES = 4
TOKENS = 120


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Memory(Objects):
    """Objects in a dict; `before` is called with the name of each operation and may do anything meanwhile, `fate` says
    what becomes of a reply."""

    address = "memory"

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.before: Callable[[], None] = lambda: None
        self.fate: Callable[[], str] = lambda: "fine"
        self.operations = self.created = 0
        self.creating = ""

    def create(self, name: str, content: bytes) -> bool:
        self.creating = name
        self._begin()
        self.creating = ""
        fate = self.fate()
        if fate == "refused":
            raise StoreError("503 SlowDown")
        new = self.content.setdefault(name, content) is content
        self.created += new
        if fate == "timeout":
            raise StoreError("no reply")
        return new and fate != "lost"

    def read(self, name: str) -> bytes | None:
        self._begin()
        return self.content.get(name)

    def write(self, name: str, content: bytes) -> None:
        self._begin()
        if self.fate() == "refused":
            raise StoreError("503 SlowDown")
        self.content[name] = content

    def names(self, prefix: str) -> Iterator[Entry]:
        self._begin()
        return iter(
            [Entry(name, 0, "") for name in sorted(self.content) if name.startswith(prefix)]
        )

    def delete(self, name: str) -> None:
        self.content.pop(name, None)

    def _begin(self) -> None:
        self.operations += 1
        self.before()


class Worker:
    """What the engine does with a share, without an engine: calls that hold a place, and tokens that they cost."""

    def __init__(
        self, name: str, objects: Objects, clock: Clock, tokens: int | None = TOKENS, **more: Any
    ) -> None:
        workers = Workers(objects, "workers/0/", lease=LEASE, clock=clock.monotonic)
        limits = {"m": Limits(PLACES, requests_per_minute=600)}
        self.name = name
        self.clock = clock
        self.shares = Shares(
            Generation(),
            workers,
            limits,
            tokens=tokens,
            clock=clock.monotonic,
            sleep=lambda seconds: None,
            **more,
        )
        pace = self.shares.pace("m", limits["m"])
        assert pace is not None
        self.pace: Pace = pace

    def join(self) -> None:
        self.shares.join(Beat(worker=self.name))

    def spend(self, tokens: int) -> str:
        """A call, as a lane makes it: it needs a place, and room in the budget."""
        budget = self.shares.budget
        assert budget is not None
        if not self.pace.places:
            return "wait"
        verdict = "granted" if not budget._over(tokens, 0.0) else self.shares.ask((tokens, 0))
        if verdict == "granted" and self.pace.places:
            budget.spent.tokens += tokens
        return verdict

    @property
    def spent(self) -> int:
        assert self.shares.budget is not None
        return self.shares.budget.spent.tokens

    @property
    def used(self) -> float:
        """The share of the whole that it uses at this moment."""
        return self.shares._share if self.clock.now < self.shares._until else 0.0


class Cluster(RuleBasedStateMachine):
    """Any number of workers that join, beat, spend, freeze, die and come back, while replies are lost, the store
    refuses, and others act between any two operations of one."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.objects = Memory()
        self.workers: dict[str, Worker] = {}
        self.crashed: set[str] = set()
        self.excess: dict[
            str, int
        ] = {}  # what a worker had spent beyond what was counted for it when it was given up
        self.leaving: set[str] = set()
        self.given_up: set[str] = set()
        self.busy: set[str] = set()
        self.faults: list[str] = []
        self.intruders: list[
            tuple[int, int, str]
        ] = []  # after how many operations, how much later, who
        self.objects.before = self._intrude
        self.objects.fate = lambda: self.faults.pop() if self.faults else "fine"
        self.patch = mock.patch("assay.engine.calls.pace.time", self.clock)
        self.patch.start()

    def _intrude(self) -> None:
        """Between two operations of a worker another one has its turn, and time passes."""
        if self.intruders and self.intruders[-1][0] <= 0:
            _, seconds, name = self.intruders.pop()
            self.clock.now += seconds
            self._act(name, lambda worker: worker.shares.refresh())
        elif self.intruders:
            after, seconds, name = self.intruders.pop()
            self.intruders.append((after - 1, seconds, name))
        self.check()

    def _act(self, name: str, act: Callable[[Worker], object]) -> bool:
        """Whether the worker could do it."""
        if name not in self.workers or name in self.crashed or name in self.busy:
            return False
        self.busy.add(name)
        try:
            act(self.workers[name])
        except StoreError:
            return False
        finally:
            self.busy.discard(name)
        self.check()
        return True

    names = st.sampled_from("abcd")

    @initialize()
    def begin(self) -> None:
        self.join("a")

    @rule(name=names)
    def join(self, name: str) -> None:
        if name in self.workers or name in self.crashed:
            return
        self.workers[name] = Worker(name, self.objects, self.clock)
        self._act(name, Worker.join)

    @rule(
        turns=st.lists(
            st.tuples(st.sampled_from([0.0, 10.0, 10.0, 31.0]), names), min_size=1, max_size=8
        )
    )
    def beat(self, turns: list[tuple[float, str]]) -> None:
        for seconds, name in turns:
            self.clock.now += seconds
            self.check()
            self.refresh(name)

    def refresh(self, name: str) -> None:
        self._act(
            name,
            lambda worker: worker.shares.refresh() if worker.shares._beat.worker else worker.join(),
        )

    @rule(name=names, tokens=st.integers(1, 30))
    def spend(self, name: str, tokens: int) -> None:
        self._act(name, lambda worker: worker.shares._beat.worker and worker.spend(tokens))

    @rule(name=names)
    def crash(self, name: str) -> None:
        if name in self.workers and len(self.workers) - len(self.crashed) > 2:
            self.crashed.add(name)

    @rule(name=names)
    def leave(self, name: str) -> None:
        worker = self.workers.get(name)
        if (
            worker is not None
            and worker.shares._beat.worker
            and len(self.workers) - len(self.crashed) > 2
        ):
            self.leaving.add(name)
            if not self._act(name, lambda worker: worker.shares.leave()):
                self.leaving.discard(name)
            self.crashed.add(name)

    @rule(fate=st.lists(st.sampled_from(["lost", "refused", "timeout", "fine"]), max_size=3))
    def break_store(self, fate: list[str]) -> None:
        self.faults = fate

    @rule(
        others=st.lists(
            st.tuples(st.integers(0, 12), st.sampled_from([0, 5, 20, 31]), names), max_size=4
        )
    )
    def interleave(self, others: list[tuple[int, int, str]]) -> None:
        self.intruders = others

    @invariant()
    def check(self) -> None:
        living = [worker for name, worker in self.workers.items() if name not in self.crashed]
        assert sum(worker.used for worker in living) <= 1 + 1e-9
        assert sum(worker.pace.places for worker in living) <= PLACES
        state = max(
            (worker.shares.ledger for worker in self.workers.values()), key=lambda it: it.number
        ).state
        assert sum(member.held for member in state.members.values()) <= WHOLE
        for name in self.given_up - state.gone.keys():
            self.given_up.discard(name)
        for name in state.gone.keys() - self.given_up:
            # the bound: what it spent since its last beat, which nobody can know
            self.given_up.add(name)
            if name not in self.leaving:
                told = json.loads(self.objects.content[f"workers/0/{name}.json"])["tokens"]
                self.excess[name] = self.excess.get(name, 0) + self.workers[name].spent - told
        assert state.spent()[0] <= TOKENS + sum(self.excess.values())
        assert sum(worker.spent for worker in self.workers.values()) <= TOKENS + sum(
            self.excess.values()
        )

    def teardown(self) -> None:
        """Left alone, the survivors have fair shares of everything, and can spend all that is left."""
        try:
            if not self.workers:
                return
            self.faults, self.intruders = [], []
            living = [worker for name, worker in self.workers.items() if name not in self.crashed]
            for _ in range(3 * len(self.workers) + 12):
                self.clock.now += LEASE / 3
                for worker in living:
                    self.refresh(worker.name)
            assert sum(worker.used for worker in living) == pytest.approx(1, abs=1e-6)
            verdicts = {worker.name: "wait" for worker in living}
            for _ in range(40 * TOKENS):
                for worker in living:
                    self._act(
                        worker.name, lambda worker: verdicts.update({worker.name: worker.spend(1)})
                    )
                if set(verdicts.values()) == {"none"}:
                    break
                if "granted" not in verdicts.values():
                    self.clock.now += 1
                    for worker in living:
                        self.refresh(worker.name)
            state = max((worker.shares.ledger for worker in living), key=lambda it: it.number).state
            assert state.spent()[0] >= TOKENS
        finally:
            self.patch.stop()


Cluster.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestCluster = Cluster.TestCase


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with mock.patch("assay.engine.calls.pace.time", clock):
        yield clock


def beats(clock: Clock, *workers: Worker, times: int = 3) -> None:
    for _ in range(times):
        clock.now += LEASE / 3
        for worker in workers:
            worker.shares.refresh()


def test_a_frozen_worker_makes_no_call_before_it_has_a_share_again(clock: Clock) -> None:
    objects = Memory()
    one, other = (Worker(name, objects, clock) for name in "ab")
    one.join()
    assert (one.used, one.pace.places) == (1, PLACES)
    other.join()
    assert (one.used, other.used) == (1, 0), "first the others do with less"
    beats(clock, one, other)
    assert (one.used, other.used, one.pace.places) == (0.5, 0.5, PLACES // 2)
    beats(clock, other, times=5)
    assert (one.used, one.pace.places, other.used) == (0, 0, 1)
    one.shares.refresh()
    assert (one.used, other.used) == (0, 1)
    beats(clock, one, other)
    assert (one.used, other.used) == (0.5, 0.5)


def test_a_worker_that_comes_back_is_not_buried(clock: Clock) -> None:
    objects = Memory()
    one, other = (Worker(name, objects, clock) for name in "ab")
    one.join()
    other.join()
    beats(clock, one, other)
    clock.now += LEASE + 1

    # between the other's look at the silent worker and what it writes because of it
    def come_back() -> None:
        if objects.creating.startswith("shares/"):
            objects.before = lambda: None
            one.shares.refresh()

    objects.before = come_back
    other.shares.refresh()
    assert (one.used, other.used) == (0.5, 0.5)


@pytest.mark.parametrize(("seconds", "silence"), [(20, 10.0), (0, 31.0)])
def test_a_worker_given_up_within_its_beat(seconds: int, silence: float) -> None:
    """As the model found it: after a lease of silence, and between a worker's look at the ledger and its beat, another
    one gives it up and takes the whole."""
    cluster = Cluster()
    try:
        cluster.begin()
        cluster.join(name="b")
        cluster.beat(turns=[(0.0, "b")])
        cluster.interleave(others=[(8, seconds, "b")])
        cluster.beat(turns=[(0.0, "b"), (silence, "a")])
        assert not cluster.intruders
        assert [cluster.workers[name].used for name in "ab"] == [0, 1]
    finally:
        cluster.teardown()


def test_a_lane_that_begins_after_a_beat_that_failed(clock: Clock) -> None:
    objects = Memory()
    one, other = (Worker(name, objects, clock) for name in "ab")
    one.join()
    other.join()
    beats(clock, one, other)
    assert (one.used, other.used) == (0.5, 0.5)
    clock.now += LEASE + 1

    def give_up() -> None:
        other.shares.refresh()
        created = objects.created

        def break_down() -> None:
            # once `one` is a member again, and has no share yet
            if objects.created > created:
                raise StoreError("503 SlowDown")

        objects.before = break_down

    # between its look at the ledger and its beat
    with mock.patch.object(one.shares, "_report", give_up), pytest.raises(StoreError):
        one.shares.refresh()
    objects.before = lambda: None
    assert (one.used, other.used) == (0, 1)
    # what a lane gets that asks for the first time
    one.shares._paces.clear()
    lane = one.shares.pace("m", Limits(PLACES))
    assert lane is not None
    assert (lane.places, other.pace.places) == (0, PLACES)


def test_calls_under_way_keep_their_places(clock: Clock) -> None:
    objects = Memory()
    one, other = (Worker(name, objects, clock) for name in "ab")
    one.join()
    one.pace.in_flight = PLACES
    other.join()
    beats(clock, one, other)
    assert other.pace.places == 0
    one.pace.in_flight = PLACES // 2
    beats(clock, one, other)
    assert other.pace.places == PLACES // 2


def test_more_workers_than_places(clock: Clock) -> None:
    objects = Memory()
    workers = [Worker(f"w{number}", objects, clock) for number in range(PLACES + 3)]
    for worker in workers:
        worker.join()
    beats(clock, *workers, times=4)
    assert [worker.pace.places for worker in workers] == [1] * PLACES + [0] * 3
    workers[0].shares.leave()
    beats(clock, *workers[1:], times=2)
    assert [worker.pace.places for worker in workers[1:]] == [1] * PLACES + [0] * 2


def test_a_worker_without_work_gives_its_part_of_the_budget_back(clock: Clock) -> None:
    objects = Memory()
    one, other = (Worker(name, objects, clock) for name in "ab")
    one.join()
    other.join()
    beats(clock, one, other)
    assert one.spend(1) == "granted"
    while (verdict := other.spend(1)) == "granted":
        pass
    assert verdict == "wait"
    assert other.spent < TOKENS - 1
    beats(clock, one, other, times=1)
    while (verdict := other.spend(1)) == "granted":
        pass
    assert (verdict, one.spent, other.spent) == ("none", 1, TOKENS - 1)


def test_a_lost_reply_is_not_a_second_slice(clock: Clock) -> None:
    objects = Memory()
    worker = Worker("a", objects, clock)
    worker.join()
    objects.fate = lambda: "lost"
    assert worker.spend(1) == "granted"
    assert worker.shares.ledger.state.spent() == (TOKENS // 2, 0)


def test_what_was_spent_before_and_what_rows_of_a_dead_worker_cost(clock: Clock) -> None:
    objects = Memory()
    one, other = (Worker(name, objects, clock, before=lambda: Spending(20)) for name in "ab")
    one.join()
    other.join()
    beats(clock, one, other)
    one.spend(2)
    one.shares._beat.status = {"shards": [3], "committed": {"responses": 1}}
    beats(clock, one, other, times=1)
    one.spend(7)
    # before its last beat
    objects.write("responses.d/0/00003/00000000.jsonl", b'{"key":"a","total_tokens":2}\n')
    objects.write(
        "responses.d/0/00003/00000001.jsonl",
        b'{"key":"b","total_tokens":1}\n{"key":"c","total_tokens":3}\n',
    )
    objects.write("calls.d/0/00003/00000000.jsonl", b'{"completion":{"total_tokens":1}}\n')
    beats(clock, other, times=5)
    assert other.shares.ledger.state.gone == {"a": (2 + 1 + 3 + 1, 0)}
    while other.spend(1) == "granted":
        pass
    assert other.spent == TOKENS - 20 - 7


def test_a_thousand_workers_do_not_contend(clock: Clock) -> None:
    objects = Memory()
    workers = [Worker(f"w{number:04}", objects, clock, tokens=None) for number in range(1000)]
    for worker in workers:
        worker.shares.workers.beat(Beat(worker=worker.name))
    for worker in workers:
        worker.join()
    assert objects.created <= 3
    beats(clock, *workers, times=1)
    before = objects.operations, objects.created
    beats(clock, *workers, times=1)
    # a beat, a look at the ledger and at a neighbour
    assert objects.operations - before[0] <= 5 * len(workers)
    assert objects.created - before[1] <= 2


def test_a_share_of_a_rate_may_change_while_calls_wait(clock: Clock) -> None:
    bucket = Bucket(600)
    places = [bucket.take(1) for _ in range(31)]
    assert [round(bucket.wait(place), 6) for place in (places[9], places[10], places[30])] == [
        0,
        0.1,
        2.1,
    ]
    bucket.resize(0.5)
    clock.now += 1
    assert sum(bucket.wait(place) <= 0 for place in places) == 10, (
        "five flowed out; half as many may go at once"
    )
    bucket.resize(0)
    clock.now += 100
    assert bucket.wait(places[30]) == float("inf")
    bucket.resize(1)
    assert bucket.wait(places[30]) == pytest.approx(2.5), (
        "31 calls less 5 gone and 1 that may go, at 10 a second"
    )
    clock.now += 2.5
    assert bucket.wait(places[30]) == 0
