"""Modules under another program's names: a table says which there are, and where their names come from.

A name is looked up each time it is asked for. So nothing of ours is loaded before, and a value may
change while a program runs.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Value = Callable[[str, str], Any]
Names = Callable[[str], list[str]]
Other = Callable[[str], ModuleSpec | None]


class ForeignModules(MetaPathFinder, Loader):
    """The modules of a table and the packages above them. `value(module, name)` gives a name of a
    module, `names(module)` lists what it offers, and `other(module)` may find a module that the
    table does not have."""

    def __init__(
        self, modules: Iterable[str], value: Value, names: Names, other: Other | None = None
    ) -> None:
        self.modules = frozenset(modules)
        self._value, self._names, self._other = value, names, other
        self._made: dict[str, ModuleType] = {}

    def __contains__(self, module: str) -> bool:
        return module in self.modules or self._is_package(module)

    def _is_package(self, module: str) -> bool:
        return any(name.startswith(f"{module}.") for name in self.modules)

    def install(self, *, first: bool = False) -> None:
        """Let the modules be imported: before all others, or where no file has the name."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0 if first else len(sys.meta_path), self)

    def module(self, name: str) -> ModuleType:
        """Return the module without importing it; `sys.modules` stays as it is."""
        if name not in self._made:
            self._made[name] = ModuleType(name)
            self.exec_module(self._made[name])
        return self._made[name]

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname in self:
            return ModuleSpec(fullname, self, is_package=self._is_package(fullname))
        return self._other(fullname) if self._other else None

    def exec_module(self, module: ModuleType) -> None:
        module.__getattr__ = partial(self._attribute, module.__name__)  # type: ignore[method-assign]
        module.__dir__ = partial(self._names, module.__name__)  # type: ignore[method-assign]

    def _attribute(self, module: str, name: str) -> Any:
        if name == "__all__":
            return self._names(module)
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return self._value(module, name)
