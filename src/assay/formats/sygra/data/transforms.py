"""All data transforms that task folders find under `sygra.processors.data_transform`.

Those that count records count from the end as well: a record is held back only until enough have
followed it to tell where it stands.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.data.transform import (
    DataTransform,
    Record,
    Records,
    Streamed,
    mapping,
    whole,
)
from assay.formats.sygra.types import Config
from assay.registry import nearest

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
            {name: _joined(str(rule), window, name) for name, rule in rules.items()}
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

    def skipped(number: int, left: int) -> bool:
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
            if not skipped(number - ahead, ahead + 1):
                yield first
    for place, record in enumerate(held):
        left = len(held) - place
        if not skipped(number + 1 - left, left):
            yield record


def _windows(records: Iterable[Record], size: int, shift: int) -> Iterator[list[Record]]:
    window: deque[Record] = deque(maxlen=size)
    for number, record in enumerate(records, 1):
        window.append(record)
        if number >= size and (number - size) % shift == 0:
            yield list(window)


def _joined(rule: str, window: list[Record], name: str) -> str:
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
