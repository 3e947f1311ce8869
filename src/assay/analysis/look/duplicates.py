"""Items that say the same: exactly, or nearly (three-word sequences shared, by Jaccard similarity).

Pairs are found by MinHash and bands, then verified on the texts themselves: nothing is reported that is not so, and a
pair at the threshold is missed once in 300,000 times. Items are streamed; memory holds about 130 bytes for each.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from assay.analysis.look.dataset import Duplicates
from assay.sdk import Hashes, IntArray, Item, Log, canonical, short
from assay.store.items import decode_item
from assay.store.table.columns import Table
from assay.store.table.join import Lookup

THRESHOLD = 0.8
BANDS, ROWS = 24, 4
# in a crowded band an item is compared with the first few only, not with everybody
MOST_COMPARED = 64
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u9fff"
# symbols tell `2 + 2` from `2 - 2`
_TOKEN = re.compile(rf"[{_IDEOGRAPH}]|[^\W{_IDEOGRAPH}]+|[-+*/=<>^%]")
_PRIME = np.uint64((1 << 31) - 1)

Words = Hashes


def duplicates(log: Log, *, threshold: float = THRESHOLD, examples: int = 5) -> Duplicates:
    """Look through a dataset's log. Items are compared by `data`; ids, ground truth and metadata do not count."""
    rows = Table([log], {}, item=True, what="items", strict=True)
    contents, signatures = _hashes(rows)
    same, near = _Groups(len(rows)), _Groups(len(rows))
    for members in _equal(contents):
        for other in members[1:]:
            same.join(members[0], other)
    firsts = np.array([n for n in range(len(rows)) if same.root(n) == n], np.int64)
    _join_near(near, rows, _candidates(signatures, firsts), threshold)

    def name(number: int) -> str:
        return _item(rows, number).id

    def names(groups: _Groups) -> list[list[str]]:
        return [[*map(name, group[:examples])] for group in groups.largest(examples)]

    return Duplicates(
        items=len(rows),
        exact=same.joins,
        near=near.joins,
        threshold=threshold,
        exact_groups=names(same),
        near_groups=names(near),
    )


def _item(rows: Table, number: int) -> Item:
    return decode_item(rows.line(number))


def _hashes(rows: Table) -> tuple[Hashes, npt.NDArray[np.uint32]]:
    """Return a hash of the data of each item, and the bands of its text."""
    contents = np.empty(len(rows), np.uint64)
    signatures = np.empty((len(rows), BANDS), np.uint32)
    for number in range(len(rows)):
        item = _item(rows, number)
        contents[number] = short(blake2b(canonical(item.data), digest_size=8).digest())
        signatures[number] = _bands(_shingles(text_of(item)))
    return contents, signatures


def _join_near(
    near: "_Groups", rows: Table, candidates: Iterator[tuple[int, int]], threshold: float
) -> None:
    """Join the candidates whose texts are as similar as that."""

    @lru_cache(1024)
    def shingles(number: int) -> Words:
        return _shingles(text_of(_item(rows, number)))

    for number, other in candidates:
        apart = near.root(number) != near.root(other)
        if apart and _jaccard(shingles(number), shingles(other)) >= threshold:
            near.join(other, number)


def similarity(first: str, second: str) -> float:
    """The share of three-word sequences that two texts have in common."""
    return _jaccard(_shingles(first), _shingles(second))


def text_of(item: Item) -> str:
    """All text of an item's data, in the order of its keys' names."""
    return "\n".join(_texts(item.data))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name in sorted(value, key=str):
            yield from _texts(value[name])
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif value is not None:
        yield str(value)


def _shingles(text: str) -> Words:
    words = _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())
    hashes = {crc32(" ".join(words[n : n + 3]).encode()) for n in range(max(1, len(words) - 2))}
    return np.array(sorted(hashes), np.uint64)


def _jaccard(first: Words, second: Words) -> float:
    common = len(np.intersect1d(first, second, assume_unique=True))
    return common / (len(first) + len(second) - common)


def _multipliers() -> Words:
    """Fixed, and not from numpy's generators: the same items have the same bands everywhere."""
    count = 2 * BANDS * ROWS
    drawn = [
        int.from_bytes(blake2b(b"minhash %d" % n, digest_size=4).digest(), "big")
        for n in range(count)
    ]
    return (np.array(drawn, np.uint64) % (_PRIME - np.uint64(1)) + np.uint64(1)).reshape(2, -1, 1)


_FACTOR, _OFFSET = _multipliers()


def _bands(shingles: Words) -> Words:
    """One number for each band of the MinHash signature."""
    least = ((_FACTOR * (shingles % _PRIME) + _OFFSET) % _PRIME).min(axis=1).reshape(BANDS, ROWS)
    mixed = np.zeros(BANDS, np.uint64)
    for row in range(ROWS):
        mixed = (mixed * np.uint64(1_000_003) + least[:, row]) % _PRIME
    return mixed


def _equal(values: Hashes) -> Iterator[list[int]]:
    """Yield the indices of every value that occurs more than once, in order."""
    found = Lookup(values)
    begins, ends = found.ranges(np.unique(values))
    several = ends - begins > 1
    for begin, end in zip(begins[several].tolist(), ends[several].tolist(), strict=True):
        yield found.order[begin:end].tolist()


def _candidates(signatures: npt.NDArray[np.uint32], firsts: IntArray) -> Iterator[tuple[int, int]]:
    """Yield the pairs that share a band; an item may come with the same one in several."""
    for band in range(BANDS):
        for members in _equal(signatures[firsts, band].astype(np.uint64)):
            numbers = firsts[members].tolist()
            for at, number in enumerate(numbers):
                for other in numbers[: min(at, MOST_COMPARED)]:
                    yield number, other


class _Groups:
    """Which of the items 0…n-1 belong together; the root of a group is its first item."""

    def __init__(self, count: int) -> None:
        self._parents = array("q", range(count))
        self.joins = 0

    def root(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    def join(self, first: int, second: int) -> None:
        low, high = sorted((self.root(first), self.root(second)))
        if low != high:
            self._parents[high] = low
            self.joins += 1

    def largest(self, count: int) -> list[list[int]]:
        members: dict[int, list[int]] = {}
        for number in range(len(self._parents)):
            root = self.root(number)
            if root != number:
                members.setdefault(root, [root]).append(number)
        return sorted(members.values(), key=lambda group: (-len(group), group[0]))[:count]
