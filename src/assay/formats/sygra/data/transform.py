"""What records and data transforms are, and how the `transformations` of a source are applied.

A transform is `transform(records, params)`, a list in and a list out, as task folders write it. One that need not see
all records at once is `Streamed`: an iterator in and an iterator out, in flat memory. Values are as JSON has them:
what is not a number is null, arrays are lists, times are text.
"""

import base64
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.types import Config, Row, required

_PLAIN = frozenset({str, int, bool, type(None)})
_MISSING = frozenset({"NAType", "NaTType"})  # what pandas has for null


def cleaned(record: Row) -> Row:
    """The record with plain values."""
    return {
        name if type(name) is str else str(name): value
        if type(value) in _PLAIN
        else plain_value(value)
        for name, value in record.items()
    }


def plain_value(value: Any) -> Any:
    """One value; what cannot be told stays as it is."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, Mapping):
        return cleaned(dict(value))
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, date | time):
        return value.isoformat()
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return plain_value(value.tolist())
    return value


def as_text(value: Any) -> str:
    """What `json.dumps` should write for a value that JSON does not have."""
    return base64.b64encode(value).decode() if isinstance(value, bytes | bytearray) else str(value)


Record = Row
Records = Iterator[Record]


class DataTransform(ABC):
    """Made without arguments, once for each place that names it."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def transform(self, data: list[Record], params: Row) -> list[Record]: ...


class Streamed(DataTransform):
    """A transform in terms of `stream`. A subclass with a `transform` of its own is given lists again."""

    @property
    def name(self) -> str:
        """`AddNewFieldTransform` is `add_new_field`."""
        return re.sub(
            r"(?<!^)(?=[A-Z])", "_", type(self).__name__.removesuffix("Transform")
        ).lower()

    @abstractmethod
    def stream(self, records: Records, params: Config) -> Records: ...

    def transform(self, data: list[Record], params: Row) -> list[Record]:
        return list(self.stream(iter(data), params))


def mapping(params: Config, name: str) -> Config:
    """A parameter that must be a mapping; null and nothing are an empty one."""
    value: Any = params.get(name)
    if not isinstance(value, Mapping | None):
        raise UserError(
            f"{name} must be a mapping, got {value!r}", fix=f"write `{name}: {{key: value}}`"
        )
    return value or {}


def whole(params: Config, *names: str, default: int = 0, least: int = 0) -> int:
    """The first of these parameters that is given, as a whole number."""
    value: Any = next((params[name] for name in names if params.get(name) is not None), default)
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number < least:
        raise UserError(f"{names[0]} must be a whole number from {least} on, got {value!r}")
    return number


Load = Callable[[str, str], Any]
Stage = Callable[[Records], Records]


def stages(steps: Any, load: Load, where: str) -> list[Stage]:
    """A function from records to records for each entry; a class that cannot be used is named with its place."""
    fix = "write `- transform: package.module.Class`"
    listed = required(steps or [], list, "transformations must be a list", where, fix)
    return [
        _stage(step, load, f"{where}.transformations[{number}]")
        for number, step in enumerate(listed)
    ]


def _stage(step: Any, load: Load, where: str) -> Stage:
    if not isinstance(step, Mapping) or not isinstance(step.get("transform"), str):
        raise UserError(
            f"a transformation names no class: {step!r}",
            where=where,
            fix="add `transform: package.Class`",
        )
    dotted: str = step["transform"]
    params = step.get("params")
    if not isinstance(params, Mapping | None):
        raise UserError(f"params must be a mapping, got {params!r}", where=where)
    made = load(dotted, where)
    try:
        instance = made() if isinstance(made, type) else made
    except Exception as error:
        raise UserError(
            f"{dotted!r} cannot be made: {type(error).__name__}: {error}", where=where
        ) from error
    transform = getattr(instance, "transform", None)
    if not callable(transform):
        fix = "give its class a method `transform(data, params)`"
        raise UserError(f"{dotted!r} is not a transform", where=where, fix=fix)
    settings = dict(params or {})
    if isinstance(instance, Streamed) and type(instance).transform is Streamed.transform:
        return lambda records: _streamed(instance, records, settings, where)
    return lambda records: _listed(transform, dotted, records, settings, where)


def _streamed(instance: Streamed, records: Records, params: Row, where: str) -> Records:
    try:
        yield from instance.stream(records, params)
    except UserError as error:
        error.where = error.where or where
        raise


def _listed(
    transform: Callable[..., Any], name: str, records: Records, params: Row, where: str
) -> Records:
    """User code, which is given all records at once."""
    everything = list(records)
    try:
        result = transform(everything, params)
        if not isinstance(result, Iterable) or isinstance(result, Mapping | str):
            what = f"the transformation {name!r} returned {type(result).__name__}, not a list of records"
            raise UserError(what, where=where, fix="return the list from `transform`")
        rows = iter(result)
        del everything, result
        for row in rows:
            if not isinstance(row, Mapping):
                what = f"the transformation {name!r} returned a list with {type(row).__name__}, not records"
                raise UserError(what, where=where, fix="return a list of dictionaries")
            yield cleaned(dict(row))
    except UserError:
        raise
    except Exception as error:
        what = f"the transformation {name!r} failed: {type(error).__name__}: {error}"
        raise UserError(what, where=where, fix="run it by hand to see its traceback") from error
