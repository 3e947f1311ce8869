"""All data transforms that task folders find under `sygra.processors.data_transform`.

Those that count records count from the end as well: a record is held back only until enough have
followed it to tell where it stands.

What records and data transforms are, and how the `transformations` of a source are applied.

A transform is `transform(records, params)`, a list in and a list out, as task folders write it. One that need not see
all records at once is `Streamed`: an iterator in and an iterator out, in flat memory. Values are as JSON has them:
what is not a number is null, arrays are lists, times are text.
"""

import base64
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from itertools import islice
from typing import Any

from assay.formats.sygra.types import Config, Row, YamlPlace
from assay.sdk import UserError, nearest

_PLAIN = frozenset({str, int, bool, type(None)})
_MISSING = frozenset({"NAType", "NaTType"})  # what pandas has for null


def plain_record(record: Row) -> Row:
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
        return plain_record(dict(value))
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
    """Return what `json.dumps` should write for a value that JSON does not have."""
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


def stages(at: YamlPlace, load: Load) -> list[Stage]:
    """Return a function from records to records for each entry; a class that cannot be used is named with its place."""
    if not at.value:
        return []
    at.require(list, "transformations must be a list", "write `- transform: package.module.Class`")
    return [_stage(step, load) for step in at.entries()]


def _stage(at: YamlPlace, load: Load) -> Stage:
    step, where = at
    if not isinstance(step, Mapping) or not isinstance(step.get("transform"), str):
        what = f"a transformation names no class: {step!r}"
        raise at.error(what, "add `transform: package.Class`")
    dotted: str = step["transform"]
    params = step.get("params")
    if not isinstance(params, Mapping | None):
        raise at.error(f"params must be a mapping, got {params!r}")
    made = load(dotted, where)
    try:
        instance = made() if isinstance(made, type) else made
    except Exception as error:
        raise at.error(f"{dotted!r} cannot be made: {type(error).__name__}: {error}") from error
    transform = getattr(instance, "transform", None)
    if not callable(transform):
        fix = "give its class a method `transform(data, params)`"
        raise at.error(f"{dotted!r} is not a transform", fix)
    settings = dict(params or {})
    if isinstance(instance, Streamed) and type(instance).transform is Streamed.transform:
        return lambda records: _through_stream(instance, records, settings, where)
    return lambda records: _through_list(
        lambda rows: transform(rows, settings), dotted, records, at
    )


def _through_stream(instance: Streamed, records: Records, params: Row, where: str) -> Records:
    try:
        yield from instance.stream(records, params)
    except UserError as error:
        error.where = error.where or where
        raise


def _through_list(
    transform: Callable[[list[Record]], Any], name: str, records: Records, at: YamlPlace
) -> Records:
    """Yield what user code makes of the records, which is given all of them at once."""
    everything = list(records)
    what = f"the transformation {name!r}"
    try:
        result = transform(everything)
        if not isinstance(result, Iterable) or isinstance(result, Mapping | str):
            kind = type(result).__name__
            raise at.error(
                f"{what} returned {kind}, not a list of records", "return the list from `transform`"
            )
        rows = iter(result)
        del everything, result
        for row in rows:
            if not isinstance(row, Mapping):
                kind = type(row).__name__
                raise at.error(
                    f"{what} returned a list with {kind}, not records",
                    "return a list of dictionaries",
                )
            yield plain_record(dict(row))
    except UserError:
        raise
    except Exception as error:
        fix = "run it by hand to see its traceback"
        raise at.error(f"{what} failed: {type(error).__name__}: {error}", fix) from error


__all__ = [
    "AddNewFieldTransform",
    "AddRetryFieldsTransform",
    "CombineRecords",
    "DataTransform",
    "RenameFieldsTransform",
    "SkipRecords",
]


class RenameFieldsTransform(Streamed):
    """`mapping: {old: new}`. A new name that the record has already is kept, both stay, unless `overwrite`."""

    def stream(self, records: Records, params: Config) -> Records:
        names, overwrite = mapping(params, "mapping"), bool(params.get("overwrite"))
        for record in records:
            renamed = dict(record)
            for old, new in names.items():
                if old in renamed and (overwrite or new not in renamed):
                    renamed[new] = renamed.pop(old)
            yield renamed


class AddNewFieldTransform(Streamed):
    """`mapping: {field: constant}`."""

    def stream(self, records: Records, params: Config) -> Records:
        constants = mapping(params, "mapping")
        return ({**record, **constants} for record in records)


