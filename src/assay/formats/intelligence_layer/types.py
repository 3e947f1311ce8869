"""The user's own types: values ⇄ JSON, and records that stand for the original's pydantic models.

pydantic is never imported here unless the user did. Models are read by pydantic, all else by msgspec; what does not
fit is a ValueError, and pydantic's ValidationError in a program that uses pydantic. The original's records are
pydantic models; ours are dataclasses that offer what code does with such models. A class that inherits from a record
and adds annotated fields is a record too, without a decorator: mutable defaults are copied for each object, and the
parent's repr, hash and frozenness stay.
"""

import dataclasses
import inspect
import sys
import typing
from collections.abc import Mapping, Sequence, Set
from copy import copy, deepcopy
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, Self, TypeVar, get_args

import msgspec

from assay.errors import UserError
from assay.text.plain import plain

T = TypeVar("T")
Input = TypeVar("Input")
"""What a task is given: a pydantic model, a dataclass, a Struct or a plain JSON type."""
Output = TypeVar("Output")
"""What a task returns, of the same kinds of types."""
JsonSerializable = int | float | str | bool | Sequence[Any] | Mapping[str, Any] | None
"""Any JSON value, for annotations."""
SerializableDict = dict[str, JsonSerializable]


class BadValue(UserError, ValueError):
    """A mistake of the caller, where the original raises a ValueError."""


def is_ours(method: Any) -> bool:
    """Whether a method of a repository is not one that the user has put in its place."""
    return method.__module__.startswith("assay.")


def to_json(value: Any, *, order: Literal["deterministic"] | None = None) -> Any:
    """The value as JSON holds it; a TypeError names the type that JSON cannot hold. With an `order`, equal sets and
    dicts are equal lists and dicts in every process."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_dumped, order=order)


def from_json(data: Any, type: type[T]) -> T:
    """The value of this type that the JSON value `data` stands for."""
    is_text = type is str and isinstance(data, str)  # most values are, and a row has three of them
    if is_text or _takes_all(type):
        return data  # pyright: ignore[reportReturnType]
    if is_pydantic(type):
        return _adapter(type).validate_json(msgspec.json.encode(data))
    try:
        return msgspec.convert(data, type, dec_hook=_validated)
    except msgspec.ValidationError:
        if "pydantic" in sys.modules:
            _refuse_like_pydantic(data, type)
        raise
    except TypeError:  # no type of msgspec's, such as a union that has a model among others
        if "pydantic" not in sys.modules:
            raise
        return _adapter(type).validate_json(msgspec.json.encode(data))


def type_to_schema(type_: Any) -> dict[str, Any]:
    """The JSON Schema of a type: pydantic's for its models, msgspec's for all others."""
    try:
        return (
            _model_schema(type_)
            if is_pydantic(type_)
            else msgspec.json.schema(type_, schema_hook=_model_schema)
        )
    except TypeError:  # a type that neither knows: its name is all there is
        return {"title": getattr(type_, "__qualname__", str(type_))}


def _model_schema(type: Any) -> dict[str, Any]:
    if not is_pydantic(type):
        raise NotImplementedError(type)
    return _adapter(type).json_schema()


def _takes_all(type: Any) -> bool:
    return type is Any or type is object or type == JsonSerializable or isinstance(type, TypeVar)


def _dumped(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json")
    if getattr(value, "ndim", None) == 0:  # a number of numpy's
        return value.item()
    raise TypeError(f"a value of type {type(value).__qualname__} cannot be written as JSON")


def _validated(type: Any, data: Any) -> Any:
    if not is_pydantic(type):
        raise TypeError(
            f"values of type {getattr(type, '__qualname__', type)} cannot be read from JSON"
        )
    return _adapter(type).validate_json(msgspec.json.encode(data))


def _refuse_like_pydantic(data: Any, type: Any) -> None:
    """Raise the error that existing code expects, if pydantic knows the type and refuses the data too."""
    try:
        adapter = _adapter(type)
    except (
        Exception
    ):  # pydantic has many errors for types that it does not know, and a Struct is one
        return
    adapter.validate_json(msgspec.json.encode(data), strict=True)


def is_pydantic(type: Any) -> bool:
    """Whether pydantic has to read values of this type: one of its models, or something with such a type inside."""
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
        if parent is None or cls.__module__.startswith(
            "assay."
        ):  # these say themselves what they are
            return
        cls.__hash__ = cls.__hash__  # else one over all fields takes its place
        annotations = inspect.get_annotations(cls)
        for name in annotations:
            if name in cls.__dict__:
                setattr(cls, name, _as_default(cls.__dict__[name]))
        dataclasses.dataclass(kw_only=True, repr=False, frozen=parent.frozen)(cls)
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if field.name in annotations and field.default_factory is not dataclasses.MISSING:
                setattr(
                    cls, field.name, field
                )  # for a decorator of the user's own, which looks here

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
            name: to_json(value) if mode == "json" else _as_python(value)
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
        return _validated_record(data, cls, cls)

    @classmethod
    def model_validate_json(cls, data: str | bytes) -> Self:
        return from_json(msgspec.json.decode(data), cls)

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return type_to_schema(cls)


class _Typed(typing._GenericAlias, _root=True):  # type: ignore[name-defined,misc]
    """A record's class with types for its type variables: what is read by it has these types."""

    def model_validate(self, data: Any) -> Any:
        return _validated_record(data, self.__origin__, self)

    def model_validate_json(self, data: str | bytes) -> Any:
        kind: Any = self
        return from_json(msgspec.json.decode(data), kind)

    def model_json_schema(self) -> dict[str, Any]:
        return type_to_schema(self)


