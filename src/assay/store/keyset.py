"""Sets of 64-bit keys that cost about 10 bytes a key: which rows exist, which were seen before.

A Python set would take about 70. The keys are hashes, hence evenly spread: a small directory over their
leading bits finds the few neighbours among which a key must be.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np

from assay.interfaces import Hashes, Mask

_PER_BUCKET = 8
_BUFFER = 20_000
_PER_NEW = 32  # a new key costs ten times as much as an old one, and sorting them in is quick


class KeySet:
    """The 64-bit prefixes of keys, fixed when made."""

    def __init__(self, keys: Iterable[int] = ()) -> None:
        is_buffer = isinstance(keys, (array, np.ndarray))
        ordered = np.sort(_as_numpy(cast("Any", keys if is_buffer else array("Q", keys))))
        # np.unique would load numpy.ma
        is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
        # An array's elements come out as Python integers, three times as fast as numpy's.
        self._keys = array("Q", ordered[is_first].tobytes())
        self._index()

    def _index(self) -> None:
        ordered = _as_numpy(self._keys)
        bits = (len(ordered) // _PER_BUCKET).bit_length()
        # Shifting by all 64 bits is undefined: a single bucket begins at 0 by itself.
        lowest = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits if bits else 0)
        starts = np.append(np.searchsorted(ordered, lowest), len(ordered))
        self._starts = array("I", starts.astype(np.uint32).tobytes())
        self._shift = 64 - bits

    def grow(self, keys: Iterable[int]) -> None:
        """Take in keys that are not in the set, without a second copy of it."""
        self._keys.extend(keys)
        _as_numpy(self._keys).sort()
        self._index()

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __contains__(self, key: bytes | int) -> bool:
        return self.find(key) >= 0

    def among(self, keys: list[int]) -> Mask:
        """Which of many keys are in the set."""
        ordered = _as_numpy(self._keys)
        if not len(ordered):
            return np.zeros(len(keys), np.bool_)
        wanted = np.array(keys, np.uint64)
        return ordered[np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)] == wanted

    def find(self, key: bytes | int) -> int:
        """Its place, or -1."""
        # keys.short, inlined: hot
        number = key if isinstance(key, int) else int.from_bytes(key[:8], "big")
        keys, starts, bucket = self._keys, self._starts, number >> self._shift
        end = starts[bucket + 1]
        at = bisect_left(keys, number, starts[bucket], end)
        return at if at < end and keys[at] == number else -1


class Seen:
    """A growing set of 64-bit keys."""

    def __init__(self) -> None:
        self._old = KeySet()
        self._new: set[int] = set()
        self._room = _BUFFER

    def __contains__(self, key: int) -> bool:
        return key in self._new or key in self._old

    def add(self, key: int) -> bool:
        """Whether the key is new."""
        new = self._new
        if key in new or (self._old and self._old.find(key) >= 0):
            return False
        new.add(key)
        if len(new) >= self._room:
            self._sort_in()
        return True

    def isdisjoint(self, keys: list[int]) -> bool:
        """Whether all of these are new."""
        return self._new.isdisjoint(keys) and not self._old.among(keys).any()

    def update(self, keys: list[int]) -> None:
        """Add many keys that are new."""
        self._new.update(keys)
        if len(self._new) >= self._room:
            self._sort_in()

    def _sort_in(self) -> None:
        self._old.grow(self._new)
        self._new.clear()
        self._room = max(_BUFFER, len(self._old) // _PER_NEW)


def _as_numpy(keys: "array[int]") -> Hashes:
    return np.frombuffer(keys, dtype=np.uint64) if len(keys) else np.zeros(0, np.uint64)
