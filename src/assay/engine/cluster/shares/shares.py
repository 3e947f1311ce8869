"""One limit for all workers: requests and tokens per minute, calls at once, and the budget of the whole run.

A worker uses its share until a lease after it last said that it lives, by its own clock; nobody else gives that share
away earlier. So the sum of what is used never exceeds the limits, whoever dies, freezes or comes back. What a worker
spent since its last beat, and has not committed as rows, is not known when it dies: by that much, at the most, a budget
may be exceeded.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import ceil
from typing import Literal

import msgspec

from assay.engine.calls.budget import Budget, Reserved, Spending, add_paid, spent_before
from assay.engine.calls.executor import Shared
from assay.engine.calls.pace import Pace
from assay.engine.cluster.shares.ledger import NOTHING, WHOLE, Amounts, Ledger, Sharer, State, plus
from assay.engine.cluster.status import WorkerStatus
from assay.engine.experiment.experiment import Experiment
from assay.engine.experiment.models import bind_limits
from assay.interfaces import Limits, Model
from assay.store.shared.claims import Beat, Workers
from assay.store.shared.generations import Generation

PATIENCE = 1.0  # seconds between two looks for a part of the budget that others have given back
Verdict = Literal["granted", "wait", "none"]


class Slice(Budget):
    """A worker's part of the budget. What it has spent is its own; the rest is asked for when it is needed."""

    def __init__(
        self,
        usd: float | None,
        tokens: int | None,
        seconds: float | None,
        ask: Callable[[Amounts], Verdict],
        spent_by_all: Callable[[], Amounts],
    ) -> None:
        super().__init__(None if usd is None else 0.0, None if tokens is None else 0, seconds)
        self.whole: tuple[int | None, int | None] = (
            tokens,
            None if usd is None else round(usd * WHOLE),
        )
        self._ask = ask
        self._spent_by_all = spent_by_all
        self._asking = asyncio.Lock()
        self._not_before = 0.0

    def amounts(self) -> Amounts:
        """Return what it has spent."""
        return self.spent.tokens, ceil(self.spent.usd * WHOLE)

    def begin(self, elapsed: float) -> None:
        """The run has lasted this long."""
        self._started = time.monotonic() - elapsed

    def grow(self, granted: Amounts) -> None:
        """The part is this large now."""
        with self._lock:
            self.tokens = None if self.whole[0] is None else granted[0]
            self.usd = None if self.whole[1] is None else granted[1] / WHOLE

    def rest(self) -> Amounts:
        """Return what is neither spent nor reserved for a call."""
        with self._lock:
            return self._rest()

    def _rest(self) -> Amounts:
        tokens = (self.tokens or 0) - self.spent.tokens - self._reserved_tokens
        usd = (self.usd or 0.0) - self.spent.usd - self._reserved_usd
        return max(0, tokens), max(0, int(usd * WHOLE))

    def shrink(self) -> Amounts:
        """Give up half of the rest, or all of it with no call under way: what was given up."""
        with self._lock:
            tokens, usd = self._rest()
            given = (tokens, usd) if not self._in_flight else (tokens // 2, usd // 2)
            self.tokens = None if self.tokens is None else self.tokens - given[0]
            self.usd = None if self.usd is None else self.usd - given[1] / WHOLE
            return given

    @property
    def is_idle(self) -> bool:
        return not self._in_flight

    async def _more(self, wanted: Reserved) -> bool:
        async with self._asking:
            if not self._over(wanted.tokens, wanted.usd):
                return True
            if self._in_flight and time.monotonic() < self._not_before:
                return False
            answer = await asyncio.to_thread(self._ask, (wanted.tokens, ceil(wanted.usd * WHOLE)))
            self._not_before = time.monotonic() + PATIENCE
            if answer == "wait" and not self._in_flight:
                await asyncio.sleep(PATIENCE)
        return answer == "granted" or (answer == "wait" and not self._in_flight)

    def _spending(self) -> tuple[Spending, int | None, float | None]:
        tokens, usd = self._spent_by_all()
        whole = self.whole[1]
        return (
            Spending(tokens, usd / WHOLE),
            self.whole[0],
            None if whole is None else whole / WHOLE,
        )


SLICE = 2  # a slice is this part of a worker's fair part of what is left
VOLUNTEERS = 8  # workers that give back at the same beat, if others have nothing left


class Shares:
    """A worker's share of what all workers of a generation have together. `before` is asked, once, what the experiment
    had cost before; `limits` are those of the lanes that are shared."""

    def __init__(
        self,
        generation: Generation,
        workers: Workers,
        limits: Mapping[str, Limits],
        *,
        usd: float | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
        before: Callable[[], Spending] = Spending,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.workers = workers
        self.ledger = Ledger(workers.objects, f"shares/{generation.number}/", sleep)
        self.budget: Slice | None = None
        if (usd, tokens, seconds) != (None, None, None):
            self.budget = Slice(usd, tokens, seconds, self.ask, lambda: self.ledger.state.spent())
        self._limits = dict(limits)
        self._most = max(1, min((limit.max_concurrency for limit in limits.values()), default=1))
        self._before = before
        self._generation = generation
        self._clock = clock
        self._lock = threading.RLock()
        self._beat = Beat(worker="")
        self._until = float("-inf")  # when the share is not ours any more, unless it is confirmed
        self._paces: dict[str, Pace] = {}
        self._share = 0.0
        self._slice = NOTHING

    # -- what the engine uses

    def for_executors(self) -> Shared:
        """For Runner and Evaluator."""
        return {"paces": self.pace, "budget": self.budget}

    def pace(self, name: str, limits: Limits) -> Pace | None:
        """The lane's part of its limits; None for a lane that is this worker's alone."""
        if name not in self._limits:
            return None
        with self._lock:
            if name not in self._paces:
                self._paces[name] = Pace(limits, self._share, self._until, full=False)
            return self._paces[name]

    # -- what the worker calls

    def join(self, beat: Beat) -> None:
        """Become one of those who share; `beat` is written from now on by `refresh`."""
        self._beat = beat
        began = self._clock()
        self.workers.beat(beat)
        self._until = began + self.workers.lease
        self.refresh()
        if self.budget is not None and self.budget.seconds is not None:
            self.budget.begin(max(0.0, time.time() - self.ledger.state.started))

    def refresh(self) -> None:
        """Say that the worker lives, do with less or more as the last state says, and look after the others."""
        with self._lock:
            began = self._clock()
            self.ledger.catch_up()
            self._apply()
            self._report()
            self.workers.beat(self._beat)
            if self._me is None or self._clock() >= self._until:
                # Others may be about to take this worker for dead: they cannot, once it has written a state itself.
                self.ledger.change(self._beat.worker, self._enter)
            self._look_after_others()
            self._look_after_budget()
            # Not earlier: a share of before, which may be another's by now, must not be confirmed.
            self._until = began + self.workers.lease
            self._apply()

    def leave(self) -> None:
        """Give everything back. No call may be under way."""
        with self._lock:
            self._share, self._until = 0.0, float("-inf")
            self._set_paces()

            def edit(state: State, number: int) -> bool:
                if self._beat.worker in state.members:
                    state.remove(self._beat.worker, self._amounts())
                    state.share_out(number, self._most)
                    return True
                return False

            self.ledger.change(self._beat.worker, edit)

    def ask(self, wanted: Amounts) -> Verdict:
        """Room for a call: `granted`, `wait` (others have a part that they may give back), or `none`."""
        with self._lock:
            if self._clock() < self._until:
                self.ledger.change(
                    self._beat.worker, lambda state, number: self._take(state, wanted)
                )
            self._apply()
            if self.budget is None or self._me is None:
                return "wait"
            if self._missing(wanted) == NOTHING:
                return "granted"
            return (
                "wait"
                if any(member.holds for member in self.ledger.state.members.values())
                else "none"
            )

    # -- inside

    @property
    def _me(self) -> Sharer | None:
        return self.ledger.state.members.get(self._beat.worker)

    def _amounts(self) -> Amounts:
        return self.budget.amounts() if self.budget is not None else NOTHING

    def _apply(self) -> None:
        me = self._me
        self._share = me.rate / WHOLE if me is not None else 0.0
        self._set_paces()
        if self.budget is not None and me is not None:
            self.budget.grow(me.granted)

    def _set_paces(self) -> None:
        for pace in self._paces.values():
            pace.resize(self._share)
            pace.until = self._until

    def _report(self) -> None:
        if all(pace.in_flight <= pace.places for pace in self._paces.values()):
            # else calls are under way for which there is no place any more
            self._beat.seen = self.ledger.number
        self._beat.tokens, usd = self._amounts()
        self._beat.usd = usd / WHOLE

    def _enter(self, state: State, number: int) -> bool:
        """Add this worker, and those who have begun and are not members yet: a thousand beginners need few states."""
        if number == 0:
            before = Spending() if self.budget is None else self._before()
            state.started, state.before = time.time(), (before.tokens, ceil(before.usd * WHOLE))
        prefix = self.workers.prefix
        names = (
            entry.name.removeprefix(prefix).removesuffix(".json")
            for entry in self.workers.objects.names(prefix)
        )
        for name in {self._beat.worker: 0, **dict.fromkeys(names)}:
            mine = name == self._beat.worker
            if name not in state.members and (mine or name not in state.gone):
                state.gone.pop(name, None)
                state.members[name] = Sharer(granted=self._amounts() if mine else NOTHING)
        state.share_out(number, self._most)
        return True

    def _look_after_others(self) -> None:
        """Find out whether the next one in the ring lives; and, as the first of those who wait for a larger share,
        whether those who were to do with less have done so."""
        names = [*self.ledger.state.members]
        at = names.index(self._beat.worker) if self._beat.worker in names else 0
        silent: list[str] = []
        for name in [*names[at + 1 :], *names[:at]]:
            if self.workers.is_alive(name):
                break
            silent.append(name)
        targets = self.ledger.state.targets(self._most)
        members = self.ledger.state.members
        first = next((name for name, member in members.items() if member.rate < targets[name]), "")
        if silent or first == self._beat.worker:
            self.ledger.change(
                self._beat.worker, lambda state, number: self._settle(state, number, silent)
            )

    def _settle(self, state: State, number: int, silent: list[str]) -> bool:
        before = msgspec.json.encode(state)
        for name in silent:
            if name in state.members and not self.workers.is_alive(name):
                state.remove(name, self._spent_by(name, state.members[name]))
        for name, member in state.members.items():
            if (
                member.held > member.rate
                and (beat := self.workers.last(name))
                and beat.seen >= member.since
            ):
                member.held = member.rate
        state.share_out(number, self._most)
        return msgspec.json.encode(state) != before

    def _spent_by(self, name: str, member: Sharer) -> Amounts:
        """Return what a dead worker has spent, as far as anybody knows, and not more than it was
        granted."""
        beat = self.workers.last(name)
        if beat is None or self.budget is None:
            return NOTHING
        told, spent = WorkerStatus(), Spending(beat.tokens, beat.usd)
        with suppress(msgspec.ValidationError):  # a worker of another version
            told = msgspec.convert(beat.status, WorkerStatus)
        for shard in told.shards:  # rows that it has committed since it said so
            for stem in ("responses", "calls"):
                segments = self._generation.segments(self.workers.objects, stem, shard)
                segments.next = told.committed.get(stem, 0)
                for rows in segments.read():
                    add_paid(spent, rows, calls=stem == "calls")
        return min(spent.tokens, member.granted[0]), min(ceil(spent.usd * WHOLE), member.granted[1])

    def _missing(self, wanted: Amounts) -> Amounts:
        """Return what the rest of this worker's part lacks for a call."""
        assert self.budget is not None
        lacks = [max(0, want - rest) for want, rest in zip(wanted, self.budget.rest(), strict=True)]
        tokens, usd = self.budget.whole
        return 0 if tokens is None else lacks[0], 0 if usd is None else lacks[1]

    def _take(self, state: State, wanted: Amounts) -> bool:
        """The next slice, which has room for what is wanted. If it cannot, and no call is under way, then this worker
        gives back what is of no use to it."""
        me = state.members.get(self._beat.worker)
        if self.budget is None or me is None:
            return False
        spent, missing, parts = state.spent(), self._missing(wanted), SLICE * len(state.members)
        left = [
            0 if whole is None else max(0, whole - used)
            for whole, used in zip(self.budget.whole, spent, strict=True)
        ]
        if missing[0] > left[0] or missing[1] > left[1]:
            if me.dry or not self.budget.is_idle:
                return False
            given = self.budget.shrink()
            me.granted, me.holds, me.dry = plus(me.granted, (-given[0], -given[1])), False, True
            return True
        more = max(missing[0], left[0] // parts), max(missing[1], left[1] // parts)
        me.granted, me.holds, me.dry = plus(me.granted, more), True, False
        self._slice = more
        return more != NOTHING

    def _look_after_budget(self) -> None:
        """Fetch the next slice before it is needed; where others ask in vain, give back."""
        if self.budget is None or self._me is None or not self._me.holds:
            return
        members = self.ledger.state.members.values()
        if any(member.dry for member in members):
            if random.random() * len(members) < VOLUNTEERS:
                self.ledger.change(self._beat.worker, self._give)
        elif any(
            2 * rest < part for rest, part in zip(self.budget.rest(), self._slice, strict=True)
        ):
            self.ledger.change(self._beat.worker, lambda state, number: self._take(state, NOTHING))

    def _give(self, state: State, number: int) -> bool:
        me = state.members.get(self._beat.worker)
        if self.budget is None or me is None:
            return False
        given = self.budget.shrink()
        me.granted, me.holds = plus(me.granted, (-given[0], -given[1])), not self.budget.is_idle
        return given != NOTHING or not me.holds


def shares_of(
    experiment: Experiment, models: Mapping[str, Model], generation: Generation, workers: Workers
) -> Shares:
    """A new worker's part of the limits and of the budget. A server that it starts itself is its alone."""
    limits = bind_limits(experiment.config)
    return Shares(
        generation,
        workers,
        {
            name: limits[name]
            for name, model in models.items()
            if not getattr(model, "exclusive", False)
        },
        before=lambda: spent_before(experiment.store, experiment.id),
        **msgspec.structs.asdict(experiment.config.budget),
    )
