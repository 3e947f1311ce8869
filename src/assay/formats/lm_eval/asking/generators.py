"""Random generators as a task's functions find them in the harness: Python's and numpy's global ones, and those that
a module keeps for itself."""

import copy
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

State = tuple[Any, Any]
_first: dict[
    int, tuple[Any, Any]
] = {}  # a module's own generators, and their states when they were new


def state() -> State:
    return random.getstate(), np.random.get_state()


def put(to: State) -> None:
    random.setstate(to[0])
    np.random.set_state(to[1])


def same(first: State, second: State) -> bool:
    return first[0] == second[0] and all(
        np.array_equal(a, b) for a, b in zip(first[1], second[1], strict=True)
    )


class Own:
    """The generators of a function's module."""

    def __init__(self, function: Callable[..., Any] | None) -> None:
        names: dict[str, Any] = getattr(getattr(function, "func", function), "__globals__", {})
        self.generators = [
            value
            for value in names.values()
            if isinstance(value, (random.Random, np.random.Generator))
        ]

    def state(self) -> list[Any]:
        return [
            generator.getstate()
            if isinstance(generator, random.Random)
            else copy.deepcopy(generator.bit_generator.state)
            for generator in self.generators
        ]

    def put(self, to: list[Any]) -> None:
        for generator, value in zip(self.generators, to, strict=True):
            if isinstance(generator, random.Random):
                generator.setstate(value)
            else:
                generator.bit_generator.state = value


class Generators:
    """Those of one run. The harness seeds the global ones once, for all tasks; a module's own are new."""

    def __init__(self, python: int = 0, numpy: int = 1234) -> None:
        self.state: State = (
            random.Random(python).getstate(),
            np.random.RandomState(numpy).get_state(),
        )
        self._begun: set[int] = set()

    @contextmanager
    def in_place(self) -> Generator[None]:
        """Within, the global generators are these; nothing else draws from them."""
        before = state()
        put(self.state)
        try:
            yield
        finally:
            self.state = state()
            put(before)

    def own(self, function: Callable[..., Any] | None) -> Own:
        """A module's own generators; an earlier run in this process has left no trace in them."""
        own = Own(function)
        states = own.state()
        for place, generator in enumerate(own.generators):
            number = id(generator)
            _first.setdefault(number, (generator, states[place]))
            if number not in self._begun:
                self._begun.add(number)
                states[place] = _first[number][1]
        own.put(states)
        return own
