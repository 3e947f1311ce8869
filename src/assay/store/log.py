"""Logs of JSON lines in a file, with further segments beside it.

A line is committed by one `write` to the kernel, so a killed process loses none. A line that was torn (by
a power cut or a full disk) is never shown by `scan`, and the next `append` cuts it off.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from assay import reading
from assay.errors import StoreError
from assay.records import Damage, Manifest, Segment
from assay.store.files import NewFile, make_folder, open_own, refuse_link, store_error, sync_folder
from assay.store.lines import (
    FIRST_READ,
    OFFSET_BITS as OFFSET_BITS,
    Part,
    blocks,
    line_start,
    lines,
    mend_end,
    read_long,
    write_rest,
)
from assay.store.new_rows import NewRows
from assay.store.seal import Checksums, read_checksums

T = TypeVar("T")
_LINE_FEED = 10
_OFFSET_MASK = (1 << OFFSET_BITS) - 1
_SUFFIX = ".jsonl"
_NEAR, _AHEAD = 1 << 13, 1 << 16  # lines that are so near to each other are read with so many bytes
_SCAN_BUFFER = 1 << 20  # iterating over a file is 2.7 times as fast as with Python's 8 kB

# a file's number, how much of it was read, and the checksums of its whole blocks
Sums = tuple[int, int, bytes]


class FileLog:
    """`<name>.jsonl`, then the segments `<name>.d/*.jsonl` and those of the last generation,
    `<name>.d/<generation>/<shard>/*.jsonl`, which others write and we only read.

    A position is a segment's number and an offset in one integer. There is one writer at a time (see `lock`),
    but threads may share the object, and it may be used again after `close`. `scan` and `blocks` leave out the lines at
    the positions in `hidden`, and read no more than `window`, where that is set.
    """

    raw = True  # what `scan` yields are the bytes of the files

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hidden: Collection[int] = ()
        self.window: Sequence[Part] | None = None
        self._numbers = {path.name: 0}
        self._files = [path]
        self._append_fd = -1
        self._read_fds: dict[int, int] = {}
        self._created = False
        self._checksums: dict[Path, Checksums] = {}
        self._joined: dict[Path, Checksums] = {}
        self._appended = Checksums()
        self._guard = threading.RLock()

    def __del__(self) -> None:  # a forgotten log must not keep descriptors
        self.close()

    def append(self, lines: bytes) -> None:
        if not lines:
            return
        if lines[-1] != _LINE_FEED:
            raise ValueError("a log takes whole lines: the last one lacks its line feed")
        with self._guard:
            try:
                fd = self._append_fd if self._append_fd >= 0 else self._open()
                written = os.write(fd, lines)
                if written != len(lines):
                    write_rest(fd, lines, written)
                self._appended.add(lines)
            except OSError as error:
                self.close()  # the next append opens the file anew and cuts off what may be left
                raise store_error(error, self.path) from error

    def scan(self) -> Iterator[tuple[int, bytes]]:
        hidden = self.hidden
        return (pair for pair in self._scan() if pair[0] not in hidden) if hidden else self._scan()

    def _scan(self) -> Iterator[tuple[int, bytes]]:
        return self._read_parts(lines, _SCAN_BUFFER)

    def _read_parts(
        self, read: Callable[[BinaryIO, Part], Iterator[T]], buffer: int = 0
    ) -> Iterator[T]:
        """Yield what `read` gives of each part, opened with such a buffer; absent ones have nothing."""
        for part in self.parts():
            try:
                with reading.opened(part.path, buffer) as file:
                    yield from read(file, part)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(error, part.path) from error

    def blocks(self) -> Iterator[bytes]:
        if not self.hidden:
            yield from self._read_parts(self._summed_blocks)
            return
        shown = (line + b"\n" for _, line in self.scan())
        while block := b"".join(islice(shown, 256)):
            yield block

    def _summed_blocks(self, file: BinaryIO, part: Part) -> Iterator[bytes]:
        checksums = Checksums(lines=None)
        yield from blocks(file, part, checksums)
        self._checksums.setdefault(part.path, checksums)

    def placed_blocks(
        self, ends: Mapping[int, int] | None = None, most: int | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield (position, block of whole lines) of each file, hidden lines too: from the offset that `ends` has for
        its number, and no more than about `most` bytes."""

        def read(file: BinaryIO, part: Part) -> Iterator[tuple[int, bytes]]:
            start = (ends or {}).get(part.number, part.start)
            stop = part.stop if most is None else start + most
            start = line_start(file.fileno(), start)
            for block in blocks(file, part._replace(start=start, stop=stop), None):
                yield (part.number << OFFSET_BITS) + start, block
                start += len(block)

        return self._read_parts(read)

    def parts(self) -> Sequence[Part]:
        """What `scan` and `blocks` read, in order."""
        if self.window is not None:
            return self.window
        return [Part(number, path) for number, path in self.numbered()]

    def limit(self, window: Sequence[Part]) -> None:
        """Read only this from now on: the share of one of several processes."""
        self.window, self._checksums = window, {}

    def sums(self) -> list[Sums]:
        """The checksums of what was read by blocks since `limit`."""
        found = ((part.number, self._checksums.get(part.path)) for part in self.window or ())
        return [
            (number, checksums.size, checksums.blocks)
            for number, checksums in found
            if checksums is not None
        ]

    def join_sums(self, shares: Iterable[list[Sums]]) -> None:
        """Take the `sums` of processes that have read all of this log, each its share, in order."""
        joined: dict[Path, Checksums] = {}
        for number, size, checksums in chain.from_iterable(shares):
            joined.setdefault(self._files[number], Checksums(lines=None)).extend(size, checksums)
        self._joined = {**joined, **self._joined}

    def read(self, position: int) -> bytes:
        number, offset = position >> OFFSET_BITS, position & _OFFSET_MASK
        try:
            fd = self._read_fds.get(number, -1)
            if fd < 0:
                fd = self._open_to_read(number)
            block = os.pread(fd, FIRST_READ, offset)
            end = block.find(b"\n")
            if end >= 0:
                return block[:end]
            if block:
                return read_long(fd, block, offset + len(block))
        except OSError as error:
            raise store_error(error, self.path) from error
        raise StoreError(
            "there is no line at this position", where=str(self.path), fix="scan the log again"
        )

    def read_many(self, positions: Iterable[int]) -> Iterator[bytes]:
        """The lines at these positions; neighbours are read together."""
        block, start, last = b"", 0, -_NEAR
        for position in positions:
            at = position - start
            end = block.find(b"\n", at) if 0 <= at < len(block) else -1
            if end < 0 and 0 < position - last < _NEAR:
                try:
                    fd = self._open_to_read(position >> OFFSET_BITS)
                    block, start, at = os.pread(fd, _AHEAD, position & _OFFSET_MASK), position, 0
                except OSError as error:
                    raise store_error(error, self.path) from error
                end = block.find(b"\n")
            yield block[at:end] if end >= 0 else self.read(position)
            last = position

    def replace(self, lines: Iterable[bytes]) -> None:
        with self._guard, NewRows(self) as rows:
            for chunk in lines:
                rows.write(chunk)
            rows.commit()

    def put(self, file: NewFile, checksums: Checksums) -> None:
        """The rows of a file, with their checksums, in place of all that there are."""
        with self._guard:
            refuse_link(self._folder)
            others = [self.path.parent / name for name in self._flat()]
            file.commit()
            self.close()
            self._checksums, self._joined = {self.path: checksums}, {}
            try:
                for path in others:
                    path.unlink()
            except OSError as error:
                raise store_error(error, self._folder) from error

    def segments(self) -> list[Segment]:
        found: list[Segment] = []
        for name in self._names():
            try:
                stat = os.stat(f"{self.path.parent}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(error, self.path.parent / name) from error
            found.append(Segment(name=name, size=stat.st_size, mtime_ns=stat.st_mtime_ns))
        return found

    def checksums(self) -> dict[str, str]:
        files = ((segment, self.path.parent / segment.name) for segment in self.segments())
        return {
            segment.name: self._summed(path, segment.size).text(path) for segment, path in files
        }

    def damage(self, manifest: Manifest) -> list[Damage]:
        numbers = {path: number for number, path in self.numbered()}
        sealed = {segment.name: segment.size for segment in manifest.segments}
        damage: list[Damage] = []
        for segment in self.segments():
            name, path = segment.name, self.path.parent / segment.name
            if name not in sealed or name not in manifest.checksums:
                continue
            checksums = self._joined.get(path)
            if path in self._checksums or checksums is None or checksums.size != segment.size:
                checksums = self._summed(path, segment.size)
            start = numbers[path] << OFFSET_BITS
            damaged = checksums.damaged(sealed[name], manifest.checksums[name], path)
            damage += [
                Damage(name, block.start, block.stop, start + block.start) for block in damaged
            ]
        return damage

    def sync(self) -> None:
        with self._guard:
            if self._append_fd < 0:
                return
            fd, created, self._created = os.dup(self._append_fd), self._created, False
        try:  # outside the guard: an fsync may take long, and appends continue meanwhile
            os.fsync(fd)
            if created:
                sync_folder(self.path.parent)
        except OSError as error:
            raise store_error(error, self.path) from error
        finally:
            os.close(fd)

    def close(self) -> None:
        with self._guard:
            for fd in (self._append_fd, *self._read_fds.values()):
                if fd >= 0:
                    os.close(fd)
            self._append_fd = -1
            self._read_fds.clear()

    def _summed(self, path: Path, size: int) -> Checksums:
        """The checksums of a file that has this size now."""
        with self._guard:
            checksums = self._checksums.get(path)
            if checksums is None or checksums.size != size:
                checksums = self._checksums[path] = read_checksums(path)
            return checksums

    @property
    def _folder(self) -> Path:
        return self.path.with_suffix(".d")

    def _names(self) -> Iterable[str]:
        """All files, relative to their folder. Of the generations of segments only the last counts."""
        folder = self._folder
        generation = max(
            (name for name, is_folder in _entries(folder) if is_folder and name.isdecimal()),
            key=int,
            default="",
        )
        yield self.path.name
        yield from self._flat()
        shards = (
            (name for name, is_folder in _entries(folder / generation) if is_folder)
            if generation
            else ()
        )
        for shard in sorted(shards, key=_by_number):
            segments = [
                name for name, _ in _entries(folder / generation / shard) if name.endswith(_SUFFIX)
            ]
            yield from (
                f"{folder.name}/{generation}/{shard}/{name}"
                for name in sorted(segments, key=_by_number)
            )

    def _flat(self) -> list[str]:
        return sorted(
            f"{self._folder.name}/{name}"
            for name, _ in _entries(self._folder)
            if name.endswith(_SUFFIX)
        )

    def numbered(self) -> list[tuple[int, Path]]:
        """Files in reading order. A number, once given, stays: positions outlive a new segment's arrival."""
        with self._guard:
            names = list(self._names())
            for name in names:
                if self._numbers.setdefault(name, len(self._files)) == len(self._files):
                    self._files.append(self.path.parent / name)
            return [
                (number, self._files[number]) for number in map(self._numbers.__getitem__, names)
            ]

    def _open(self) -> int:
        make_folder(self.path.parent)
        self._created = self._created or not self.path.exists()
        self._append_fd = open_own(self.path, os.O_RDWR | os.O_APPEND)
        mend_end(self._append_fd)
        self._appended = self._summed(self.path, os.fstat(self._append_fd).st_size)
        return self._append_fd

    def _open_to_read(self, number: int) -> int:
        with self._guard:
            if number not in self._read_fds:
                self._read_fds[number] = os.open(self._files[number], os.O_RDONLY | os.O_NONBLOCK)
            return self._read_fds[number]


def _entries(folder: Path) -> list[tuple[str, bool]]:
    """The names in a folder, if it is one, and whether each is a folder."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise store_error(error, folder) from error


def _by_number(name: str) -> tuple[int, str]:
    """The order of numbers with leading zeros, or with none."""
    return len(name), name
