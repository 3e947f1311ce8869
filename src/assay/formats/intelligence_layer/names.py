"""The original's module names: a finder that makes the modules of the table, and the reason why a
name is missing.

Importing this file puts the finder into `sys.meta_path`. Only modules by the original's names do:
what reads and writes folders imports none of them.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from assay.formats.intelligence_layer import MODULES, NOT_OFFERED

_ROOT = "assay.formats.intelligence_layer"


def refuse(name: str, offered: Sequence[str] = ()) -> NoReturn:
    """Raise the reason as an ImportError; for the name of a class that nobody knows, the nearest of
    those that are offered. Anything else that a program may ask of a module is simply not there."""
    if name in NOT_OFFERED:
        raise ImportError(f"{name} of the Intelligence Layer is not offered: {NOT_OFFERED[name]}")
    if name[0].isupper():
        close = get_close_matches(name, offered, n=1)
        raise ImportError(
            f"no name {name} is offered" + (f": did you mean {close[0]}?" if close else "")
        )
    raise AttributeError(name)


def names_of(
    module: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module. A name comes from the first of our files that
    has it, which is imported when it is asked for; `homes` has the names that a file gives, all
    public ones where that is empty."""

    def lookup(name: str) -> Any:
        if name == "__all__":
            return public()
        for home, names in homes.items():
            if (
                name[0] != "_"
                and (not names or name in names.split())
                and name in vars(_file(home))
            ):
                setattr(sys.modules[module], name, getattr(_file(home), name))
                return getattr(_file(home), name)
        refuse(name, public())

    def public() -> list[str]:
        offered = (names.split() or vars(_file(home)) for home, names in homes.items())
        return sorted({name for names in offered for name in names if name[0] != "_"})

    return lookup, public


def _file(home: str) -> ModuleType:
    return import_module(f"{_ROOT}.{home}")


class _Names(MetaPathFinder, Loader):
    """Makes the modules of the table when they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix(f"{_ROOT}.")
        if name == fullname or name not in MODULES:
            if name in NOT_OFFERED and name != fullname:
                refuse(name)
            return None
        has_modules = any(other.startswith(f"{name}.") for other in MODULES)
        return ModuleSpec(fullname, self, is_package=has_modules)

    def exec_module(self, module: ModuleType) -> None:
        homes = MODULES[module.__name__.removeprefix(f"{_ROOT}.")].split()
        module.__doc__ = f"See {', '.join(homes) or 'the modules below'}."
        served = names_of(module.__name__, dict.fromkeys(homes, ""))
        module.__getattr__, module.__dir__ = served  # type: ignore[method-assign]


sys.meta_path.append(_Names())  # asked where there is no file
