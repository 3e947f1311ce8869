"""Items that say the same: exactly, or nearly (three-word sequences shared, by Jaccard similarity).

Pairs are found by MinHash and bands, then verified on the texts themselves: nothing is reported that is not so, and a
pair at the threshold is missed once in 300,000 times. Items are streamed; memory holds about 130 bytes for each.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from assay.analysis.look.dataset import Duplicates
from assay.interfaces import Hashes, IntArray, Log
from assay.records import Item
from assay.store.items import decode_item
from assay.store.keys import canonical, short

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
    contents, positions, signatures = array("Q"), array("Q"), array("I")
    for position, line in log.scan():
        if not line or line.isspace():
            continue
        item = decode_item(line)
        contents.append(short(blake2b(canonical(item.data), digest_size=8).digest()))
        positions.append(position)
        signatures.extend(_bands(_shingles(text_of(item))))
    if not positions:
        return Duplicates(
            items=0, exact=0, near=0, threshold=threshold, exact_groups=[], near_groups=[]
        )
    same = _Groups(len(positions))
    for members in _equal(np.frombuffer(contents, np.uint64)):
        for other in members[1:]:
            same.join(members[0], other)
    firsts = np.array([n for n in range(len(positions)) if same.root(n) == n], np.int64)
    near = _Groups(len(positions))
    _join_near(
        near,
        log,
        positions,
        np.frombuffer(signatures, np.uint32).reshape(-1, BANDS),
        firsts,
        threshold,
    )
    name = lambda number: decode_item(log.read(positions[number])).id  # noqa: E731
    return Duplicates(
        items=len(positions),
        exact=same.joins,
        near=near.joins,
        threshold=threshold,
        exact_groups=[
            [name(number) for number in group[:examples]] for group in same.largest(examples)
        ],
        near_groups=[
            [name(number) for number in group[:examples]] for group in near.largest(examples)
        ],
    )


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


def _bands(shingles: Words) -> Iterable[int]:
    """One number for each band of the MinHash signature."""
    least = ((_FACTOR * (shingles % _PRIME) + _OFFSET) % _PRIME).min(axis=1).reshape(BANDS, ROWS)
    mixed = np.zeros(BANDS, np.uint64)
    for row in range(ROWS):
        mixed = (mixed * np.uint64(1_000_003) + least[:, row]) % _PRIME
    return mixed.tolist()


def _equal(values: npt.NDArray[Any]) -> Iterator[list[int]]:
    """The indices of every value that occurs more than once, in order."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    ends = np.append(starts[1:], len(ordered))
    several = ends - starts > 1
    for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        yield order[start:end].tolist()


def _join_near(
    groups: "_Groups",
    log: Log,
    positions: "array[int]",
    signatures: npt.NDArray[np.uint32],
    firsts: IntArray,
    threshold: float,
) -> None:
    @lru_cache(1024)
    def shingles(number: int) -> Words:
        return _shingles(text_of(decode_item(log.read(positions[number]))))

    for band in range(BANDS):
        for members in _equal(signatures[firsts, band]):
            numbers = firsts[members].tolist()
            for at, number in enumerate(numbers):
                for other in numbers[: min(at, MOST_COMPARED)]:
                    if groups.root(number) == groups.root(other):
                        continue
                    if _jaccard(shingles(number), shingles(other)) >= threshold:
                        groups.join(other, number)


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
