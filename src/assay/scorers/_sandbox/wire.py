"""What the process of the tests and the process of the answer say to each other: lines of JSON.

A value is taken apart by its sender and built anew by its receiver, so no object of the answer takes part in a
comparison. What is not plain data stays where it is; the other side gets a `Remote`, which asks for what is done to it.
"""

import json
import sys
from _thread import RLock
from collections.abc import Callable
from typing import IO, Any, NoReturn

from .values import Line, Values, dumps, unlimited

LONGEST = 64 << 20
# would end a loop of the tests instead of failing it
LOOPS = (StopIteration, StopAsyncIteration, GeneratorExit)


class LostError(Exception):
    """The other process has ended, or says what nobody could mean."""


class Wire:
    """One end. `mine` does an operation that the other side asks for."""

    def __init__(self, channel: IO[bytes], mine: Callable[..., Any]) -> None:
        self.channel, self.mine = channel, mine
        self.values = Values(self)
        self.lost = False
        self.lock = RLock()
        self.printed: Callable[[], str] = str  # what was printed here since the last reply

    def ask(self, operation: str, *arguments: Any, **named: Any) -> Any:
        """Return what the other side gets from its operation; raises what it raises there. Lists,
        sets and dicts among the arguments are changed as they were changed there."""
        with self.lock:
            return self._ask(operation, *arguments, **named)

    def _ask(self, operation: str, *arguments: Any, **named: Any) -> Any:
        if self.lost:
            self.lose("it has ended")
        sent = self.values.numbered()
        self.send(
            ["do", operation, self.values.apart(arguments, sent), self.values.apart(named, sent)]
        )
        line = self.receive()
        while line[0] == "do":
            self.reply(line)
            line = self.receive()
        try:
            kind, content, changes, printed = line
            sys.stdout.write(printed)
            for number, state in changes:
                self.values.fill(sent.values[number], state[1], sent)
            if kind == "ok":
                return self.values.whole(content, sent)
            error = self.values.error(content)
        except LostError:
            raise
        except Exception as problem:
            self.lose(f"its reply cannot be read: {type(problem).__name__}")
        if isinstance(error, LOOPS) and operation != "next":
            raise RuntimeError(f"the code raised {type(error).__name__}")
        raise error

    def serve(self) -> None:
        """Do what is asked for, until the other side ends."""
        while not self.lost:
            try:
                self.reply(self.receive())
            except LostError:
                return

    def reply(self, line: Line) -> None:
        seen = self.values.numbered()
        before: list[str] = []
        received = 0
        result, raised = None, None
        try:
            _, operation, arguments, named = line
            values, names = self.values.whole(arguments, seen), self.values.whole(named, seen)
            received = len(seen.values)
            before = [dumps(self.values.content(value, seen)) for value in seen.values]
            result = self.mine(operation, *values, **names)
        except LostError:
            raise
        except BaseException as error:
            raised = error
        try:
            states = [self.values.content(value, seen) for value in seen.values[:received]]
            changes = [
                [n, state]
                for n, state in enumerate(states)
                if n >= len(before) or dumps(state) != before[n]
            ]
            content = self.values.parts(raised) if raised else self.values.apart(result, seen)
            self.send(["raise" if raised else "ok", content, changes, self.printed()])
        except (RecursionError, MemoryError, ValueError, TypeError, AttributeError) as error:
            self.send(
                [
                    "raise",
                    self.values.parts(TypeError(f"the value cannot be sent: {error}")),
                    [],
                    "",
                ]
            )

    def send(self, line: Line) -> None:
        text = dumps(line)
        if len(text) > LONGEST:
            raise ValueError("it is too large")
        try:
            self.channel.write(text.encode() + b"\n")
            self.channel.flush()
        except OSError:
            self.lose("it has ended")

    def receive(self) -> Line:
        try:
            text = self.channel.readline(LONGEST + 2)
        except OSError:
            text = b""
        if not text.endswith(b"\n"):
            self.lose("a line is too long" if text else "it has ended")
        try:
            line = unlimited(json.loads, text)
            if line[0] not in ("do", "ok", "raise") or len(line) != 4:
                self.lose("it does not keep to the protocol")
        except (ValueError, RecursionError, LookupError, TypeError):
            self.lose("it does not keep to the protocol")
        return line

    def lose(self, why: str) -> NoReturn:
        self.lost = True
        raise LostError(f"the process of the code is lost: {why}")
