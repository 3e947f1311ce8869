"""Values of other programs' files as our rows have them. What is not of the wanted kind is
empty, or None."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, tzinfo
from typing import Any, cast

import msgspec

from assay.store.keys import id_hash
from assay.store.keyset import Seen
from assay.store.table.decode import row_decoder

Row = dict[str, Any]
_EXACT = 1 << 53  # whole numbers up to here are exact as floats
json_value = row_decoder(cast("type[Any]", Any))
json_row = row_decoder(Row)


def fields_of(value: Any) -> Row:
    """Return an object; for anything else an empty one."""
    return cast("Row", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return a list; for anything else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def rows_of(value: Any) -> list[Row]:
    """Return the objects in a list."""
    return [cast("Row", entry) for entry in list_of(value) if isinstance(entry, dict)]


def number_of(value: Any) -> float | None:
    """Return a finite number."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def count_of(value: Any) -> int | None:
    """Return a whole number of tokens or the like."""
    number = number_of(value)
    return None if number is None or not 0 <= number < _EXACT else int(number)


def seconds_of(time: Any, zone: tzinfo | None = None) -> float | None:
    """Return the seconds since 1970 of a time in ISO's format; one that names no zone is of this
    one, else local."""
    try:
        moment = datetime.fromisoformat(str(time))
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        return None


def answer_text(answer: Any) -> str:
    """Return an answer as text: JSON, unless it is text."""
    if answer is None or isinstance(answer, str):
        return answer or ""
    return msgspec.json.encode(answer).decode()


def first_text(fields: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the first of these fields that is a text."""
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def failure(error: str | None) -> Row:
    """Return the fields of an answer or a label that has failed for good; none if there is no
    error."""
    if error is None:
        return {}
    return {"outcome": "errored", "error": error, "error_kind": "permanent"}


def free_name(name: str, taken: Collection[str], sign: str = "_") -> str:
    """Return the name, with a number from the second on."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{sign}{number}"
    return free


class Repeats:
    """How often each of many things has come."""

    def __init__(self) -> None:
        self._seen = Seen()
        self.again: Counter[str] = Counter()

    def count(self, *thing: str) -> int:
        """Return how often it has come before; this time counts from now on."""
        name = "\0".join(thing)
        if not self._seen.add(id_hash(name)):
            self.again[name] += 1
        return self.again[name]


def encoded_names(shape: type[msgspec.Struct]) -> frozenset[str]:
    """Return what the fields of a shape are called in JSON."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(shape))
