"""Further fields of rows as columns: only what is asked for leaves the JSON text, and no row is kept.

A column costs 12 bytes a row: numbers stand as they are, other values once, with their code in each row.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.interfaces import FloatArray, Log
from assay.steps.columns import Ints, decode_row, place_in_block
from assay.steps.facets import find_in_row, first_of, narrow, typed

ABSENT, FLOAT, INT = -1, -2, -3
_EXACT = 1 << 53  # whole numbers up to here are exact as floats


class Column:
    """The values of one field, row by row. With `numbers=False` numbers have codes too: for fields with few values."""

    def __init__(self, *, numbers: bool = True) -> None:
        self.values: list[Any] = []
        self._numbers = numbers
        self._codes, self._floats = array("i"), array("d")
        self._known: dict[bytes, int] = {}

    def append(self, value: Any) -> None:
        """Take up a row's value; UNSET where it has none."""
        code, number = ABSENT, math.nan
        if value is UNSET:
            pass
        elif self._numbers and type(value) is float:
            code, number = FLOAT, value
        elif self._numbers and type(value) is int and -_EXACT < value < _EXACT:
            code, number = INT, float(value)
        else:
            code = self._known.setdefault(typed(value), len(self.values))
            if code == len(self.values):
                self.values.append(value)
        self._codes.append(code)
        self._floats.append(number)

    @property
    def codes(self) -> npt.NDArray[np.int32]:
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


def read_fields(
    logs: Iterable[Log], what: str, base: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Of each row the values of the top-level fields `base` (None where missing) and of `names` (UNSET), which are
    found like facets."""
    found = narrow(names, dict.fromkeys(base, (Any, None)), lambda place: msgspec.Raw)
    decode = None if found is None else msgspec.json.Decoder(found.type).decode_lines
    places = [[attrgetter(place) for place in places] for places in found.places] if found else []
    for log in logs:
        for count, block in enumerate(log.blocks()):
            try:
                rows = None if decode is None else cast("list[Any]", decode(block))
            except msgspec.DecodeError:
                rows = None
            if rows is None:
                yield from _whole(log, block, count, what, base, names)
                continue
            for row in rows:
                yield (
                    tuple([getattr(row, name) for name in base]),
                    [_decoded(first_of(place(row) for place in each)) for each in places],
                )


def _whole(
    log: Log, block: bytes, count: int, what: str, base: Sequence[str], names: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    for at, line in enumerate(block[:-1].split(b"\n")):
        if line.strip():
            row = decode_row(line, partial(place_in_block, log, what, count, at))
            yield tuple([row.get(name) for name in base]), [find_in_row(row, name) for name in names]


def _decoded(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
