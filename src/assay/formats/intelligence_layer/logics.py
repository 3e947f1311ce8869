"""What tells a user's logic from another one, the same in every process: the code of its classes and its attributes."""

import inspect
import sys
from functools import lru_cache, partial
from pathlib import Path
from types import CellType
from typing import Any

import msgspec

from assay.formats.intelligence_layer.types import is_pydantic
from assay.store.keys import digest
from assay.usercode import identity

_DEPTH = 4
_NOT_USERS = {"assay", *sys.stdlib_module_names}


def identity_of(logic: object) -> dict[str, Any]:
    """JSON values that change when results of the logic may."""
    name = f"{type(logic).__module__}.{type(logic).__qualname__}"
    return {"logic": name, "code": _code(type(logic)), "attributes": _described(vars(logic), _DEPTH)}


@lru_cache(64)  # what a class runs is what was loaded, whatever becomes of its file
def _code(kind: type) -> list[str]:
    """The identities of the class's own functions and of those it inherits; of several in one file, of one."""
    functions: dict[str, Any] = {}
    for owner in kind.__mro__:
        if owner.__module__.split(".")[0] not in _NOT_USERS:
            for value in vars(owner).values():
                function = inspect.unwrap(getattr(value, "__func__", value))
                if inspect.isfunction(function):
                    file = function.__code__.co_filename
                    functions[file if Path(file).is_file() else function.__qualname__] = function
    return sorted(map(identity, functions.values()))


def _described(value: Any, depth: int) -> Any:
    """Data as it is, a function by its code, another object by its class and its attributes."""
    try:
        return msgspec.to_builtins(value, str_keys=True, order="deterministic", enc_hook=_dumped)
    except (TypeError, ValueError, RecursionError):  # a client, a lock, or something that has one
        pass
    if inspect.isroutine(value) or isinstance(value, partial):
        return _function(value, depth)
    if hasattr(type(value), "tobytes"):  # numbers of numpy's
        return digest("array", value.tobytes()).hex()
    name = type(value).__qualname__
    if not depth:
        return name
    if isinstance(value, (list, tuple)):
        return [_described(each, depth - 1) for each in value]
    attributes = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return [name, {str(key): _described(each, depth - 1) for key, each in attributes.items()}]


def _function(value: Any, depth: int) -> Any:
    """A function and what it was made with; those of one file are told apart by their lines."""
    if isinstance(value, partial):
        return _described([value.func, value.args, value.keywords], depth)
    if inspect.ismethod(value):
        return _described([value.__func__, value.__self__], depth)
    if not inspect.isfunction(value):
        return identity(value)
    cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]
    return [identity(value), value.__code__.co_firstlineno, _described([value.__defaults__, cells], depth)]


def _dumped(value: Any) -> Any:
    """No object but a model is asked what it holds: others, such as mocks, may answer anything."""
    if not is_pydantic(type(value)):
        raise TypeError
    return value.model_dump(mode="json")
