"""Who holds which share of the limits and of the budget: numbered states, each created once.

State n+1 is made by somebody who has read n, so the sums that a state keeps to are kept for good. A worker lowers what
it uses as soon as it sees that it shall, and says in its beat up to which state it has; only then is what it gave up
given to others. `held` is therefore what a worker may use at the most, and the sum of all `held` is never above the
whole.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from assay.store.shared.objects import Objects

WHOLE = 1_000_000_000  # all of the rates; and a dollar, in billionths
Amounts = tuple[int, int]  # tokens, billionths of a dollar
NOTHING: Amounts = (0, 0)
SLOWEST = 2.0  # seconds between two attempts to write the next state


def plus(a: Amounts, b: Amounts) -> Amounts:
    return a[0] + b[0], a[1] + b[1]


class Sharer(msgspec.Struct, array_like=True):
    """`rate` is the share to use, `held` the most that the worker may still use until it has seen state `since`. It was
    `granted` this part of the budget, what it has spent included, and `holds` some of it, or it has asked for more in
    vain and is `dry`."""

    rate: int = 0
    held: int = 0
    since: int = 0
    granted: Amounts = NOTHING
    holds: bool = False
    dry: bool = False


class State(msgspec.Struct):
    """Members are in the order of joining. `gone` is what those spent who left or died, `before` what was spent before
    the first of them, who began at `started`."""

    by: str = ""
    started: float = 0.0
    before: Amounts = NOTHING
    members: dict[str, Sharer] = {}
    gone: dict[str, Amounts] = {}

    def targets(self, most: int) -> dict[str, int]:
        """A fair share for each member; where there are more members than places, the last ones wait."""
        holders = min(len(self.members), most)
        return {
            name: WHOLE // holders if number < most else 0
            for number, name in enumerate(self.members)
        }

    def share_out(self, number: int, most: int) -> None:
        """As state `number`: lower what is above a fair share, and give what is free to those below it."""
        targets = self.targets(most)
        for name, member in self.members.items():
            if member.rate > targets[name]:
                member.rate, member.since = targets[name], number
            member.rate = max(member.rate, min(targets[name], member.held))
        free = WHOLE - sum(member.held for member in self.members.values())
        for name, member in self.members.items():
            more = min(targets[name] - member.rate, free)
            if more > 0 and member.rate == member.held:
                member.rate = member.held = member.rate + more
                free -= more

    def remove(self, name: str, spent: Amounts) -> None:
        """A member is gone, and has spent this; the rest of its part is free again."""
        del self.members[name]
        self.gone[name] = spent

    def spent(self) -> Amounts:
        """Return what is spent or granted."""
        total = self.before
        for amounts in (*self.gone.values(), *(member.granted for member in self.members.values())):
            total = plus(total, amounts)
        return total


@dataclass
class Ledger:
    """The states below a prefix, as one worker reads and writes them."""

    objects: Objects
    prefix: str
    sleep: Callable[[float], None] = time.sleep
    number: int = -1
    state: State = field(default_factory=State)

    def catch_up(self) -> None:
        """Read the last state. Numbers have no gaps, so most of them can be skipped after a long absence."""
        step = 1
        while step:
            content = self.objects.read(self._name(self.number + step))
            if content is not None:
                self.number += step
                self.state = msgspec.json.decode(content, type=State)
                step *= 2
            else:
                step = step > 1

    def change(self, worker: str, edit: Callable[[State, int], bool]) -> bool:
        """Make the next state by `edit`, which gets a copy of the last one and the new number, and says whether there
        is something to change. It is asked again when somebody else was quicker."""
        pause = 0.02
        while True:
            self.catch_up()
            state = msgspec.json.decode(msgspec.json.encode(self.state), type=State)
            state.by = worker
            number = self.number + 1
            if not edit(state, number):
                return False
            content = msgspec.json.encode(state)
            name = self._name(number)
            # or the reply was lost
            if self.objects.create(name, content) or self.objects.read(name) == content:
                self.number, self.state = number, state
                return True
            self.sleep(random.uniform(0, pause))
            pause = min(2 * pause, SLOWEST)

    def _name(self, number: int) -> str:
        return f"{self.prefix}{number:08}.json"
