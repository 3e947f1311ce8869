"""`assay list` and `assay show`: plug-ins described from their source, so that none of them is run."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import assay.registry as registry  # `from assay import …` would import the whole engine first
from assay.registry import _FILES, Registry, nearest
from assay.sdk import JsonObject, UserError

if TYPE_CHECKING:
    from assay.analysis.look.benchmarks import BenchmarkShown
    from assay.analysis.look.providers import ProviderEntry, ServedModelEntry

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
        self.parameters: list[JsonObject] = []
        self.returns = ""
        self.shares = False  # a group of parameters, which its own source does not show

    @property
    def first_line(self) -> str:
        return next(iter(self.doc.splitlines()), "")

    def to_dict(self) -> JsonObject:
        return {name: value for name, value in vars(self).items() if name != "shares"}


class PlugIn(NamedTuple):
    """A line of the list."""

    kind: str
    name: str
    about: str
    origin: str


@overload
def list_plugins(kind: str = "") -> list[PlugIn]: ...
@overload
def list_plugins(
    kind: str, provider: str
) -> "list[PlugIn] | list[ProviderEntry] | list[ServedModelEntry]": ...
def list_plugins(
    kind: str = "", provider: str = ""
) -> "list[PlugIn] | list[ProviderEntry] | list[ServedModelEntry]":
    """The plug-ins of a kind (`scorer`, `metrics` …), or of every kind, with the first line of
    their docs; `providers`; or the models that a provider has, which asks its server."""
    if kind in ("provider", "providers") or provider:
        from assay.analysis.look.providers import list_providers, list_served

        if provider and kind.removesuffix("s") != "model":
            raise UserError(
                f"{kind!r} are not those of a provider", fix=f"assay list models {provider}"
            )
        return list_served(provider) if provider else list_providers()
    chosen = [_kind(kind)] if kind else kinds().values()
    return [
        PlugIn(plug_ins.kind, name, *_about(plug_ins, name))
        for plug_ins in chosen
        for name in plug_ins.names()
    ]


def show(
    name: str,
    *,
    kind: str = "",
    include_path: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> "list[Described] | list[BenchmarkShown]":
    """A plug-in with its parameters: one of this name for each kind that has it, or a function by
    its place; or a benchmark, with what it asks about its first document."""
    if kind and kind.removesuffix("s") != "benchmark":
        return [describe(_kind(kind), name)]
    described = (
        []
        if kind
        else [describe(plug_ins, name) for plug_ins in kinds().values() if _has(plug_ins, name)]
    )
    if not described and "." in name and not kind:
        described = [describe(kinds()["scorer"], name)]
        described[0].kind = "function"
    if described:
        return described
    from assay.analysis.look.benchmarks import show_benchmark

    if (benchmark := show_benchmark(name, include_path, progress)) is not None:
        return [benchmark]
    names = {name for plug_ins in kinds().values() for name in plug_ins.names()}
    raise UserError(f"there is no plug-in and no benchmark {name!r}", fix=nearest(name, names))


def _has(plug_ins: Registry, name: str) -> bool:
    """Return whether there is such a plug-in; nothing is imported where its source tells."""
    if ".py:" in name:
        return False
    names = (*plug_ins._found, *registry._entry_points(f"assay.{plug_ins.kind}s"))
    return name in names or _source_file(plug_ins, name) is not None


def kinds() -> dict[str, Registry]:
    """Every kind of plug-in, by its name; collections of benchmarks are listed by what they
    hold."""
    own = [value for value in vars(registry).values() if isinstance(value, Registry)]
    return {value.kind: value for value in own if value is not registry.benchmark}


def _kind(name: str) -> Registry:
    """The registry of a kind; its plural is understood, too."""
    plug_ins = kinds().get(name) or kinds().get(name.removesuffix("s"))
    if plug_ins is None:
        raise UserError(
            f"there is no kind of plug-in {name!r}", fix=nearest(name, [*kinds(), "providers"])
        )
    return plug_ins


def _about(plug_ins: Registry, name: str) -> tuple[str, str]:
    """First line and origin; a plug-in of somebody else that cannot be imported is listed with its
    reason."""
    try:
        return summary(plug_ins, name)
    except Exception as error:  # an entry point runs foreign code when it is loaded
        return (
            f"cannot be loaded: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            "",
        )


def describe(plug_ins: Registry, name: str) -> Described:
    """A plug-in by its name, a dotted name or `file.py:function`; what its source does not tell,
    the object does."""
    file = _source_file(plug_ins, name)
    if file is not None:
        function = name.rpartition(":")[2] if ".py:" in name else _FILES.get(name, name)
        described = _from_source(plug_ins.kind, name, file, function)
        if described is not None:
            return _with_group(described, plug_ins) if described.shares else described
    return _from_object(plug_ins.kind, name, plug_ins.get(name))


def summary(plug_ins: Registry, name: str) -> tuple[str, str]:
    """First line and origin of a plug-in. A built-in's line is found in its text, which is quicker
    than parsing it."""
    file = _source_file(plug_ins, name)
    function = re.escape(_FILES.get(name, name))
    text = file.read_text("utf-8") if file is not None else ""
    match = re.search(
        rf'^(?:async )?def {function}\(.*?:\n    r?"""(.+?)(?:\n|""")',
        text,
        re.DOTALL | re.MULTILINE,
    )
    if match is None:
        described = describe(plug_ins, name)
        return described.first_line, described.origin
    return match[1].strip(), f"{file}:{text.count(chr(10), 0, match.start()) + 1}"


def _source_file(plug_ins: Registry, name: str) -> Path | None:
    if ".py:" in name:
        return Path(name.rpartition(":")[0])
    module = _FILES.get(name, name)
    if not module.isidentifier() or module.startswith("_"):
        return None
    spec = importlib.util.find_spec(f"{plug_ins.package}.{module}") if plug_ins.package else None
    if spec is not None and spec.origin:
        return Path(spec.origin)
    formats = Path(registry.__file__).parent / "formats"
    files = (formats / format / f"{plug_ins.kind}.py" for format in registry.formats(plug_ins.kind))
    return next((file for file in files if f"\ndef {module}(" in file.read_text("utf-8")), None)


def _from_source(kind: str, name: str, file: Path, function: str) -> Described | None:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in tree.body:
        if isinstance(node, Function) and node.name == function:
            described = Described(kind, name, f"{file}:{node.lineno}")
            described.doc = ast.get_docstring(node) or ""
            described.module_doc = ast.get_docstring(tree) or ""
            calls = [call for call in node.decorator_list if isinstance(call, ast.Call)]
            described.shares = any(
                keyword.arg == "params" for call in calls for keyword in call.keywords
            )
            _read_signature(described, node.args)
            described.returns = ast.unparse(node.returns) if node.returns else ""
            return described
    return None


def _read_signature(described: Described, arguments: ast.arguments) -> None:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    for argument, default in zip(positional, defaults, strict=True):
        typed = f"{argument.arg}: {_source_text(argument.annotation)}".removesuffix(": ")
        described.engine.append(f"{typed} = {_source_text(default)}".removesuffix(" = "))
    described.engine += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    described.engine += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        described.parameters.append(
            _parameter(argument.arg, _source_text(argument.annotation), _source_text(default))
        )


def _source_text(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


def _from_object(kind: str, name: str, function: Callable[..., Any]) -> Described:
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    origin = f"{plain.__module__}.{getattr(plain, '__qualname__', '')}"
    if code is not None:
        from_source = _from_source(kind, name, Path(code.co_filename), plain.__name__)
        if from_source is not None:
            return from_source
        origin = f"{code.co_filename}:{code.co_firstlineno}"
    described = Described(kind, name, origin)
    described.doc = inspect.getdoc(plain) or ""
    for parameter in inspect.signature(plain).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            described.parameters.append(_parameter_of(parameter))
        else:
            described.engine.append(
                f"{parameter.name}: {_annotation(parameter)}".removesuffix(": ")
            )
    return described


def _with_group(described: Described, plug_ins: Registry) -> Described:
    """With the parameters and the words that it shares with others: only the object has them."""
    function = plug_ins.get(described.name)
    known = {parameter["name"] for parameter in described.parameters}
    described.doc = inspect.getdoc(function) or ""
    described.engine = [argument for argument in described.engine if not argument.startswith("**")]
    shared = registry.parameters(function)
    described.parameters += [
        _parameter_of(each) for name, each in shared.items() if name not in known
    ]
    return described


def _annotation(parameter: inspect.Parameter) -> str:
    given = parameter.annotation
    return "" if given is parameter.empty else inspect.formatannotation(given)


def _parameter_of(parameter: inspect.Parameter) -> JsonObject:
    default = "" if parameter.default is parameter.empty else repr(parameter.default)
    return _parameter(parameter.name, _annotation(parameter), default)


def _parameter(name: str, type: str, default: str) -> JsonObject:
    """Describe a parameter; one without a default is required."""
    required = not default
    return {"name": name, "type": type or "any", "required": required, "default": default or None}
