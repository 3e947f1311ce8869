"""Limits and budget that workers share: what all of them use together, whatever happens to any of them."""

import json
from collections.abc import Callable, Iterator
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.engine.calls.pace import Pace
from assay.engine.cluster.ledger import WHOLE
from assay.engine.cluster.shares import Shares
from assay.errors import StoreError
from assay.interfaces import Limits
from assay.store.shared.claims import Beat, Workers
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

    def create(self, name: str, content: bytes) -> bool:
        self._begin()
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
        return iter([Entry(name, 0, "") for name in sorted(self.content) if name.startswith(prefix)])

    def delete(self, name: str) -> None:
        self.content.pop(name, None)

    def _begin(self) -> None:
        self.operations += 1
        self.before()


class Worker:
    """What the engine does with a share, without an engine: calls that hold a place, and tokens that they cost."""

    def __init__(self, name: str, objects: Objects, clock: Clock, tokens: int | None = TOKENS, **more: object) -> None:
        workers = Workers(objects, "workers/0/", lease=LEASE, clock=clock.monotonic)
        limits = {"m": Limits(PLACES, requests_per_minute=600)}
        self.name = name
        self.clock = clock
        self.shares = Shares(
            objects, 0, workers, limits, tokens=tokens, clock=clock.monotonic, sleep=lambda seconds: None, **more
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
        self.excess: dict[str, int] = {}  # what a worker had spent beyond what was counted for it when it was given up
        self.given_up: set[str] = set()
        self.busy: set[str] = set()
        self.faults: list[str] = []
        self.intruders: list[tuple[int, int, str]] = []  # after how many operations, how much later, who
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

    def _act(self, name: str, act: Callable[[Worker], object]) -> None:
        if name not in self.workers or name in self.crashed or name in self.busy:
            return
        self.busy.add(name)
        try:
            act(self.workers[name])
        except StoreError:
            pass
        finally:
            self.busy.discard(name)
        self.check()

    names = st.sampled_from("abcde")

    @initialize()
    def begin(self) -> None:
        self.join("a")

    @rule(name=names)
    def join(self, name: str) -> None:
        if name in self.workers or name in self.crashed:
            return
        self.workers[name] = Worker(name, self.objects, self.clock)
        self._act(name, Worker.join)

    @rule(name=names)
    def refresh(self, name: str) -> None:
        self._act(name, lambda worker: worker.shares.refresh() if worker.shares._beat.worker else worker.join())

    @rule(name=names, tokens=st.integers(1, 30))
    def spend(self, name: str, tokens: int) -> None:
        self._act(name, lambda worker: worker.shares._beat.worker and worker.spend(tokens))

    @rule(seconds=st.sampled_from([1.0, 10.0, 29.0, 31.0, 65.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(name=names)
    def crash(self, name: str) -> None:
        if name in self.workers and len(self.workers) - len(self.crashed) > 1:
            self.crashed.add(name)

    @rule(name=names)
    def leave(self, name: str) -> None:
        if name in self.workers and len(self.workers) - len(self.crashed) > 1:
            self._act(name, lambda worker: worker.shares._beat.worker and worker.shares.leave())
            self.crashed.add(name)

    @rule(fate=st.lists(st.sampled_from(["lost", "refused", "timeout", "fine"]), max_size=3))
    def break_store(self, fate: list[str]) -> None:
        self.faults = fate

    @rule(others=st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0, 5, 20, 31]), names), max_size=4))
    def interleave(self, others: list[tuple[int, int, str]]) -> None:
        self.intruders = others

    @invariant()
    def check(self) -> None:
        living = [worker for name, worker in self.workers.items() if name not in self.crashed]
        assert sum(worker.used for worker in living) <= 1 + 1e-9
        assert sum(worker.pace.places for worker in living) <= PLACES
        state = max((worker.shares.ledger for worker in self.workers.values()), key=lambda it: it.number).state
        assert sum(member.held for member in state.members.values()) <= WHOLE
        for name in self.given_up - state.gone.keys():
            self.given_up.discard(name)
        for name in state.gone.keys() - self.given_up:
            self.given_up.add(name)  # the bound: what it spent since its last beat, which nobody can know
            told = json.loads(self.objects.content[f"workers/0/{name}.json"])["tokens"]
            self.excess[name] = self.excess.get(name, 0) + self.workers[name].spent - told
        assert state.spent()[0] <= TOKENS + sum(self.excess.values())
        assert sum(worker.spent for worker in self.workers.values()) <= TOKENS + sum(self.excess.values())

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
                    self._act(worker.name, lambda worker: verdicts.update({worker.name: worker.spend(1)}))
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


Cluster.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestCluster = Cluster.TestCase
