"""One registry class for every kind of plug-in.

A name is looked up, in this order, as: something registered by a decorator, a built-in (the file of that name in
the kind's folder), a format's (by its namespace, `<format>.<name>`, or in its file `<kind>.py`), an entry point (group
`assay.<kind>s`), a dotted name (`package.module.function`), or a file (`path.py:function`). Nothing is imported before
it is asked for.
"""

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload
from weakref import WeakValueDictionary

from assay.errors import UserError
from assay.parameters import (
    add_group,
    by_keyword as by_keyword,
    check_name as check_name,
    check_params as check_params,
    nearest as nearest,
    parameters as parameters,
)
from assay.records import JsonMapping
from assay.usercode import load_file, marks_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

INLINE = "inline:"  # how the names of objects begin that were passed from Python
F = TypeVar("F", bound=Callable[..., Any])
# names that a module cannot have, and the modules that have them
_FILES = {"llama.cpp": "llama_cpp"}


class Registry:
    """The plug-ins of one kind, by name."""

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self.package = package
        self._found: dict[str, Callable[..., Any]] = {}
        self._inline: WeakValueDictionary[str, Callable[..., Any]] = WeakValueDictionary()

    @overload
    def __call__(self, function: F) -> F: ...

    @overload
    def __call__(self, *, name: str = "", **marks: Any) -> Callable[[F], F]: ...

    def __call__(
        self, function: F | None = None, *, name: str = "", **marks: Any
    ) -> F | Callable[[F], F]:
        """Register a function under its own name; marks (`version=2`, `batch=128`) are kept on the function, and
        `params` is the group of parameters that it shares with others."""

        def register(function: F) -> F:
            key = name or function.__name__
            if "params" in marks:
                add_group(function, marks["params"])
            if self.kind == "metric" and "group" in inspect.signature(function).parameters:
                from assay.on_rows import on_rows

                function = on_rows(function, key, marks.get("columns", ()))
            taken = self._found.get(key)
            if taken is not None and _defined_as(taken) != _defined_as(function):
                raise UserError(
                    f"two {self.kind}s are called {key!r}",
                    where=f"{_origin(taken)} and {_origin(function)}",
                    fix="rename one of them",
                )
            function.__assay__ = {"kind": self.kind, "name": key, **marks}  # type: ignore[attr-defined]
            self._found[key] = function
            return function

        return register(function) if function is not None else register

    def get(self, name: str, *, base: Path | None = None, where: str = "") -> Callable[..., Any]:
        """The function called `name`; `base` is the folder that relative files are found in."""
        inline = self._inline.get(name)
        if inline is not None:
            return inline
        if name.startswith(INLINE):
            short = name.rpartition(".")[2]
            raise UserError(
                f"the {self.kind} {short!r} was an object of the Python session that made this config",
                where=where,
                fix=f"pass {short!r} to the Python function again, or put it into a file and name it `file.py:{short}`",
            )
        function = self._found.get(name) or self._built_in(name) or self.of_format(name)
        if function is None and (entry := _entry_points(f"assay.{self.kind}s").get(name)):
            function = entry.load()
        if function is None and ".py:" in name:
            path, _, attribute = name.rpartition(":")
            function = load_function(path, attribute, base=base, where=where)
        if function is None and "." in name:
            function = _import_dotted(name, where)
        if function is None:
            raise self._unknown(name, where)
        return function

    def _unknown(self, name: str, where: str) -> UserError:
        what, fix = f"unknown {self.kind} {name!r}", nearest(name, self.names())
        if self.kind == "writer" and name in formats("reader"):
            what, fix = f"files of {name} are read, not written", nearest("", self.names())
        return UserError(what, where=where, fix=fix)

    def marks(self, name: str) -> JsonMapping:
        """Return what the plug-in of this name declares of itself. No user's code is loaded for it: of a plug-in that is
        neither built in nor registered yet, nothing."""
        return marks_of(self._found.get(name) or self._built_in(name))

    def inline(self, function: Callable[..., Any], name: str, identity: str) -> str:
        """A name for a function that was passed from Python; it is found by it as long as something holds it."""
        key = f"{INLINE}{identity}.{name}"
        self._inline[key] = function
        return key

    def names(self) -> list[str]:
        """Every name that needs no import of user code: built-ins, formats' readers and writers, registered ones,
        entry points. Namespaced names of formats are left out: which of them exist depends on what was imported."""
        built_in = _built_ins(self.package) if self.package else []
        if self.kind in ("reader", "writer", "benchmark"):  # those of a format are called like it
            built_in = [*built_in, *formats(self.kind)]
        registered = [
            name
            for name, function in self._found.items()
            if "." not in name or not function.__module__.startswith("assay.formats.")
        ]
        return sorted({*built_in, *registered, *_entry_points(f"assay.{self.kind}s")})

    def _built_in(self, name: str) -> Callable[..., Any] | None:
        name = _FILES.get(name, name)
        module = f"{self.package}.{name}"
        if not self.package or not name.isidentifier() or name[0] == "_":
            return None
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:  # a folder that lost its files still has a spec
            return None
        return getattr(importlib.import_module(module), name)

    def of_format(self, name: str) -> Callable[..., Any] | None:
        """Return what a format adds under this name, or None."""
        namespace = name.partition(".")[0]
        if namespace in formats():
            file = f".{self.kind}" if namespace in formats(self.kind) else ""
            importlib.import_module(f"assay.formats.{namespace}{file}")
        if name not in self._found:
            for format in formats(self.kind):
                importlib.import_module(f"assay.formats.{format}.{self.kind}")
        return self._found.get(name)


@cache
def _built_ins(package: str) -> list[str]:
    spelled = {module: name for name, module in _FILES.items()}
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return [spelled.get(module.name, module.name) for module in modules if module.name[0] != "_"]


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
    if not _has_plug_ins():
        return {}
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


@cache
def _has_plug_ins() -> bool:
    """Return whether any package has plug-ins for us: a look at the files costs a tenth of
    importlib.metadata's answer."""
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


def load_function(
    path: str, name: str, *, base: Path | None = None, where: str = ""
) -> Callable[..., Any]:
    """The function `name` of the Python file `path`; the file's folder is importable while and after it loads."""
    file = (base or Path()) / path
    if not file.is_file():
        raise UserError(f"there is no file {path!r}", where=where, fix=f"looked for {file}")
    module = load_file(file, where=where)
    function = getattr(module, name, None)
    if not callable(function):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UserError(
            f"{path!r} has no function {name!r}", where=where, fix=nearest(name, public)
        )
    return function


def _import_dotted(name: str, where: str) -> Callable[..., Any] | None:
    module, _, attribute = name.rpartition(".")
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        function = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and (module == missing or module.startswith(f"{missing}.")):
            return None
        raise UserError(
            f"{name!r} cannot be imported: {type(error).__name__}: {error}", where=where
        ) from error
    return function if callable(function) else None


def _defined_as(function: Callable[..., Any]) -> tuple[str, str]:
    """Module and name: equal for a function that is defined again, in a notebook's cell or in an edited file."""
    return function.__module__, getattr(function, "__qualname__", repr(function))


def _origin(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
    return f"{code.co_filename}:{code.co_firstlineno}"


dataset = Registry("dataset", "assay.datasets")
prompt = Registry("prompt", "assay.prompts")
model = Registry("model", "assay.models")
task = Registry("task", "assay.tasks")
scorer = Registry("scorer", "assay.scorers")
metric = Registry("metric", "assay.metrics")
writer = Registry("writer", "assay.writers")
reader = Registry("reader", "assay.readers")
benchmark = Registry("benchmark", "")
