"""A user's function, and how it is best called; tools, which a model calls.

Functions that are not async may block, so they begin in the engine's threads. A thread costs more than most helpers
do: one that proved quick (three calls in a row within 1 ms; the first call, which may import things, is not judged) is
then called directly, every call timed. Three calls over 1 ms, or a single one over 50 ms, send it back to the threads
for good. Called directly, it finds no running event loop, as in a thread, but no time limit ends it. Our own
functions and async ones are called directly.

A tool is a function marked with `tool`, a plain function, or an object with `name`, `description` and `invoke`
(langchain's). A dotted path may also name a module or a class: all tools in it.
"""

import asyncio
import inspect
import time
from asyncio import events
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import msgspec

from assay.formats.sygra.types import Row
from assay.sdk import AssayError, Context, UserError
from assay.usercode import identity, places_in

Load = Callable[[str, str], Any]
QUICK = 0.001
SLOW = 0.05
TRIALS = 3
STRIKES = 3


class NodeFailed(Exception):
    """A helper of a node raised: says which, and where in its file."""


class UserFunction:
    """`name` is what the graph calls it; `arity` the number of arguments that it takes from us."""

    def __init__(self, target: Any, name: str, *, owner: str, where: str) -> None:
        self.name = name
        self.owner = owner
        self.is_class = inspect.isclass(target)
        self.function, plain = _callable(target, name, where)
        self.arity = _arity(plain)
        self.code = code_of(target)
        self._is_async = inspect.iscoroutinefunction(inspect.unwrap(plain))
        ours = str(getattr(target, "__module__", "")).startswith("assay.")
        self._trusted = ours or self._is_async
        self._calls = self._quick = self._strikes = 0

    @property
    def direct(self) -> bool:
        return self._trusted or (self._quick >= TRIALS and self._strikes < STRIKES)

    async def __call__(self, context: Context, *arguments: Any) -> Any:
        try:
            if self._trusted:
                result = self.function(*arguments)
            elif self.direct:
                result = self._without_loop(arguments)
            else:
                result = await context.thread(partial(self._run_timed, arguments))
            return (
                await result if type(result) is not dict and inspect.isawaitable(result) else result
            )
        except (AssayError, TimeoutError, asyncio.CancelledError):
            raise
        except Exception as error:
            place = _line(error, self.function)
            raise NodeFailed(
                f"{self.owner}: {self.name}{place}: {type(error).__name__}: {error}"
            ) from error

    def _without_loop(self, arguments: tuple[Any, ...]) -> Any:
        loop = events._get_running_loop()
        events._set_running_loop(None)
        try:
            return self._run_timed(arguments)
        finally:
            events._set_running_loop(loop)

    def _run_timed(self, arguments: tuple[Any, ...]) -> Any:
        began = time.perf_counter()
        try:
            return self.function(*arguments)
        finally:
            seconds = time.perf_counter() - began
            self._calls += 1
            if self._calls > 1 and seconds <= QUICK:
                self._quick += 1
            elif self._calls > 1:
                self._strikes += STRIKES if seconds > SLOW else 1
                if not self.direct:
                    self._quick = 0


