"""Assay: find out how good a language model, a prompt or an agent really is.

Everything public is in `assay.api` and reachable as `assay.<name>`; nothing is imported before it is used.
"""

from typing import TYPE_CHECKING, Any

from assay.errors import VERSION as __version__  # noqa: F401

if TYPE_CHECKING:
    from assay.api import *  # noqa: F403

_RUNS = "compare runs with other values of `max_concurrency`"
GONE = {  # public names of 0.1, and what to use instead
    "Survey": "it is called 'Plan' now",
    "load_test": _RUNS,
    "Load": _RUNS,
}


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.util import find_spec

    # `from assay import registry` need not wait for the engine
    if find_spec(f"assay.{name}") is not None:
        return import_module(f"assay.{name}")
    api = import_module("assay.api")
    if name not in api.__all__:
        instead = f"; {GONE[name]}" if name in GONE else ""
        raise AttributeError(f"module 'assay' has no attribute {name!r}{instead}")
    return getattr(api, name)


def __dir__() -> Any:
    from assay import api

    return [*api.__all__, "__version__"]
