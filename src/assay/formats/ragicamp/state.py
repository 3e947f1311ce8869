"""What a user's object is, as JSON: its code and its settings, the same in every process.

Answers are kept for the next run under this, so whatever could change an answer has to be in it. An object that knows
better has an attribute `identity`, a JSON value, and then only that counts. Of objects from installed packages only the
type is seen: what they hold differs from process to process.
"""

import inspect
import sysconfig
from collections.abc import Callable, Mapping, Set
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec

from assay.sdk import canonical
from assay.usercode import identity

_DEEPEST = 8
_INSTALLED = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def state_of(thing: Any) -> Any:
    """Return what an object is; equal states mean equal behaviour, as far as can be seen."""
    return _seen(thing, ())


def _seen(value: Any, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return blake2b(value, digest_size=16).hexdigest()
    if id(value) in above or len(above) > _DEEPEST:
        return type(value).__qualname__
    return _seen_object(value, (*above, id(value)))


def _seen_object(value: Any, above: tuple[int, ...]) -> Any:
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        return {str(key): _seen(entry, above) for key, entry in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_seen(entry, above) for entry in cast("list[Any]", value)]
    if isinstance(value, Set):
        return sorted((_seen(entry, above) for entry in cast("Set[Any]", value)), key=canonical)
    if isinstance(value, partial):
        called = cast("partial[Any]", value)
        return [_seen(part, above) for part in (called.func, called.args, called.keywords)]
    if inspect.ismethod(value):
        return [value.__name__, _seen(value.__self__, above)]
    if inspect.isfunction(value):
        return identity(value)
    if isinstance(value, (type, ModuleType)) or not hasattr(value, "__dict__"):
        names = (getattr(value, name, None) for name in ("__qualname__", "__name__"))
        return next(filter(None, names), type(value).__qualname__)
    return _seen_instance(value, above)


def _seen_instance(value: Any, above: tuple[int, ...]) -> Any:
    own = getattr(value, "identity", None)
    if own is not None and not callable(own):
        return {"identity": msgspec.to_builtins(own, str_keys=True, enc_hook=str)}
    file = _file_of(type(value))
    if file is not None and file.startswith(_INSTALLED):
        return type(value).__qualname__
    return {"code": _code_of(value, file), "state": _seen(vars(value), above)}


def _file_of(kind: type) -> str | None:
    """The file that a class is from; None for one of a notebook, and of the interpreter itself."""
    try:
        file = inspect.getsourcefile(kind)
    except (TypeError, OSError):
        return None
    return file if file is not None and Path(file).is_file() else None


def _code_of(value: Any, file: str | None) -> Any:
    if file is not None:
        return identity(value)
    functions: dict[str, Callable[..., Any]] = {}
    for kind in reversed(type(value).__mro__):
        functions |= {
            name: entry for name, entry in vars(kind).items() if inspect.isfunction(entry)
        }
    return [type(value).__qualname__, {name: identity(entry) for name, entry in functions.items()}]
