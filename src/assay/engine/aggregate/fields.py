"""Further fields of rows as columns: only what is asked for leaves the JSON text, and no row is kept.

A column costs 12 bytes a row: numbers stand as they are, other values once, with their code in each row.
"""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import UNSET

from assay.engine.aggregate.columns import Ints, decode_row, place_in_block
from assay.engine.aggregate.facets import find_in_item, find_in_row, narrow, typed
from assay.interfaces import Codes, FloatArray, Log

ABSENT, FLOAT, INT = -1, -2, -3
_EXACT = 1 << 53  # whole numbers up to here are exact as floats


class Column:
    """The values of one field, row by row. With `numbers=False` numbers have codes too: for fields with few values."""

    def __init__(self, *, numbers: bool = True) -> None:
        self.values: list[Any] = []
        self._numbers = numbers
        self._codes, self._floats = array("i"), array("d")
        self._known: dict[bytes | str, int] = {}

    def extend(self, values: Iterable[Any]) -> None:
        """Take up the rows' values; UNSET where one has none."""
        for value in values:
            kind, code, number = type(value), ABSENT, math.nan
            if value is UNSET:
                pass
            elif self._numbers and kind is float:
                code, number = FLOAT, value
            elif self._numbers and kind is int and -_EXACT < value < _EXACT:
                code, number = INT, float(value)
            else:
                code = self._code(value)
            self._codes.append(code)
            self._floats.append(number)

    def join(self, parts: "Sequence[Column]") -> "Column":
        """Take up the values of further columns, one after the other."""
        for part in parts:
            own = [self._code(value) for value in part.values]
            codes = part.codes
            if own and own != list(range(len(own))):
                codes = np.where(codes < 0, codes, np.array(own, np.int32)[codes])
            self._codes.frombytes(codes.tobytes())
            self._floats.frombytes(part.floats.tobytes())
        return self

    def __getstate__(self) -> tuple[Any, ...]:
        return self.values, self._numbers, self.codes, self.floats

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(numbers=state[1])
        self.values = state[0]
        self._codes.frombytes(memoryview(state[2]).cast("B"))
        self._floats.frombytes(memoryview(state[3]).cast("B"))

    def _code(self, value: Any) -> int:
        key = value if type(value) is str else typed(value)  # a text is equal to texts alone
        code = self._known.setdefault(key, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code

    @property
    def codes(self) -> Codes:
        return np.frombuffer(self._codes, np.int32)

    @property
    def floats(self) -> FloatArray:
        return np.frombuffer(self._floats, np.float64)

    def take(self, rows: Ints) -> list[Any]:
        """The values of these rows; None for those that have none, and for row -1."""
        return [None if row < 0 else self._value(row) for row in rows.tolist()]

    def _value(self, row: int) -> Any:
        code = self._codes[row]
        if code >= 0:
            return self.values[code]
        number = self._floats[row]
        return number if code == FLOAT else int(number) if code == INT else None


def read_columns(
    logs: Iterable[Log], what: str, base: Sequence[str], names: Sequence[str], *, item: bool = False
) -> Iterator[tuple[list[list[Any]], list[list[Any]]]]:
    """The columns of the top-level fields `base` (None where a row lacks one) and of `names` (UNSET), which are found
    like facets, in an evaluation or a response, or in an `item`; for one block of rows after the other."""
    found = narrow(names, dict.fromkeys(base, (Any, None)), lambda place: Any, item=item)
    decode = None if found is None else msgspec.json.Decoder(found.type).decode_lines
    places = [[attrgetter(place) for place in places] for places in found.places] if found else []
    look = find_in_item if item else find_in_row
    for log in logs:
        for count, block in enumerate(log.blocks()):
            try:
                rows = None if decode is None else cast("list[Any]", decode(block))
            except (ValueError, RecursionError):
                rows = None
            if rows is not None:
                own = [list(map(attrgetter(name), rows)) for name in base]
                yield own, [_values(rows, each) for each in places]
                continue
            whole = list(_whole(log, block, count, what))
            yield (
                [[row.get(name) for row in whole] for name in base],
                [[look(row, n) for row in whole] for n in names],
            )


def _values(rows: list[Any], places: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """What the first of some places has, row by row; UNSET where none has anything."""
    values: list[Any] = list(map(places[0], rows))
    for place in places[1:]:
        lacking = [at for at, value in enumerate(values) if value is UNSET]
        if not lacking:
            break
        if len(lacking) == len(rows):
            values = list(map(place, rows))
            continue
        for at in lacking:
            values[at] = place(rows[at])
    return values


def _whole(log: Log, block: bytes, count: int, what: str) -> Iterator[dict[str, Any]]:
    for at, line in enumerate(block[:-1].split(b"\n")):
        if line.strip():
            yield decode_row(line, partial(place_in_block, log, what, count, at))
