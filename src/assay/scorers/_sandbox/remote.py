"""An object of the other process. What is done to it is done there, and only the result comes back.

Whether it equals a plain value is never asked: an object that says yes to everything would pass every test. The same
holds for all that has a plain value as its second operand; between two objects of the other process it is asked. A
method that is called by its name (`value.__mul__(3)`) is always asked.
"""

import builtins
import math
import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

BUILTINS = "len iter next bool str repr float int complex hash dir abs round format reversed"
OPERATORS = "index neg pos invert getitem setitem delitem"
ALONE: dict[str, Callable[..., Any]] = {
    **{name: getattr(builtins, name) for name in BUILTINS.split()},
    **{name: getattr(operator, name) for name in OPERATORS.split()},
    **{name: getattr(math, name) for name in ("floor", "ceil", "trunc")},
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value, *error: type(value).__exit__(value, *error),
    "instancecheck": lambda kind, value: isinstance(value, kind),
    "subclasscheck": lambda kind, value: issubclass(value, kind),
}
BETWEEN = "add sub mul truediv floordiv mod pow matmul lshift rshift xor eq ne lt le gt ge"
PAIRS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in BETWEEN.split()},
    "and": operator.and_,
    "or": operator.or_,
}
OPERATIONS: dict[str, Callable[..., Any]] = {
    **ALONE,
    **PAIRS,
    "call": lambda function, *arguments, **named: function(*arguments, **named),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "contains": operator.contains,
    "await": lambda coroutine: import_module("asyncio").run(coroutine),
}


class Remote:
    """See above. `_wire` leads to the other process, `_number` is the object's there."""

    __slots__ = ("_number", "_wire")

    def __init__(self, wire: Any, number: int) -> None:
        object.__setattr__(self, "_wire", wire)
        object.__setattr__(self, "_number", number)

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        return self._wire.ask("call", self, *arguments, **named)

    def __getattribute__(self, name: str) -> Any:
        if name in ("_wire", "_number", "__class__"):
            return object.__getattribute__(self, name)
        if name.startswith("__array"):  # numpy would take an address in our memory from it
            raise AttributeError(name)
        return self._wire.ask("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._wire.ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._wire.ask("delattr", self, name)

    def __contains__(self, item: Any) -> bool:
        if isinstance(item, Remote):
            return bool(self._wire.ask("contains", self, item))
        return any(item == each for each in iter(self))  # type: ignore[call-overload]


def alone(name: str) -> Callable[..., Any]:
    def method(self: Remote, *arguments: Any) -> Any:
        return self._wire.ask(name, self, *arguments)

    return method


def pair(name: str) -> Callable[[Remote, Any], Any]:
    def method(self: Remote, other: Any) -> Any:
        return self._wire.ask(name, self, other) if isinstance(other, Remote) else NotImplemented

    return method


for _name in ALONE:
    setattr(Remote, f"__{_name}__", alone(_name))
for _name in PAIRS:
    setattr(Remote, f"__{_name}__", pair(_name))


async def finished(coroutine: Remote) -> Any:
    """A coroutine of the other process, as one of ours: when it is awaited, it runs there to its end."""
    return coroutine._wire.ask("await", coroutine)