def _callable(target: Any, name: str, where: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what to call, and the function behind it. A class is used through its `apply`, a new
    object for each call."""
    if not callable(target):
        raise UserError(
            f"{name!r} is a {type(target).__name__}, not a function or class", where=where
        )
    if not inspect.isclass(target):
        return target, target
    apply: Any = getattr(target, "apply", None)
    if not callable(apply):
        raise UserError(
            f"the class {name!r} has no `apply`", where=where, fix="add it, as a static method"
        )
    if missing := sorted(getattr(target, "__abstractmethods__", ())):
        raise UserError(
            f"the class {name!r} is abstract", where=where, fix=f"define: {', '.join(missing)}"
        )
    defined: Any = inspect.getattr_static(target, "apply")
    if (
        isinstance(defined, (staticmethod, classmethod))
        or next(iter(inspect.signature(defined).parameters), "") != "self"
    ):
        return apply, apply
    return lambda *arguments: apply(target(), *arguments), partial(defined, None)


def _arity(function: Callable[..., Any]) -> int:
    if isinstance(function, partial):
        return _arity(function.func) - len(function.args)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 2
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 2
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def code_of(target: Any) -> str:
    """The identity of a function, or of all that a class is made of."""
    if not inspect.isclass(target):
        return identity(target)
    identities: list[str] = []
    for kind in target.__mro__:
        functions = [
            inspect.unwrap(getattr(value, "__func__", value)) for value in vars(kind).values()
        ]
        methods = [value for value in functions if inspect.isfunction(value)]
        if kind.__module__ not in ("builtins", "abc", "typing") and methods:
            identities.append(identity(methods[0]))
    return " ".join([target.__qualname__, *identities])


def _line(error: BaseException, function: Callable[..., Any]) -> str:
    """` (file.py:12)`: the last line in the function's own file that the error went through."""
    file = getattr(getattr(inspect.unwrap(function), "__code__", None), "co_filename", None)
    own = places_in(error, lambda name: file in (name, __file__))
    return f" ({own[-1][0].rpartition('/')[2]}:{own[-1][1]})" if own else ""


_EMPTY: Row = {"type": "object", "properties": {}}


def tool(name: Any = "", /, **ignored: Any) -> Any:
    """Mark a function as a tool, under its own name or another; its docstring is its description."""

    def mark(function: Any) -> Any:
        function.__graph_tool__ = name if isinstance(name, str) and name else function.__name__
        return function

    return mark(name) if callable(name) else mark


class Tool:
    """One tool: `description` is the entry of a request's `tools`."""

    def __init__(self, target: Any) -> None:
        foreign = _is_foreign(target)
        self.name = str(
            target.name if foreign else getattr(target, "__graph_tool__", target.__name__)
        )
        description = str(target.description) if foreign else inspect.getdoc(target) or ""
        function: Row = {"name": self.name}
        if description:
            function["description"] = description
        function["parameters"] = _foreign_schema(target) if foreign else _schema(target)
        self.description = {"type": "function", "function": function}
        inner = (
            getattr(target, "coroutine", None) or getattr(target, "func", None)
            if foreign
            else target
        )
        self.code = code_of(inner or type(target))


def load_tools(paths: Any, load: Load, where: str) -> list[Tool]:
    """The tools that a node names, each once."""
    tools: dict[str, Tool] = {}
    for path in [paths] if isinstance(paths, str) else paths:
        for target in _tools_in(load(path, where), path, where):
            loaded = Tool(target)
            if loaded.name in tools and tools[loaded.name].code != loaded.code:
                raise UserError(
                    f"two tools are called {loaded.name!r}", where=where, fix="rename one of them"
                )
            tools[loaded.name] = loaded
    return list(tools.values())


def _tools_in(target: Any, path: str, where: str) -> Iterable[Any]:
    if isinstance(target, ModuleType) or inspect.isclass(target):
        if inspect.isclass(target) and callable(getattr(target, "get_tools", None)):
            wrapper: Any = target()
            return wrapper.get_tools()
        members = [value for key, value in inspect.getmembers(target) if key[0] != "_"]
        tools = [
            value for value in members if _is_foreign(value) or hasattr(value, "__graph_tool__")
        ]
        if not tools and isinstance(target, ModuleType):  # a module of plain functions
            tools = [
                value for value in members if getattr(value, "__module__", "") == target.__name__
            ]
            tools = [value for value in tools if inspect.isfunction(value)]
        if not tools:
            raise UserError(
                f"{path!r} holds no tools", where=where, fix="mark its functions with `@tool`"
            )
        return tools
    if not callable(target) and not _is_foreign(target):
        raise UserError(f"{path!r} is a {type(target).__name__}, not a tool", where=where)
    return [target]


def _is_foreign(value: Any) -> bool:
    return not inspect.isclass(value) and all(
        hasattr(value, name) for name in ("name", "description", "invoke")
    )


def _foreign_schema(target: Any) -> Row:
    schema = getattr(target, "args_schema", None)
    if isinstance(schema, Mapping):
        return dict(schema)
    if schema is not None and hasattr(schema, "model_json_schema"):
        return schema.model_json_schema()
    args = getattr(target, "args", None)
    return {"type": "object", "properties": dict(args), "required": list(args)} if args else _EMPTY


# a user's annotation that does not evaluate is not a reason to refuse the tool
def _schema(function: Callable[..., Any]) -> Row:
    """From the signature: the types as far as they are known, those without a default required."""
    try:
        hints = inspect.get_annotations(function, eval_str=True)
    except Exception:
        hints = {}
    properties: Row = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        properties[name] = _type_schema(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _type_schema(kind: Any) -> Row:
    try:
        (schema,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except (TypeError, ValueError):
        return {}
    return {**schema, "$defs": parts} if parts else schema
