"""A worker's part of the budget of all: it spends slices of it, and asks for the next one before it stops."""

import asyncio
import time
from collections.abc import Callable
from math import ceil
from typing import Literal

from assay.engine.calls.budget import Budget, Reserved, Spent
from assay.engine.cluster.shares.ledger import WHOLE, Amounts

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
        """What it has spent."""
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
        """What is neither spent nor reserved for a call."""
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

    def _used(self) -> tuple[Spent, int | None, float | None]:
        tokens, usd = self._spent_by_all()
        whole = self.whole[1]
        return Spent(tokens, usd / WHOLE), self.whole[0], None if whole is None else whole / WHOLE
