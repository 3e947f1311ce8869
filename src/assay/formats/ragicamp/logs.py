"""The logs of an experiment as one, and their rows, whole or no more of them than is needed."""

from collections.abc import Iterator
from typing import Any

import msgspec

from assay.analysis.look.export import foreign_row
from assay.formats.ragicamp.rows import Row
from assay.interfaces import Log


class Many:
    """Several logs as one; a position has the number of its log in the highest bits."""

    _BITS = 58

    def __init__(self, logs: list[Any]) -> None:
        self._logs: list[Log] = logs

    def scan(self) -> Iterator[tuple[int, bytes]]:
        for number, log in enumerate(self._logs):
            for position, line in log.scan():
                if line and not line.isspace():
                    yield number << self._BITS | position, line

    def lines(self) -> int:
        """How many rows there are at most: blank lines count."""
        return sum(block.count(b"\n") for log in self._logs for block in log.blocks())

    def read(self, position: int) -> Row:
        return _row(self._logs[position >> self._BITS].read(position & ((1 << self._BITS) - 1)))


def _row(line: bytes) -> Row:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return foreign_row(line, "a row")


def narrow(decode: Any, line: bytes, kind: type[Any]) -> Any:
    """The fields of a row that `kind` has; `decode` is its decoder."""
    try:
        return decode(line)
    except msgspec.DecodeError:
        row = foreign_row(line, "a row")
        kept = {name: row[name] for name in kind.__struct_fields__ if row.get(name) is not None}
        return msgspec.convert({**kept, "item_id": str(row.get("item_id"))}, kind, strict=False)
