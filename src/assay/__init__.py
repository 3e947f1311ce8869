"""Assay: find out how good a language model, a prompt or an agent really is.

Everything public is in `assay.api` and reachable as `assay.<name>`; nothing is imported before it is used.
"""

from typing import TYPE_CHECKING, Any

from assay.errors import VERSION as __version__  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.api import *  # noqa: F403

RENAMED = {"Survey": "Plan"}  # public names of 0.1, and what they are called now


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.util import find_spec

    if (
        find_spec(f"assay.{name}") is not None
    ):  # `from assay import registry` need not wait for the engine
        return import_module(f"assay.{name}")
    api = import_module("assay.api")
    if name not in api.__all__:
        renamed = f"; it is called {RENAMED[name]!r} now" if name in RENAMED else ""
        raise AttributeError(f"module 'assay' has no attribute {name!r}{renamed}")
    return getattr(api, name)


def __dir__() -> "Sequence[str]":
    from importlib import import_module

    return [*import_module("assay.api").__all__, "__version__"]
