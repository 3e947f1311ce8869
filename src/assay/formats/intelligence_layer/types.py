"""Values of the user's own types ⇄ JSON values: pydantic models, dataclasses, msgspec Structs and plain JSON types.

pydantic is never imported here unless the user did: their types are then checked by it and fail with its
`ValidationError`; all others are checked by msgspec, whose errors are ValueErrors as well.
"""

import dataclasses
import sys
from functools import lru_cache
from typing import Any, Self, TypeVar, get_args

import msgspec

from assay.errors import UserError
from assay.formats.intelligence_layer.connectors.base.json_serializable import JsonSerializable

T = TypeVar("T")


class BadValue(UserError, ValueError):
    """A mistake of the caller, where the original raises a ValueError."""


class Record:
    """What the records of this package have of pydantic's models, as far as code that uses them needs it."""

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        """The fields by name; with mode `json` as JSON values all the way down."""
        if mode == "json":
            return to_json(self)
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def model_dump_json(self, indent: int | None = None) -> str:
        line = msgspec.json.encode(to_json(self))
        return (line if indent is None else msgspec.json.format(line, indent=indent)).decode()

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        return data if isinstance(data, cls) else from_json(data, cls)

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> Self:
        return from_json(msgspec.json.decode(data), cls)


def to_json(value: Any) -> Any:
    """The value as JSON holds it; a TypeError names what it cannot hold."""
    if value is None or isinstance(value, (str, int, float)):
        return msgspec.to_builtins(value)
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped)


def from_json(data: Any, type: type[T] | Any) -> T:
    """A value of this type; a ValueError (pydantic's ValidationError for its models) if the data do not fit."""
    if type in (Any, object, JsonSerializable) or isinstance(type, TypeVar):
        return data
    adapter = _adapter(type) if "pydantic" in sys.modules and _is_pydantic(type) else None
    if adapter is not None:
        return adapter.validate_python(data)
    try:
        return msgspec.convert(data, type, dec_hook=_validated)
    except TypeError:  # no type of msgspec's, such as a union that has a model among others
        if "pydantic" not in sys.modules:
            raise
        return _adapter(type).validate_python(data)


def is_instance(value: Any, type: Any) -> bool:
    """Whether a value is of a type already, so that it need not be read from JSON."""
    return isinstance(type, __builtins_type) and value.__class__ is type and not isinstance(value, (list, dict))


__builtins_type = type


def _dumped(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    item = getattr(value, "item", None)  # a number of numpy's
    if item is not None and getattr(value, "ndim", None) == 0:
        return item()
    raise TypeError(f"a value of type {type(value).__qualname__} cannot be written as JSON")


def _validated(type: Any, data: Any) -> Any:
    validate = getattr(type, "model_validate", None)
    if validate is None:
        raise TypeError(f"values of type {getattr(type, '__qualname__', type)} cannot be read from JSON")
    return validate(data)


def _is_pydantic(type: Any) -> bool:
    if hasattr(type, "__pydantic_core_schema__") or getattr(type, "__module__", "").split(".")[0] == "pydantic":
        return True
    return any(_is_pydantic(argument) for argument in get_args(type))


@lru_cache(256)
def _adapter(type: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(type)