def _validated_record(data: Any, kind: type, typed: Any) -> Any:
    return data if isinstance(data, kind) else from_json(to_json(data), typed)


def _as_python(value: Any) -> Any:
    if isinstance(value, type):
        return value
    if isinstance(value, Record) or hasattr(value, "model_dump"):
        return value.model_dump()
    if dataclasses.is_dataclass(value):
        return {
            field.name: _as_python(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: _as_python(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return (
            [_as_python(each) for each in value]
            if isinstance(value, list)
            else tuple(map(_as_python, value))
        )
    if isinstance(value, Set) and any(dataclasses.is_dataclass(each) for each in value):
        return [_as_python(each) for each in value]  # a set cannot hold what they become
    return value


def _info(field: "dataclasses.Field[Any]") -> FieldInfo:
    missing = dataclasses.MISSING
    return FieldInfo(
        field.type,
        ... if field.default is missing else field.default,
        None if field.default_factory is missing else field.default_factory,
    )


def _as_default(value: Any) -> Any:
    """A default as a dataclass wants it: one that could be changed is copied, pydantic's `Field(…)` is looked into."""
    if type(value).__module__.startswith("pydantic"):
        if value.default_factory is not None:
            return dataclasses.field(default_factory=value.default_factory)
        return dataclasses.field() if value.is_required() else _as_default(value.default)
    if isinstance(value, (list, dict, set)):
        return dataclasses.field(default_factory=lambda: deepcopy(value))  # pyright: ignore[reportUnknownLambdaType]
    return value


def extra(module: str, what: str, fix: str) -> Any:
    """A module that only some need: `what` and `fix` are reported where it is not installed, and what it lacks itself
    where it is."""
    try:
        return import_module(module)
    except ImportError as error:
        lacks = (
            "" if error.name in (module, None) else f" (it is installed, but lacks {error.name})"
        )
        raise UserError(f"{what}{lacks}", fix=fix) from None


def tree(title: str, *children: Any) -> Any:
    """A picture for a terminal or a notebook; children are pictures or text."""
    from rich.text import Text
    from rich.tree import Tree

    picture = Tree(Text(plain(title)))
    for child in children:
        picture.add(Text(plain(child)) if isinstance(child, str) else child)
    return picture


def show(picture: Any) -> None:
    import rich

    rich.print(picture)
