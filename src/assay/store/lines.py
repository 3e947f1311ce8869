"""Whole lines of files: by blocks, by parts of a file that several processes read, and where the last one is torn.

A part of a file has the lines that end in it. Parts begin at multiples of a block, so that all of them together give
the same blocks, and the same checksums of blocks, as one pass over the file.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from assay.store.seal import Checksums

# decoding larger blocks is slower: each is then a mapping of its own, faulted in page by page
BLOCK = 1 << 17
OFFSET_BITS = 40  # of a position in a log: a terabyte for each of eight million segments
FIRST_READ = 1 << 12
_LARGEST_READ = 1 << 22
_BACK = 1 << 16
_LINE_FEED = 10


class Part(NamedTuple):
    """Some bytes of the file with this number in its log; without `stop` all that follow."""

    number: int
    path: Path
    start: int = 0
    stop: int | None = None


def cut(sizes: list[int], count: int) -> list[list[tuple[int, int, int | None]]]:
    """Files of these sizes, one after the other, as `count` shares of about equal size: (file, start, stop) each. A
    share may be empty."""
    total, before = sum(sizes), 0
    shares: list[list[tuple[int, int, int | None]]] = [[] for _ in range(count)]
    ends = [total * (number + 1) // count for number in range(count)]
    for file, size in enumerate(sizes):
        start, last = 0, next(number for number, end in enumerate(ends) if before + size <= end)
        for number, end in enumerate(ends[:last]):
            stop = (end - before) // BLOCK * BLOCK
            if stop > start:
                shares[number].append((file, start, stop))
                start = stop
        shares[last].append((file, start, None))
        before += size
    return shares


def blocks(file: BinaryIO, part: Part, checksums: Checksums | None) -> Iterator[bytes]:
    """Blocks that end where a line ends; a torn last line is left out. The file has no buffer."""
    begun: list[bytes | memoryview] = []
    place = part.start
    if place:
        begin = line_start(file.fileno(), place)
        begun.append(os.pread(file.fileno(), place - begin, begin))
        file.seek(place)
    while block := file.read(BLOCK if part.stop is None else min(BLOCK, part.stop - place)):
        if checksums is not None:
            checksums.update(block)
        place += len(block)
        end = block.rfind(b"\n") + 1
        if not end:
            begun.append(block)
            continue
        begun.append(memoryview(block)[:end])
        yield b"".join(begun)
        begun = [block[end:]]
    rest = b"".join(begun) if part.stop is None else b""
    if rest and is_json(rest):
        yield rest + b"\n"


def lines(file: BinaryIO, part: Part) -> Iterator[tuple[int, bytes]]:
    """Yield the position of each line in its log, and the line without its line feed."""
    first = part.number << OFFSET_BITS
    place = line_start(file.fileno(), part.start) if part.start else 0
    if place:
        file.seek(place)
    for line in file:
        size = len(line)
        if part.stop is not None and place + size > part.stop:
            return
        if line[-1] != _LINE_FEED:
            if is_json(line):
                yield first + place, line
            return
        line = line[:-1]  # lets go of the longer one while the consumer works
        yield first + place, line
        place += size


def line_start(fd: int, end: int) -> int:
    """Where the line begins that has the byte before `end`, or that begins at `end`."""
    while end > 0:
        low = max(0, end - _BACK)
        feed = os.pread(fd, end - low, low).rfind(b"\n")
        if feed >= 0:
            return low + feed + 1
        end = low
    return 0


def read_long(fd: int, block: bytes, offset: int) -> bytes:
    """The whole of a line that did not end in its first block."""
    parts = [block]
    size = FIRST_READ
    while block:
        size = min(4 * size, _LARGEST_READ)
        block = os.pread(fd, size, offset)
        end = block.find(b"\n")
        if end >= 0:
            parts.append(block[:end])
            break
        parts.append(block)
        offset += len(block)
    return b"".join(parts)


def write_rest(fd: int, lines: bytes, written: int) -> None:
    """After a short write: write the rest, or take back what was written and say why."""
    start = os.lseek(fd, 0, os.SEEK_CUR) - written
    rest = memoryview(lines)[written:]
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        os.ftruncate(fd, start)
        raise


def mend_end(fd: int) -> None:
    """A last line without its line feed gets it if it is whole, and goes if it is not."""
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return
    start = line_start(fd, size)
    if is_json(os.pread(fd, size - start, start)):
        os.write(fd, b"\n")
    else:
        os.ftruncate(fd, start)


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