class AddRetryFieldsTransform(Streamed):
    """What a loop with retries counts with: `max_retries`, `curr_retries`, `original_current_user_text`."""

    def stream(self, records: Records, params: Config) -> Records:
        constants = {
            "max_retries": params.get("max_retries", 3),
            "curr_retries": params.get("initial_retry_count", 0),
            "original_current_user_text": params.get("original_current_user_text", ""),
        }
        return ({**record, **constants} for record in records)


_START = ("from_start", "from_begin", "from_beginning")
_RANGE = re.compile(r"\s*\[\s*(-?\d+)?\s*:\s*(-?\d+)?\s*\]\s*")
_VARIABLE = re.compile(r"\$([1-9][0-9]*)")


class SkipRecords(Streamed):
    """Leaves records out: `skip_type: range` with `range: "[:10],[-10:]"`, or `skip_type: count` with
    `count: {from_start, from_end}`."""

    def stream(self, records: Records, params: Config) -> Records:
        kind = params.get("skip_type") or "range"
        if kind == "count":
            count = mapping(params, "count")
            return _inner(records, whole(count, *_START), whole(count, "from_end"))
        if kind == "range":
            return _outside(records, _ranges(params.get("range") or ""))
        raise UserError(f"unknown skip_type {kind!r}", fix=nearest(str(kind), ["range", "count"]))


class CombineRecords(Streamed):
    """Makes one record of every `combine` neighbours, `shift` records apart: `join_column: {field: "$1-$2"}`.

    Windows end with the last record; without something to combine, records stay as they are.
    """

    def stream(self, records: Records, params: Config) -> Records:
        size = whole(params, "combine", default=1)
        if size < 2:
            return records
        shift = whole(params, "shift", default=1, least=1)
        skip = mapping(params, "skip")
        rules = mapping(params, "join_column")
        inner = _inner(records, whole(skip, *_START), whole(skip, "from_end"))
        return (
            {name: _combined_text(str(rule), window, name) for name, rule in rules.items()}
            for window in _windows(inner, size, shift)
        )


def _inner(records: Records, start: int, end: int) -> Records:
    """All but the first `start` and the last `end`."""
    held: deque[Record] = deque()
    for record in islice(records, start, None):
        held.append(record)
        if len(held) > end:
            yield held.popleft()


def _ranges(text: Any) -> list[tuple[int, int | None]]:
    """`[a:b],[c:d]` as pairs; None is the end."""
    ranges: list[tuple[int, int | None]] = []
    for part in filter(str.strip, str(text).split(",")):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UserError(
                f"{part.strip()!r} is not a range", fix='write ranges like "[:10],[-10:]"'
            )
        ranges.append((int(match[1] or 0), int(match[2]) if match[2] else None))
    return ranges


def _outside(records: Records, ranges: list[tuple[int, int | None]]) -> Records:
    """The records that are in none of the ranges."""
    ahead = max(
        (-bound for pair in ranges for bound in pair if bound is not None and bound < 0), default=0
    )

    def is_skipped(number: int, left: int) -> bool:
        """`left` counts this record and those behind it; all that matters of more than `ahead` is that it is more."""
        return any(
            (number >= start if start >= 0 else left <= -start)
            and (end is None or (number < end if end >= 0 else left > -end))
            for start, end in ranges
        )

    held: deque[Record] = deque()
    number = -1
    for number, record in enumerate(records):
        held.append(record)
        if len(held) > ahead:
            first = held.popleft()
            if not is_skipped(number - ahead, ahead + 1):
                yield first
    for place, record in enumerate(held):
        left = len(held) - place
        if not is_skipped(number + 1 - left, left):
            yield record


def _windows(records: Iterable[Record], size: int, shift: int) -> Iterator[list[Record]]:
    window: deque[Record] = deque(maxlen=size)
    for number, record in enumerate(records, 1):
        window.append(record)
        if number >= size and (number - size) % shift == 0:
            yield list(window)


def _combined_text(rule: str, window: list[Record], name: str) -> str:
    """`$n` is the field of the n-th record. Of `$12` only the first digit counts where there are but two records; a
    dollar sign in a value stays one."""

    def value(match: re.Match[str]) -> str:
        digits = match[1]
        while digits and int(digits) > len(window):
            digits = digits[:-1]
        if not digits:
            return match[0]
        record = window[int(digits) - 1]
        if name not in record:
            raise UserError(f"a record has no field {name!r}", fix=nearest(name, map(str, record)))
        return str(record[name]) + match[1][len(digits) :]

    return _VARIABLE.sub(value, rule)
