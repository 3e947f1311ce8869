"""The original's records are pydantic models; ours are dataclasses that can do what code does with such models.

A class that inherits from a record and adds annotated fields is one too, without a decorator: defaults that could be
changed are copied for each object, and what the parent says of repr, hash and being frozen stays.
"""

import dataclasses
import inspect
import typing
from collections.abc import Mapping, Set
from copy import copy, deepcopy
from typing import Any, Self

import msgspec

from assay.formats.intelligence_layer.types import from_json, schema_of, to_json


@dataclasses.dataclass(frozen=True)
class FieldInfo:
    """What is known of a record's field. `default` is `...` where there is none."""

    annotation: Any
    default: Any = ...
    default_factory: Any = None

    def is_required(self) -> bool:
        return self.default is ... and self.default_factory is None


class _Fields:
    """The fields by name, of a class as well as of its objects."""

    def __get__(self, record: object, owner: Any) -> dict[str, FieldInfo]:
        return {field.name: _info(field) for field in dataclasses.fields(owner)}


class Record:
    model_fields = _Fields()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        parent = getattr(cls, "__dataclass_params__", None)
        if parent is None or cls.__module__.startswith("assay."):  # these say themselves what they are
            return
        cls.__hash__ = cls.__hash__  # else one over all fields takes its place
        own = inspect.get_annotations(cls)
        for name in own:
            if name in cls.__dict__:
                setattr(cls, name, _default(cls.__dict__[name]))
        dataclasses.dataclass(kw_only=True, repr=False, frozen=parent.frozen)(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if field.name in own and field.default_factory is not dataclasses.MISSING:
                setattr(cls, field.name, field)  # for a decorator of the user's own, which looks here

    def __class_getitem__(cls, arguments: Any) -> Any:
        plain = super().__class_getitem__(arguments)  # type: ignore[misc]
        return _Typed(plain.__origin__, plain.__args__)

    def model_dump(
        self,
        mode: str = "python",
        *,
        include: Set[str] | None = None,
        exclude: Set[str] | None = None,
        exclude_none: bool = False,
    ) -> dict[str, Any]:
        """The fields by name, records and models in them the same way; with mode `json` as JSON values."""
        values = ((name, getattr(self, name)) for name in self.model_fields)
        return {
            name: to_json(value) if mode == "json" else _dumped(value)
            for name, value in values
            if (include is None or name in include)
            and name not in (exclude or ())
            and not (exclude_none and value is None)
        }

    def model_dump_json(self, indent: int | None = None, **chosen: Any) -> str:
        line = msgspec.json.encode(self.model_dump("json", **chosen))
        return (line if indent is None else msgspec.json.format(line, indent=indent)).decode()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Another object with the same values but for the ones in `update`, which are not looked at."""
        made = deepcopy(self) if deep else copy(self)
        for name, value in (update or {}).items():
            object.__setattr__(made, name, value)  # also of one that is frozen
        return made

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        return _validated(data, cls, cls)

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> Self:
        return from_json(msgspec.json.decode(data), cls)

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return schema_of(cls)


class _Typed(typing._GenericAlias, _root=True):  # type: ignore[name-defined,misc]
    """A record's class with types for its type variables: what is read by it has these types."""

    def model_validate(self, data: Any) -> Any:
        return _validated(data, self.__origin__, self)

    def model_validate_json(self, data: str | bytes) -> Any:
        kind: Any = self
        return from_json(msgspec.json.decode(data), kind)

    def model_json_schema(self) -> dict[str, Any]:
        return schema_of(self)


def _validated(data: Any, kind: type, typed: Any) -> Any:
    return data if isinstance(data, kind) else from_json(to_json(data), typed)


def _dumped(value: Any) -> Any:
    if isinstance(value, type):
        return value
    if isinstance(value, Record) or hasattr(value, "model_dump"):
        return value.model_dump()
    if dataclasses.is_dataclass(value):
        return {field.name: _dumped(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _dumped(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dumped(each) for each in value] if isinstance(value, list) else tuple(map(_dumped, value))
    if isinstance(value, Set) and any(dataclasses.is_dataclass(each) for each in value):
        return [_dumped(each) for each in value]  # a set cannot hold what they become
    return value


def _info(field: "dataclasses.Field[Any]") -> FieldInfo:
    missing = dataclasses.MISSING
    return FieldInfo(
        field.type,
        ... if field.default is missing else field.default,
        None if field.default_factory is missing else field.default_factory,
    )


def _default(value: Any) -> Any:
    """A default as a dataclass wants it: one that could be changed is copied, pydantic's `Field(…)` is looked into."""
    if type(value).__module__.startswith("pydantic"):
        if value.default_factory is not None:
            return dataclasses.field(default_factory=value.default_factory)
        return dataclasses.field() if value.is_required() else _default(value.default)
    if isinstance(value, (list, dict, set)):
        return dataclasses.field(default_factory=lambda: deepcopy(value))  # pyright: ignore[reportUnknownLambdaType]
    return value
