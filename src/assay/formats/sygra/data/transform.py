"""What a data transform is: `transform(records, params)`, a list in and a list out, as task folders write it.

One that need not see all records at once is `Streamed`: an iterator in and an iterator out, in flat memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from assay.errors import UserError
from assay.registry import nearest

Record = dict[str, Any]
Records = Iterator[Record]


class DataTransform(ABC):
    """Made without arguments, once for each place that names it."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def transform(self, data: list[Record], params: dict[str, Any]) -> list[Record]: ...


class Streamed(DataTransform):
    """A transform in terms of `stream`. A subclass with a `transform` of its own is given lists again."""

    @abstractmethod
    def stream(self, records: Records, params: Mapping[str, Any]) -> Records: ...

    def transform(self, data: list[Record], params: dict[str, Any]) -> list[Record]:
        return list(self.stream(iter(data), params))


def mapping(params: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The first of these parameters that is there, which must be a mapping; null and nothing are an empty one."""
    found: Any = next((params[name] for name in names if params.get(name) is not None), {})
    if not isinstance(found, Mapping):
        raise UserError(f"{names[0]} must be a mapping, got {found!r}", fix=f"write `{names[0]}: {{key: value}}`")
    return found


def whole(params: Mapping[str, Any], *names: str, default: int = 0, least: int = 0) -> int:
    """The first of these parameters that is there, as a whole number."""
    found: Any = next((params[name] for name in names if params.get(name) is not None), default)
    try:
        number = int(found)
    except (TypeError, ValueError):
        number = None
    if number is None or number < least:
        raise UserError(f"{names[0]} must be a whole number from {least} on, got {found!r}")
    return number


def column(record: Mapping[str, Any], name: str) -> Any:
    if name not in record:
        raise UserError(f"a record has no field {name!r}", fix=nearest(name, map(str, record)))
    return record[name]
