"""Tools of llm and agent nodes: what the model is given about them, and how one is called.

A tool is a function marked with `tool`, a plain function, or an object with `name`, `description` and `invoke`
(langchain's). A dotted path may also name a module or a class: all tools in it.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar, overload

import msgspec

from assay.errors import UserError
from assay.formats.sygra.graph.called import UserFunction, code_of

F = TypeVar("F", bound=Callable[..., Any])
_EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(name: str = "", /, **ignored: Any) -> Callable[[F], F]: ...


def tool(name: Any = "", /, **ignored: Any) -> Any:
    """Mark a function as a tool, under its own name or another; its docstring is its description."""

    def mark(function: F) -> F:
        function.__graph_tool__ = name if isinstance(name, str) and name else function.__name__  # type: ignore[attr-defined]
        return function

    return mark(name) if callable(name) else mark


class Tool:
    """One tool: `description` is the entry of a request's `tools`."""

    def __init__(self, target: Any, owner: str, where: str) -> None:
        foreign = _is_foreign(target)
        self.name = str(target.name if foreign else getattr(target, "__graph_tool__", target.__name__))
        description = str(target.description) if foreign else inspect.getdoc(target) or ""
        function: dict[str, Any] = {"name": self.name}
        if description:
            function["description"] = description
        function["parameters"] = _foreign_schema(target) if foreign else _schema(target)
        self.description = {"type": "function", "function": function}
        inner = getattr(target, "coroutine", None) or getattr(target, "func", None) if foreign else target
        self.code = code_of(inner or type(target))
        call = _calling(inner) if callable(inner) else target.invoke
        self.call = UserFunction(call, self.name, owner=owner, where=where, ours=False)


def _calling(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    """The function with its arguments as one dict."""
    if inspect.iscoroutinefunction(inspect.unwrap(function)):

        async def later(arguments: dict[str, Any]) -> Any:
            return await function(**arguments)

        return later
    return lambda arguments: function(**arguments)


def load_tools(paths: Any, owner: str, load: Callable[[str, str], Any], where: str) -> list[Tool]:
    """The tools that a node names, each once."""
    tools: dict[str, Tool] = {}
    for path in [paths] if isinstance(paths, str) else paths:
        for target in _tools_in(load(path, where), path, where):
            loaded = Tool(target, owner, where)
            if loaded.name in tools and tools[loaded.name].code != loaded.code:
                raise UserError(f"two tools are called {loaded.name!r}", where=where, fix="rename one of them")
            tools[loaded.name] = loaded
    return list(tools.values())


def _tools_in(target: Any, path: str, where: str) -> Iterable[Any]:
    if isinstance(target, ModuleType) or inspect.isclass(target):
        if inspect.isclass(target) and callable(getattr(target, "get_tools", None)):
            wrapper: Any = target()
            return wrapper.get_tools()
        members = [value for key, value in inspect.getmembers(target) if key[0] != "_"]
        tools = [value for value in members if _is_foreign(value) or hasattr(value, "__graph_tool__")]
        if not tools and isinstance(target, ModuleType):  # a module of plain functions
            tools = [value for value in members if getattr(value, "__module__", "") == target.__name__]
            tools = [value for value in tools if inspect.isfunction(value)]
        if not tools:
            raise UserError(f"{path!r} holds no tools", where=where, fix="mark its functions with `@tool`")
        return tools
    if not callable(target) and not _is_foreign(target):
        raise UserError(f"{path!r} is a {type(target).__name__}, not a tool", where=where)
    return [target]


def _is_foreign(value: Any) -> bool:
    return not inspect.isclass(value) and all(hasattr(value, name) for name in ("name", "description", "invoke"))


def _foreign_schema(target: Any) -> dict[str, Any]:
    schema = getattr(target, "args_schema", None)
    if isinstance(schema, Mapping):
        return dict(schema)
    if schema is not None and hasattr(schema, "model_json_schema"):
        return schema.model_json_schema()
    args = getattr(target, "args", None)
    return {"type": "object", "properties": dict(args), "required": list(args)} if args else _EMPTY


def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    """From the signature: the types as far as they are known, those without a default required."""
    try:
        hints = inspect.get_annotations(function, eval_str=True)
    except Exception:  # a user's annotation that does not evaluate is not a reason to refuse the tool
        hints = {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        properties[name] = _type_schema(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _type_schema(kind: Any) -> dict[str, Any]:
    try:
        (schema,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except (TypeError, ValueError):
        return {}
    return {**schema, "$defs": parts} if parts else schema
