"""A run-wide budget. Every call reserves what it may cost before it is sent and settles when its answer is there.

A call that does not fit waits for others to settle; when nothing is in flight and it still does not fit, the budget
is used up and the run stops: cleanly, with every row kept, and it resumes when the budget is raised.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterable
from math import ceil, floor, log10
from typing import NamedTuple

import msgspec

from assay.engine.calls.usage import Used, UsedCall, cost_of
from assay.errors import BudgetError
from assay.interfaces import Completion, Likelihood, Message, Price, Request, Store
from assay.store.table.decode import read_rows

CHARACTERS_PER_TOKEN = 4
# tokens reserved for an answer before any has been seen and without `max_tokens`
UNKNOWN_ANSWER = 256


class Spending(msgspec.Struct):
    """Tokens and US dollars; `unpriced` calls had tokens but no known price."""

    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0


class Reserved(NamedTuple):
    """Room for one call: its prompt as estimated, all its tokens, its dollars."""

    prompt: int
    tokens: int
    usd: float


class Budget:
    """Limits that are None do not bind. `spent` begins with what earlier runs of the experiment paid."""

    def __init__(
        self,
        usd: float | None = None,
        tokens: int | None = None,
        seconds: float | None = None,
        spent: Spending | None = None,
    ) -> None:
        self.usd = usd
        self.tokens = tokens
        self.seconds = seconds
        self.spent = spent or Spending()
        self.exhausted: BudgetError | None = None
        self._reserved_tokens = 0
        self._reserved_usd = 0.0
        self._in_flight = 0
        self._started = time.monotonic()
        self._waiting: deque[asyncio.Future[None]] = deque()
        # where workers share a budget, another thread changes this one's part of it
        self._lock = threading.Lock()
        self._correction = 1.0  # how many times its estimate a prompt really had, at the most
        self._answers = 0
        self._answer_tokens = 0

    async def reserve(self, request: Request, price: Price | None) -> Reserved:
        """Room for one call, as soon as there is some: what was reserved, to be handed back to `settle`."""
        estimate, answer = prompt_tokens(request), expected_answer(request, self._usual_answer())
        prompt = ceil(estimate * self._correction)
        wanted = Reserved(
            estimate, prompt + answer, price.cost(prompt, answer) if price is not None else 0.0
        )
        while True:
            if self.exhausted is not None:
                raise self.exhausted
            with self._lock:
                over = self._over(wanted.tokens, wanted.usd)
                if not over:
                    self._in_flight += 1
                    self._reserved_tokens += wanted.tokens
                    self._reserved_usd += wanted.usd
                    return wanted
            if over != "seconds" and await self._more(wanted):
                continue
            if not self._in_flight or over == "seconds":
                self._exhaust(over)
                continue
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place

    def settle(
        self, reserved: Reserved, price: Price | None, completion: Completion | None
    ) -> None:
        """The call is over; without a completion it cost nothing that anybody knows of."""
        with self._lock:
            self._in_flight -= 1
            self._reserved_tokens -= reserved.tokens
            self._reserved_usd -= reserved.usd
            if completion is not None:
                tokens = completion.total_tokens
                if tokens is None:
                    tokens = (completion.prompt_tokens or 0) + (
                        completion.completion_tokens or 0
                    ) or reserved.tokens
                cost = cost_of(price, completion)
                self.spent.tokens += tokens
                self.spent.usd += reserved.usd if cost is None else cost
        if completion is not None:
            if completion.prompt_tokens is not None:
                self._correction = max(self._correction, completion.prompt_tokens / reserved.prompt)
            if completion.completion_tokens is not None:
                self._answers += 1
                self._answer_tokens += completion.completion_tokens
        self._wake()

    async def _more(self, wanted: Reserved) -> bool:
        """Return whether it is worth looking again whether this fits: a part of a budget may have
        become larger."""
        return False

    def _usual_answer(self) -> int:
        return self._answer_tokens // self._answers + 1 if self._answers else UNKNOWN_ANSWER

    def _over(self, tokens: int, usd: float) -> str:
        if self.seconds is not None and time.monotonic() - self._started >= self.seconds:
            return "seconds"
        if (
            self.tokens is not None
            and self.spent.tokens + self._reserved_tokens + tokens > self.tokens
        ):
            return "tokens"
        if self.usd is not None and self.spent.usd + self._reserved_usd + usd > self.usd:
            return "usd"
        return ""

    def _spending(self) -> tuple[Spending, int | None, float | None]:
        """Return what was spent, of how many tokens and dollars."""
        return self.spent, self.tokens, self.usd

    def _exhaust(self, which: str) -> None:
        spent, tokens, usd = self._spending()
        used = {
            "seconds": f"{self.seconds:g} seconds" if self.seconds is not None else "",
            "tokens": f"{spent.tokens:,} of {tokens:,} tokens" if tokens is not None else "",
            "usd": f"{spent.usd:.{_digits(usd)}f} of {usd:g} US dollars" if usd is not None else "",
        }[which]
        self.exhausted = BudgetError(
            f"the budget is used up: {used}",
            where=f"budget.{which}",
            fix="raise it and run the same command: every finished row is kept",
        )
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)


def _digits(usd: float) -> int:
    """Return how many digits tell a small budget from what was spent of it."""
    return 4 if usd >= 0.01 or usd <= 0 else 3 - floor(log10(usd))


def text_tokens(messages: Iterable[Message]) -> int:
    """A rough count of the tokens of messages, for budgets and plans; never for what a row says."""
    return (
        sum(len(str(message.get("content", ""))) for message in messages) // CHARACTERS_PER_TOKEN
        + 1
    )


def prompt_tokens(request: Request) -> int:
    """A rough count of the tokens that are sent; a context is sent with each of its continuations."""
    tokens = text_tokens(request.messages)
    if not isinstance(request, Likelihood):
        return tokens
    return (
        sum(tokens + len(text) // CHARACTERS_PER_TOKEN for text in request.continuations) or tokens
    )


def expected_answer(request: Request, usual: int = UNKNOWN_ANSWER) -> int:
    """The tokens that an answer may have: what the request allows, else what is usual."""
    if isinstance(request, Likelihood):
        return len(request.continuations)
    limit = request.params.get("max_tokens") or request.params.get("max_completion_tokens")
    return limit if isinstance(limit, int) and limit > 0 else usual


def expected_tokens(request: Request) -> int:
    return prompt_tokens(request) + expected_answer(request)


def spent_before(store: Store, id: str) -> Spending:
    """Return what the rows and calls of an experiment, those set aside included, have cost so
    far."""
    spent = Spending()
    for name in ("", "superseded"):
        for _, paid in read_rows(store.log("run", id, name), Used):
            _add(spent, paid)
    inside, judging = store.log("run", id, "calls"), store.log("evaluation", id, "calls")
    # a flat folder has one log for both
    for log in [inside] if inside is judging else [inside, judging]:
        for _, call in read_rows(log, UsedCall):
            _add(spent, call.completion)
    return spent


def add_paid(spent: Spending, rows: bytes, *, calls: bool) -> None:
    """Add what rows, or the calls inside rows, have cost."""
    for row in msgspec.json.Decoder(UsedCall if calls else Used).decode_lines(rows):
        _add(spent, row.completion if isinstance(row, UsedCall) else row)


def _add(spent: Spending, paid: Used) -> None:
    spent.tokens += paid.total_tokens or 0
    spent.usd += paid.cost or 0.0
    spent.unpriced += paid.cost is None and bool(paid.total_tokens)
