"""`assay list` and `assay show`: plug-ins described from their source, so that none of them is run."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import assay.registry as registry  # `from assay import …` would import the whole engine first
from assay.errors import UserError
from assay.registry import _FILES, Registry, nearest

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Described:
    """What a person needs to use a plug-in. `engine` are the arguments that the engine fills."""

    def __init__(self, kind: str, name: str, origin: str) -> None:
        self.kind = kind
        self.name = name
        self.origin = origin
        self.doc = ""
        self.module_doc = ""
        self.engine: list[str] = []
        self.parameters: list[dict[str, Any]] = []
        self.returns = ""

    @property
    def first_line(self) -> str:
        return next(iter(self.doc.splitlines()), "")

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class PlugIn(NamedTuple):
    """A line of the list."""

    kind: str
    name: str
    about: str
    origin: str


def list_plugins(kind: str = "") -> list[PlugIn]:
    """The plug-ins of a kind (`scorer`, `metrics` …), or of every kind, with the first line of their docs."""
    chosen = [_kind(kind)] if kind else kinds().values()
    return [PlugIn(plug_ins.kind, name, *_about(plug_ins, name)) for plug_ins in chosen for name in plug_ins.names()]


def show(name: str, *, kind: str = "") -> list[Described]:
    """A plug-in with its parameters: one of this name for each kind that has it, or a function by its place."""
    if kind:
        return [describe(_kind(kind), name)]
    found = [describe(plug_ins, name) for plug_ins in kinds().values() if name in plug_ins.names()]
    if not found and "." in name:
        found = [describe(kinds()["scorer"], name)]
        found[0].kind = "function"
    if not found:
        names = {name for plug_ins in kinds().values() for name in plug_ins.names()}
        raise UserError(f"there is no plug-in {name!r}", fix=nearest(name, names))
    return found


def kinds() -> dict[str, Registry]:
    """Every kind of plug-in, by its name."""
    return {value.kind: value for value in vars(registry).values() if isinstance(value, Registry)}


def _kind(name: str) -> Registry:
    """The registry of a kind; its plural is understood, too."""
    plug_ins = kinds().get(name) or kinds().get(name.removesuffix("s"))
    if plug_ins is None:
        raise UserError(f"there is no kind of plug-in {name!r}", fix=nearest(name, kinds()))
    return plug_ins


def _about(plug_ins: Registry, name: str) -> tuple[str, str]:
    """First line and origin; a plug-in of somebody else that cannot be imported is listed with its reason."""
    try:
        return summary(plug_ins, name)
    except Exception as error:  # an entry point runs foreign code when it is loaded
        return f"cannot be loaded: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", ""


def describe(plug_ins: Registry, name: str) -> Described:
    """A plug-in by its name, a dotted name or `file.py:function`; what its source does not tell, the object does."""
    file = _source_file(plug_ins, name)
    if file is not None:
        function = name.rpartition(":")[2] if ".py:" in name else _FILES.get(name, name)
        found = _from_source(plug_ins.kind, name, file, function)
        if found is not None:
            return found
    return _from_object(plug_ins.kind, name, plug_ins.get(name))


def summary(plug_ins: Registry, name: str) -> tuple[str, str]:
    """First line and origin of a plug-in. A built-in's line is found in its text, which is quicker than parsing it."""
    file = _source_file(plug_ins, name)
    function = re.escape(_FILES.get(name, name))
    text = file.read_text("utf-8") if file is not None else ""
    found = re.search(rf'^(?:async )?def {function}\(.*?:\n    r?"""(.+?)(?:\n|""")', text, re.DOTALL | re.MULTILINE)
    if found is None:
        described = describe(plug_ins, name)
        return described.first_line, described.origin
    return found[1].strip(), f"{file}:{text.count(chr(10), 0, found.start()) + 1}"


def _source_file(plug_ins: Registry, name: str) -> Path | None:
    if ".py:" in name:
        return Path(name.rpartition(":")[0])
    module = _FILES.get(name, name)
    if not module.isidentifier() or module.startswith("_"):
        return None
    package = plug_ins.package
    if name in registry.formats(plug_ins.kind):
        package, module = f"assay.formats.{name}", plug_ins.kind
    elif not package:
        return None
    spec = importlib.util.find_spec(f"{package}.{module}")
    return Path(spec.origin) if spec is not None and spec.origin else None


def _from_source(kind: str, name: str, file: Path, function: str) -> Described | None:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in tree.body:
        if isinstance(node, Function) and node.name == function:
            made = Described(kind, name, f"{file}:{node.lineno}")
            made.doc = ast.get_docstring(node) or ""
            made.module_doc = ast.get_docstring(tree) or ""
            _read_signature(made, node.args)
            made.returns = ast.unparse(node.returns) if node.returns else ""
            return made
    return None


def _read_signature(made: Described, arguments: ast.arguments) -> None:
    given = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(given) - len(arguments.defaults)) + arguments.defaults
    made.engine = [_written(one, default) for one, default in zip(given, defaults, strict=True)]
    made.engine += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    made.engine += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        made.parameters.append(
            {
                "name": one.arg,
                "type": ast.unparse(one.annotation) if one.annotation else "any",
                "required": default is None,
                "default": None if default is None else ast.unparse(default),
            }
        )


def _written(argument: ast.arg, default: ast.expr | None) -> str:
    typed = f"{argument.arg}: {ast.unparse(argument.annotation)}" if argument.annotation else argument.arg
    return typed if default is None else f"{typed} = {ast.unparse(default)}"


def _from_object(kind: str, name: str, function: Callable[..., Any]) -> Described:
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    origin = f"{code.co_filename}:{code.co_firstlineno}" if code else f"{plain.__module__}.{plain.__qualname__}"
    if code is not None:
        found = _from_source(kind, name, Path(code.co_filename), plain.__name__)
        if found is not None:
            return found
    made = Described(kind, name, origin)
    made.doc = inspect.getdoc(plain) or ""
    for one in inspect.signature(plain).parameters.values():
        shown = inspect.formatannotation(one.annotation) if one.annotation is not one.empty else ""
        if one.kind is not one.KEYWORD_ONLY:
            made.engine.append(f"{one.name}: {shown}" if shown else one.name)
            continue
        required = one.default is one.empty
        default = None if required else repr(one.default)
        made.parameters.append({"name": one.name, "type": shown or "any", "required": required, "default": default})
    return made
