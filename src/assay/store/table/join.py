"""Rows of one table found from those of another: labels → responses by key, or by place where a
row has no key."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import Hashes, IntArray, Integers
from assay.store.keys import short

_ROWS = 1 << 16  # as many at a time, so that what is made of them takes little memory
PLACE = ("item_id", "sample_index", "model_name")  # what tells responses apart that have no key


def response_key(key: Any, place: Sequence[Any]) -> int:
    """Return 64 bits of a row's own key; foreign rows have only their place."""
    if key:
        return short(str(key))
    item, sample, model = place
    text = msgspec.json.encode([str(model), str(item), sample or 0])
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def response_keys(keys: Sequence[Any], places: Sequence[Sequence[Any]]) -> Hashes:
    """Return the `response_key` of many rows, at once where all have keys as the engine writes
    them. `places` are the columns of PLACE."""
    try:
        digits = "".join([key[:16] for key in keys])
        found = np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64)
        if len(found) == len(keys) and len(digits) == 16 * len(keys):
            return found
    except (TypeError, ValueError):
        pass
    rows = zip(keys, *places, strict=True)
    own = [response_key(key, (item, sample, model or "")) for key, item, sample, model in rows]
    return np.array(own, np.uint64)


def first_key(given: Any) -> Any:
    """Return the key of the first response that a label names, None if it names none; the row
    may be anybody's."""
    return given[0] if isinstance(given, list) and given else None


def row_blocks(count: int) -> Iterator[slice]:
    """Yield so many rows in blocks."""
    for start in range(0, count, _ROWS):
        yield slice(start, min(start + _ROWS, count))


def _numbers_of_rows(rows: IntArray) -> npt.NDArray[Any]:
    """Return the same numbers in 4 bytes each, where they fit."""
    return rows.astype(np.int32) if len(rows) < 1 << 31 else rows


class Lookup:
    """The rows of a column by value. `order` has them sorted, equal values in the order of the
    column; `places` are kept instead of the rows' numbers, such as their positions in a log."""

    def __init__(self, values: Hashes | IntArray, places: IntArray | None = None) -> None:
        order = _numbers_of_rows(np.argsort(values))
        self.sorted = values[order]
        if (self.sorted[1:] == self.sorted[:-1]).any():  # a stable sort takes five times as long
            order = _numbers_of_rows(np.argsort(values, kind="stable"))
        self.order: IntArray = order if places is None else places[order]

    def first(self, wanted: Hashes | IntArray) -> IntArray:
        """Return the first row that has each of these values, -1 for those that none has."""
        sought = np.ravel(wanted)
        found = np.full(len(sought), -1, self.order.dtype)
        for rows in row_blocks(len(sought) if len(self.sorted) else 0):
            # values in order are found six times as fast
            order = np.argsort(sought[rows])
            values = sought[rows][order]
            at = np.searchsorted(self.sorted, values).clip(max=len(self.sorted) - 1)
            found[rows][order] = np.where(self.sorted[at] == values, self.order[at], -1)
        return found.reshape(np.shape(wanted))

    def last(self, wanted: Hashes | IntArray) -> IntArray:
        """Return the last row that has each of these values, -1 for those that none has."""
        begin, end = self.ranges(wanted)
        return np.where(end > begin, np.append(self.order, -1)[end - 1], -1)

    def disputed(self, *columns: npt.NDArray[Any]) -> IntArray:
        """Return the rows that others with the same value are not equal to in these columns."""
        at = np.flatnonzero(self.sorted[1:] == self.sorted[:-1])
        one, next = self.order[at], self.order[at + 1]
        unequal = np.zeros(len(at), np.bool_)
        for column in columns:
            missing = np.isnan(column[one]) & np.isnan(column[next])
            unequal |= (column[one] != column[next]) & ~missing
        begin, end = self.ranges(np.unique(self.sorted[at[unequal]]))
        sizes = end - begin
        starts = np.repeat(begin - np.cumsum(sizes) + sizes, sizes)
        return self.order[starts + np.arange(len(starts))]

    def ranges(self, wanted: Any) -> tuple[Any, Any]:
        """Return where the rows with each of these values begin and end in `order`."""
        begin, end = (np.searchsorted(self.sorted, wanted, side) for side in ("left", "right"))
        return begin, end


class Groups(NamedTuple):
    """Rows that have equal values in some columns: the group of each row, and the first row of
    each group."""

    of_row: Integers
    first: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def rows(self) -> list[IntArray]:
        """Return the rows of each group, in their order."""
        order = _numbers_of_rows(np.argsort(self.of_row, kind="stable"))
        return np.split(order, np.cumsum(np.bincount(self.of_row, minlength=len(self)))[:-1])


def group_rows(*columns: npt.NDArray[Any]) -> Groups:
    """Return the groups of rows by some columns, ordered by their values, the first column
    first."""
    joint = first = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, _, codes = distinct(column)
        pairs = joint * np.int64(max(1, len(values))) + codes  # more of them than 32 bits count
        _, first, joint = distinct(pairs)
    return Groups(joint, first)


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray, Any]:
    """Return the values that there are, the first row of each, and which one every row has.
    Equal values mostly follow one another."""
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))[: len(values)]
    found, first, codes = np.unique(values[begins], return_index=True, return_inverse=True)
    times = np.diff(begins, append=len(values))
    return found, begins[first], np.repeat(codes.astype(np.int32), times)
