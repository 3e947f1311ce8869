"""The versions of what takes part in a number: Assay, Python, and the packages that plug-ins and user code import."""

import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay import usercode
from assay.errors import VERSION

_ALWAYS = ("jinja2", "msgspec", "numpy")  # templates, rows and statistics
_PARTS = (
    "scorers",
    "metrics",
    "models",
    "prompts",
    "tasks",
    "datasets",
    "text",
    "stats",
    "demo",
    "formats",
)


def versions(functions: Iterable[Callable[..., Any]]) -> dict[str, str]:
    """By package, in order of name. `functions` are the plug-ins; what they import is looked up, not imported."""
    named = {*_ALWAYS}
    for file in _files(functions):
        named |= {name for name in _imports(file) if name not in sys.stdlib_module_names}
    found = {"assay": VERSION, "python": platform.python_version()}
    for distribution in sorted({each for name in named for each in _distributions(name)}):
        found.setdefault(distribution.lower().replace("_", "-"), version(distribution))
    return dict(sorted(found.items()))


def _distributions(module: str) -> list[str]:
    """The installed packages that a module is of: mostly one that is called like it."""
    try:
        version(module)
    except PackageNotFoundError:
        return _by_module().get(module, []) if any(_specs(module)) else []
    return [module]


@cache
def _by_module() -> Mapping[str, list[str]]:
    return packages_distributions()


def _files(functions: Iterable[Callable[..., Any]]) -> set[Path]:
    """The files of functions, and of the parts of Assay or of the user's folder that these import."""
    found: set[Path] = set()
    for function in functions:
        module = sys.modules.get(str(getattr(function, "__module__", "")))
        file = getattr(module, "__file__", None)
        if file is None:
            continue
        if usercode.is_built_in(function):
            _follow(Path(file), found)
        else:
            found.update(usercode.sources(Path(file).resolve()))
    return found


def _follow(file: Path, found: set[Path]) -> None:
    if file in found:
        return
    found.add(file)
    for name in _imports(file, whole=True):
        parts = name.split(".")
        if parts[0] == "assay" and len(parts) > 2 and parts[1] in _PARTS:
            for spec in _specs(name):
                _follow(spec, found)


def _specs(name: str) -> Iterator[Path]:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        yield Path(spec.origin)


@cache
def _imports(file: Path, *, whole: bool = False) -> frozenset[str]:
    """The modules that a file imports, anywhere in it: their first names, or `whole`."""
    names = {name for level, name in usercode.imported_names(file) if not level}
    return frozenset(names if whole else {name.partition(".")[0] for name in names} - {"assay"})
