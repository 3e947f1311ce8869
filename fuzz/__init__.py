"""Attacks on what Assay reads: `make fuzz`. Every module but `__main__` is a target.

A target has `opened()`, a context manager that gives `attack(case)`: it makes the input that belongs to this number,
hands it to Assay, and returns None, or what went wrong. A case depends on nothing but its number and can be repeated.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager

Attack = Callable[[int], "str | None"]


def targets() -> dict[str, Callable[[], AbstractContextManager[Attack]]]:
    """Every target by name, with what opens it."""
    names = [
        module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")
    ]
    return {name: importlib.import_module(f"fuzz.{name}").opened for name in names}
