"""The user's own types: values ⇄ JSON, and the library's records, which are dataclasses.

pydantic is never imported here unless the user did. Models are read by pydantic, all else by
msgspec; what does not fit is a ValueError, and pydantic's ValidationError in a program that uses
pydantic.
"""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, Self, TypeVar, cast, get_args

import msgspec

from assay.sdk import JsonMapping, JsonObject, UserError

T = TypeVar("T")
Input = TypeVar("Input")
"""What a task is given: a pydantic model, a dataclass, a Struct or a plain JSON type."""
Output = TypeVar("Output")
"""What a task returns, of the same kinds of types."""
JsonSerializable = int | float | str | bool | Sequence[Any] | JsonMapping | None
"""Any JSON value, for annotations."""
SerializableDict = dict[str, JsonSerializable]
"""An object of JSON."""


class BadValue(UserError, ValueError):
    """A mistake of the caller, where the original raises a ValueError."""


def is_ours(method: Any) -> bool:
    """Return whether a method of a repository is not one that the user has put in its place."""
    return method.__module__.startswith("assay.")


def to_json(value: Any, *, order: Literal["deterministic"] | None = None) -> Any:
    """The value as JSON holds it; a TypeError names the type that JSON cannot hold. With an
    `order`, equal sets and dicts are equal lists and dicts in every process."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_value, order=order)


def from_json(data: Any, type: type[T]) -> T:
    """The value of this type that the JSON value `data` stands for."""
    is_text = type is str and isinstance(data, str)  # most values are, and a row has three of them
    if is_text or _takes_all(type):
        return data  # pyright: ignore[reportReturnType]
    if is_pydantic(type):
        return _adapter(type).validate_json(msgspec.json.encode(data))
    try:
        return msgspec.convert(data, type, dec_hook=_pydantic_value)
    except msgspec.ValidationError:
        if "pydantic" in sys.modules:
            _refuse_like_pydantic(data, type)
        raise
    except TypeError:  # no type of msgspec's, such as a union that has a model among others
        if "pydantic" not in sys.modules:
            raise
        return _adapter(type).validate_json(msgspec.json.encode(data))


def numbers_in(value: Any, way: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers in a JSON value, truth values among them, by the way to each: `scores.some-run.elo`."""
    if isinstance(value, dict):
        for key, inner in cast("JsonObject", value).items():
            yield from numbers_in(inner, f"{way}.{key}" if way else str(key))
    elif isinstance(value, (int, float)):
        yield way or "value", value


def _takes_all(type: Any) -> bool:
    return type is Any or type is object or type == JsonSerializable or isinstance(type, TypeVar)


def _plain_value(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if getattr(value, "ndim", None) == 0:  # a number of numpy's
        return value.item()
    raise TypeError(f"a value of type {type(value).__qualname__} cannot be written as JSON")


def _pydantic_value(type: Any, data: Any) -> Any:
    if not is_pydantic(type):
        raise TypeError(
            f"values of type {getattr(type, '__qualname__', type)} cannot be read from JSON"
        )
    return _adapter(type).validate_json(msgspec.json.encode(data))


# pydantic has many errors for types that it does not know, and a Struct is one
def _refuse_like_pydantic(data: Any, type: Any) -> None:
    """Raise the error that existing code expects, if pydantic knows the type and refuses the data
    too."""
    try:
        adapter = _adapter(type)
    except Exception:
        return
    adapter.validate_json(msgspec.json.encode(data), strict=True)


def is_pydantic(type: Any) -> bool:
    """Return whether pydantic has to read values of this type: one of its models, or something with such a
    type inside."""
    if "pydantic" not in sys.modules:
        return False
    if (
        hasattr(type, "__pydantic_core_schema__")
        or getattr(type, "__module__", "").split(".")[0] == "pydantic"
    ):
        return True
    return any(is_pydantic(argument) for argument in get_args(type))


@lru_cache(256)
def _adapter(type: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(type)


class ModelRecord:
    """What code does with the original's pydantic models, for dataclasses: a dump, also as JSON,
    and the way back."""

    def model_dump(self, mode: str = "python") -> JsonObject:
        """Return the fields by name; with mode `json` as JSON values."""
        fields: Any = self
        return to_json(self) if mode == "json" else dataclasses.asdict(fields)

    def model_dump_json(self, indent: int | None = None) -> str:
        line = msgspec.json.encode(to_json(self))
        return (line if indent is None else msgspec.json.format(line, indent=indent)).decode()

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> Self:
        return from_json(msgspec.json.decode(data), cls)
