"""Values as JSON, and back."""

import json
import sys
import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .remote import Remote, finished

Line = list[Any]
PLAIN = {type(None), bool, int, float, str}
BASES: dict[Any, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
}
GROUPS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "bytearray": bytearray,
}
CHANGING = (list, dict, set, bytearray)


def _state(*names: str) -> Callable[[Any], Any]:
    return lambda value: tuple(getattr(value, name) for name in names)


OTHERS: dict[str, Callable[[Any], Any]] = {  # from what a value is built again
    "builtins.bytes": list,
    "builtins.complex": _state("real", "imag"),
    "builtins.range": _state("start", "stop", "step"),
    "builtins.slice": _state("start", "stop", "step"),
    "collections.Counter": dict,
    "collections.OrderedDict": lambda value: list(value.items()),
    "collections.deque": lambda value: (list(value), value.maxlen),
    "datetime.date": str,
    "datetime.datetime": str,
    "datetime.time": str,
    "datetime.timedelta": _state("days", "seconds", "microseconds"),
    "decimal.Decimal": str,
    "fractions.Fraction": str,
    "numpy.ndarray": lambda value: (value.tolist(), value.dtype.str),
    "uuid.UUID": str,
}


class Numbered:
    """The lists, dicts, sets and byte arrays of one exchange: both sides number them in the same order."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.numbers: dict[int, int] = {}

    def add(self, value: Any) -> None:
        self.numbers[id(value)] = len(self.values)
        self.values.append(value)


class Values:
    """What one end of a wire knows of the objects on both sides."""

    numbered = Numbered

    def __init__(self, wire: Any) -> None:
        self.wire = wire
        self.objects = Numbered()  # ours that the other side can name
        self.errors: dict[tuple[str, str], type[BaseException]] = {}

    def apart(self, value: Any, seen: Numbered) -> Any:
        """A value as JSON."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is Remote and value._wire is self.wire:
            return ["yours", value._number]
        if id(value) in seen.numbers:
            return ["same", seen.numbers[id(value)]]
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in OTHERS:
            return ["other", name, self.apart(OTHERS[name](value), Numbered())]
        if isinstance(value, tuple(BASES)):
            return next(plain(value) for base, plain in BASES.items() if isinstance(value, base))
        if isinstance(value, CHANGING):
            seen.add(value)
        if isinstance(value, tuple(GROUPS.values())):
            return self.content(value, seen)
        return self.object(value, seen)

    def content(self, value: Any, seen: Numbered) -> Line:
        tag, kind = next((tag, kind) for tag, kind in GROUPS.items() if isinstance(value, kind))
        items = list(dict.items(value) if kind is dict else kind.__iter__(value))
        if kind is dict:
            return [tag, [[self.apart(key, seen), self.apart(item, seen)] for key, item in items]]
        return [
            tag,
            items if set(map(type, items)) <= PLAIN else [self.apart(item, seen) for item in items],
        ]

    def object(self, value: Any, seen: Numbered) -> Any:
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        if isinstance(value, BaseException):
            return ["error", self.parts(value)]
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["kind", self.names(value)]
        if isinstance(value, type) and value.__module__ == "builtins":
            return ["type", value.__name__]
        numpy = sys.modules.get("numpy")
        if numpy and isinstance(value, numpy.generic):
            return self.apart(value.item(), seen)
        if id(value) not in self.objects.numbers:
            self.objects.add(value)
        tag = "coroutine" if isinstance(value, types.CoroutineType) else "mine"
        return [tag, self.objects.numbers[id(value)]]

    def whole(self, value: Any, seen: Numbered) -> Any:
        """The value that the JSON stands for, made of nothing but our own types."""
        if not isinstance(value, list):
            return value
        tag, content = value[0], value[1]
        if tag in GROUPS:
            return self.group(GROUPS[tag], content, seen)
        match tag:
            case "same":
                return seen.values[content]
            case "other":
                return built(content, self.whole(value[2], Numbered()))
            case "yours":
                return self.objects.values[content]
            case "module" if not {"__main__", "_sandbox"} & set(content.split(".")):
                return import_module(content)
            case "error":
                return self.error(content)
            case "kind":
                return self.error_kind(*content)
            case "type":
                return builtin(content, object)
            case "coroutine":
                return finished(Remote(self.wire, content))
            case "mine":
                return Remote(self.wire, content)
            case _:
                raise TypeError(f"{tag} is not a kind of value")

    def group(self, kind: Any, content: Any, seen: Numbered) -> Any:
        if kind not in CHANGING:
            return kind(self.all_whole(content, seen))
        made = kind()
        seen.add(made)
        self.fill(made, content, seen)
        return made

    def all_whole(self, content: list[Any], seen: Numbered) -> list[Any]:
        return (
            content
            if set(map(type, content)) <= PLAIN
            else [self.whole(item, seen) for item in content]
        )

    def fill(self, group: Any, content: Any, seen: Numbered) -> None:
        """Give a list, dict, set or byte array this content."""
        pairs = isinstance(group, dict)
        items: list[Any] = (
            [self.all_whole(pair, seen) for pair in content]
            if pairs
            else self.all_whole(content, seen)
        )
        if isinstance(group, (list, bytearray)):
            group[:] = items
        else:
            group.clear()
            group.update(items)

    def parts(self, error: BaseException) -> Line:
        """An exception: its class, its arguments and its attributes."""
        try:
            more = [
                self.apart(list(error.args), Numbered()),
                self.apart(dict(vars(error)), Numbered()),
            ]
            dumps(more)
        except (RecursionError, MemoryError, ValueError, TypeError):
            more = [["list", []], ["dict", []]]
        return [*self.names(type(error)), *more]

    def names(self, error: type[BaseException]) -> list[str]:
        base = next(kind for kind in error.__mro__ if kind.__module__ == "builtins")
        return [error.__module__, error.__name__, base.__name__]

    def error(self, parts: Line) -> BaseException:
        kind = self.error_kind(*parts[:3])
        arguments, attributes = self.whole(parts[3], Numbered()), self.whole(parts[4], Numbered())
        try:
            error = kind(*arguments)
        except Exception:
            error = kind.__new__(kind)
            error.args = tuple(arguments)
        vars(error).update(attributes)
        return error

    def error_kind(self, module: str, name: str, base: str) -> type[BaseException]:
        """A built-in exception or one of the standard library; else a class of its own, the same every time. Those of
        `unittest` are not taken over: one of them says that a test is to be skipped."""
        if (module, name) not in self.errors:
            kind: Any = None
            if module.split(".")[0] in sys.stdlib_module_names - {"unittest"}:
                kind = vars(sys.modules.get(module, types)).get(name)
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                kind = type(name, (builtin(base, BaseException),), {"__module__": module})
            self.errors[module, name] = kind
        return self.errors[module, name]


def builtin(name: str, above: type) -> Any:
    kind = vars(sys.modules["builtins"])[name]
    if not (isinstance(kind, type) and issubclass(kind, above)):
        raise TypeError(f"{name} is not a {above.__name__}")
    return kind


def built(name: str, content: Any) -> Any:
    """A value of one of the types in OTHERS."""
    module, _, kind = name.rpartition(".")
    make = OTHERS[name] and getattr(import_module(module), "array" if kind == "ndarray" else kind)
    if kind in ("date", "datetime", "time"):
        return make.fromisoformat(content)
    return make(*content) if isinstance(content, tuple) else make(content)


def dumps(value: Any) -> str:
    return unlimited(json.dumps, value)


def unlimited(function: Callable[[Any], Any], value: Any) -> Any:
    """A whole number may have any number of digits on its way; elsewhere Python's own limit holds."""
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return function(value)
    finally:
        sys.set_int_max_str_digits(digits)
