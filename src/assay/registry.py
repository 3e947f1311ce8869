"""One registry class for every kind of plug-in.

A name is looked up, in this order, as: something registered by a decorator, a built-in (the file of that name in
the kind's folder), a format's (by its namespace, `<format>.<name>`, or in its file `<kind>.py`), an entry point (group
`assay.<kind>s`), a dotted name (`package.module.function`), or a file (`path.py:function`). Nothing is imported before
it is asked for.
"""

import difflib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from assay.errors import UserError
from assay.usercode import load_file

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

F = TypeVar("F", bound=Callable[..., Any])
_FILES = {"llama.cpp": "llama_cpp"}  # names that a module cannot have, and the modules that have them


def nearest(name: str, valid: Iterable[str]) -> str:
    """`Did you mean …?` and the valid names, as one line for an error's fix."""
    names = sorted(set(valid))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(names)}" if names else hint.strip()


class Registry:
    """The plug-ins of one kind, by name."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._found: dict[str, Callable[..., Any]] = {}

    @overload
    def __call__(self, function: F) -> F: ...

    @overload
    def __call__(self, *, name: str = "", **marks: Any) -> Callable[[F], F]: ...

    def __call__(self, function: F | None = None, *, name: str = "", **marks: Any) -> F | Callable[[F], F]:
        """Register a function under its own name; marks (`version=2`, `batch=128`) are kept on the function."""

        def register(function: F) -> F:
            key = name or function.__name__
            known = self._found.get(key)
            if known is not None and _defined_as(known) != _defined_as(function):
                raise UserError(
                    f"two {self.kind}s are called {key!r}",
                    where=f"{_origin(known)} and {_origin(function)}",
                    fix="rename one of them",
                )
            function.__assay__ = {"kind": self.kind, "name": key, **marks}  # type: ignore[attr-defined]
            self._found[key] = function
            return function

        return register(function) if function is not None else register

    def get(self, name: str, *, base: Path | None = None, where: str = "") -> Callable[..., Any]:
        """The function called `name`; `base` is the folder that relative files are found in."""
        found = self._found.get(name) or self._built_in(name) or self.of_format(name) or self._entry_point(name)
        if found is None and ".py:" in name:
            path, _, attribute = name.rpartition(":")
            found = load_function(path, attribute, base=base, where=where)
        if found is None and "." in name:
            found = _dotted(name, where)
        if found is None:
            raise UserError(f"unknown {self.kind} {name!r}", where=where, fix=nearest(name, self.names()))
        return found

    def names(self) -> list[str]:
        """Every name that needs no import of user code: built-ins, formats' readers and writers, registered ones,
        entry points. Namespaced names of formats are left out: which of them exist depends on what was imported."""
        built_in = []
        if self.package:
            package = importlib.import_module(self.package)
            built_in = [module.name for module in pkgutil.iter_modules(package.__path__) if module.name[0] != "_"]
        spelled = {module: name for name, module in _FILES.items()}
        built_in = [spelled.get(module, module) for module in built_in]
        if self.kind in ("reader", "writer"):  # those of a format are called like it
            built_in += formats(self.kind)
        registered = [name for name, found in self._found.items() if "." not in name or not _is_formats(found)]
        return sorted({*built_in, *registered, *_entry_points(f"assay.{self.kind}s")})

    def _built_in(self, name: str) -> Callable[..., Any] | None:
        name = _FILES.get(name, name)
        module = f"{self.package}.{name}"
        if not self.package or not name.isidentifier() or name[0] == "_" or importlib.util.find_spec(module) is None:
            return None
        return getattr(importlib.import_module(module), name)

    def of_format(self, name: str) -> Callable[..., Any] | None:
        """What a format adds under this name, or None."""
        namespace = name.partition(".")[0]
        if namespace in formats():
            file = f".{self.kind}" if namespace in formats(self.kind) else ""
            importlib.import_module(f"assay.formats.{namespace}{file}")
        if name not in self._found:
            for format in formats(self.kind):
                importlib.import_module(f"assay.formats.{format}.{self.kind}")
        return self._found.get(name)

    def _entry_point(self, name: str) -> Callable[..., Any] | None:
        entry = _entry_points(f"assay.{self.kind}s").get(name)
        return None if entry is None else entry.load()


@cache
def formats(file: str = "") -> list[str]:
    """The formats of this installation, by name; with `file`, those whose folder has `<file>.py`."""
    folder = Path(__file__).parent / "formats"
    if file:
        return sorted(path.parent.name for path in folder.glob(f"*/{file}.py"))
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]))


@cache
def _entry_points(group: str) -> "dict[str, EntryPoint]":
    """Looked for once per process: it means reading the metadata of every installed package."""
    if not _announced():
        return {}
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


@cache
def _announced() -> bool:
    """Whether any package has plug-ins for us: a look at the files costs a tenth of importlib.metadata's answer."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            if os.path.isfile(folder):  # a zip file: let the library look into it
                return True
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if b"[assay." in file.read():
                            return True
                except OSError:
                    continue
    return False


