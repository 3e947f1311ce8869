"""Sets of 64-bit keys that cost 8 bytes a key: which rows exist already, which were seen before.

A Python set would take about 70. The keys are hashes, hence evenly spread: a small directory over their leading
bits finds the few neighbours among which a key must be.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from assay.store.keys import short

_PER_BUCKET = 8
_BUFFER = 20_000


class KeySet:
    """The 64-bit prefixes of keys, fixed when made. `mark` remembers which of them were asked for."""

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self._set(np.unique(_as_numpy(keys if isinstance(keys, array) else array("Q", keys))))

    def _set(self, ordered: npt.NDArray[np.uint64]) -> None:
        bits = (len(ordered) // _PER_BUCKET).bit_length()
        starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits) if bits else np.zeros(1, np.uint64)
        self._shift = 64 - bits
        self._keys = _as_array("Q", ordered)
        self._starts = _as_array("Q", np.append(np.searchsorted(ordered, starts), len(ordered)).astype(np.uint64))
        self._marks = bytearray(len(ordered))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __contains__(self, key: bytes | int) -> bool:
        return self._find(key) >= 0

    def mark(self, key: bytes | int) -> bool:
        """Whether the key is in the set; if so, it is remembered as seen."""
        at = self._find(key)
        if at < 0:
            return False
        self._marks[at] = 1
        return True

    def unmarked(self) -> "KeySet":
        """The keys that nobody marked: rows that no cell of the plan asked for."""
        return KeySet(array("Q", _as_numpy(self._keys)[np.frombuffer(self._marks, np.uint8) == 0].tobytes()))

    def _find(self, key: bytes | int) -> int:
        number = key if isinstance(key, int) else short(key)
        bucket = number >> self._shift
        end = self._starts[bucket + 1]
        at = bisect_left(self._keys, number, self._starts[bucket], end)
        return at if at < end and self._keys[at] == number else -1


class Seen:
    """A growing set of 64-bit keys."""

    def __init__(self) -> None:
        self._old = KeySet()
        self._new: set[int] = set()

    def add(self, key: int) -> bool:
        """Whether the key is new."""
        if key in self._new or key in self._old:
            return False
        self._new.add(key)
        if len(self._new) >= max(_BUFFER, len(self._old) // 8):
            self._old = KeySet(array("Q", [*self._new]) + self._old._keys)
            self._new.clear()
        return True


def _as_numpy(keys: "array[int]") -> npt.NDArray[np.uint64]:
    return np.frombuffer(keys, dtype=np.uint64) if len(keys) else np.zeros(0, np.uint64)


def _as_array(code: str, values: npt.NDArray[np.uint64]) -> "array[int]":
    # An array's elements come out as Python integers, three times as fast as numpy's.
    return array(code, values.tobytes())