def load_function(path: str, name: str, *, base: Path | None = None, where: str = "") -> Callable[..., Any]:
    """The function `name` of the Python file `path`; the file's folder is importable while and after it loads."""
    file = (base or Path()) / path
    if not file.is_file():
        raise UserError(f"there is no file {path!r}", where=where, fix=f"looked for {file}")
    module = load_file(file, where=where)
    found = getattr(module, name, None)
    if not callable(found):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UserError(f"{path!r} has no function {name!r}", where=where, fix=nearest(name, public))
    return found


def _dotted(name: str, where: str) -> Callable[..., Any] | None:
    module, _, attribute = name.rpartition(".")
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and (module == missing or module.startswith(f"{missing}.")):
            return None
        raise UserError(f"{name!r} cannot be imported: {type(error).__name__}: {error}", where=where) from error
    return found if callable(found) else None


def _is_formats(function: Callable[..., Any]) -> bool:
    return str(getattr(function, "__module__", "")).startswith("assay.formats.")


def _defined_as(function: Callable[..., Any]) -> tuple[str, str]:
    """Module and name: equal for a function that is defined again, in a notebook's cell or in an edited file."""
    return function.__module__, getattr(function, "__qualname__", repr(function))


def _origin(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
    return f"{code.co_filename}:{code.co_firstlineno}"


# ---- parameters: the signature is the schema


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a config may set: the keyword-only ones."""
    signature = inspect.signature(function)
    return {name: p for name, p in signature.parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def by_keyword(function: Callable[..., Any], *taken: str) -> Callable[..., Any]:
    """What stands for a function whose parameters may be set by any keyword (EEN's forms), but for those `taken` by the
    engine."""

    def view(**params: Any) -> None: ...

    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    called = inspect.signature(function).parameters.values()
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in called if p.name not in taken and p.kind in kinds]
    rest = [p for p in called if p.kind is p.VAR_KEYWORD]
    view.__signature__ = inspect.Signature([*named, *rest])  # type: ignore[attr-defined]
    view.__name__ = getattr(function, "__name__", type(function).__name__)
    return view


def check_params(
    function: Callable[..., Any],
    params: Mapping[str, Any],
    *,
    where: str = "",
    reserved: Iterable[str] = (),
    given: int | None = None,
) -> dict[str, Any]:
    """`params` as they will be passed: unknown and missing names are refused, types are converted by annotation.

    User code need not make its parameters keyword-only: with `given`, what follows the engine's own first `given`
    arguments may be set as well.
    """
    called = inspect.signature(function).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in called.values())
    known = parameters(function)
    if given is not None:
        free = [p for p in called.values() if p.kind is p.POSITIONAL_OR_KEYWORD][given:]
        known = {**{p.name: p for p in free}, **known}
    known = {name: p for name, p in known.items() if name not in set(reserved)}
    name = getattr(function, "__name__", str(function))
    checked: dict[str, Any] = {}
    hints = _hints(function)
    for key, value in params.items():
        if key in known:
            checked[key] = _convert(value, hints.get(key, Any), f"{name}.{key}", where)
        elif open_ended:
            checked[key] = value
        else:
            raise UserError(f"{name} has no parameter {key!r}", where=where, fix=nearest(key, known))
    missing = [key for key, p in known.items() if p.default is p.empty and key not in checked]
    if missing:
        raise UserError(f"{name} needs the parameter {missing[0]!r}", where=where, fix=f"add `{missing[0]}:`")
    return checked


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(function, eval_str=True)
    except Exception:  # a user's annotation that does not evaluate is no reason to refuse the function
        return {}


def _convert(value: Any, annotation: Any, name: str, where: str) -> Any:
    import msgspec

    if annotation in (Any, inspect.Parameter.empty):
        return value
    try:
        return msgspec.convert(value, annotation)
    except msgspec.ValidationError as error:
        shown = f" ({value!r})" if isinstance(value, (bool, int, float)) else ""  # text might be a misplaced secret
        raise UserError(f"{name}: {error}{shown}", where=where) from None
    except TypeError:  # an annotation that msgspec does not know: the function itself must judge
        return value


dataset = Registry("dataset", "assay.datasets")
prompt = Registry("prompt", "assay.prompts")
model = Registry("model", "assay.models")
task = Registry("task", "assay.tasks")
scorer = Registry("scorer", "assay.scorers")
metric = Registry("metric", "assay.metrics")
writer = Registry("writer", "assay.reports.writers")
reader = Registry("reader", "")
