"""Logs of JSON lines in a file, with further segments beside it.

A line is committed by one `write` to the kernel, so a killed process loses none. A line that was torn (by
a power cut or a full disk) is never shown by `scan`, and the next `append` cuts it off.
"""

import json
import os
import threading
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from assay import reading
from assay.errors import StoreError
from assay.records import Damage, Manifest, Segment
from assay.store.files import make_folder, open_own, refuse_link, store_error, sync_folder, write_file
from assay.store.seal import Checksums, read_checksums

_LINE_FEED = 10
_OFFSET_BITS = 48
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
_SCAN_BUFFER = 1 << 20  # iterating over a file is 2.7 times as fast as with Python's 8 kB
_BLOCK = 1 << 17  # decoding larger blocks is slower: each is then a mapping of its own, faulted in page by page
_FIRST_READ = 1 << 12
_LARGEST_READ = 1 << 22


class FileLog:
    """`<name>.jsonl`, then the segments `<name>.d/*.jsonl`, which others write and we only read.

    A position is a segment's number and an offset in one integer. There is one writer at a time (see `lock`),
    but threads may share the object, and it may be used again after `close`. `scan` and `blocks` leave out the lines at
    the positions in `hidden`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hidden: Collection[int] = ()
        self._files = [path]
        self._append_fd = -1
        self._read_fds: dict[int, int] = {}
        self._created = False
        self._checksums: dict[Path, Checksums] = {}
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
                    _write_rest(fd, lines, written)
                self._appended.add(lines)
            except OSError as error:
                self.close()  # the next append opens the file anew and cuts off what may be left
                raise store_error(error, self.path) from error

    def scan(self) -> Iterator[tuple[int, bytes]]:
        hidden = self.hidden
        return (pair for pair in self._scan() if pair[0] not in hidden) if hidden else self._scan()

    def _scan(self) -> Iterator[tuple[int, bytes]]:
        for number, path in self.numbered():
            try:
                with reading.opened(path, _SCAN_BUFFER) as file:
                    position = number << _OFFSET_BITS
                    for line in file:
                        if line[-1] != _LINE_FEED:
                            if _is_json(line):
                                yield position, line
                            break
                        size = len(line)
                        line = line[:-1]  # lets go of the longer one while the consumer works
                        yield position, line
                        position += size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(error, path) from error

    def blocks(self) -> Iterator[bytes]:
        if self.hidden:
            lines = (line + b"\n" for _, line in self.scan())
            while block := b"".join(islice(lines, 256)):
                yield block
            return
        for _, path in self.numbered():
            checksums = Checksums(lines=None)
            try:
                with reading.opened(path, 0) as file:
                    yield from _whole_lines(file, checksums)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(error, path) from error
            self._checksums.setdefault(path, checksums)

    def read(self, position: int) -> bytes:
        number, offset = position >> _OFFSET_BITS, position & _OFFSET_MASK
        try:
            fd = self._read_fds.get(number, -1)
            if fd < 0:
                fd = self._open_to_read(number)
            block = os.pread(fd, _FIRST_READ, offset)
            end = block.find(b"\n")
            if end >= 0:
                return block[:end]
            if block:
                return _read_long(fd, block, offset + len(block))
        except OSError as error:
            raise store_error(error, self.path) from error
        raise StoreError("there is no line at this position", where=str(self.path), fix="scan the log again")

    def replace(self, lines: Iterable[bytes]) -> None:
        with self._guard:
            refuse_link(self._folder)
            others = [path for path in self._listed() if path != self.path]
            checksums = Checksums()
            write_file(self.path, checksums.of(lines))
            self.close()
            self._checksums = {self.path: checksums}
            try:
                for path in others:
                    path.unlink()
            except OSError as error:
                raise store_error(error, self._folder) from error

    def segments(self) -> list[Segment]:
        found: list[Segment] = []
        for path in self._listed():
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(error, path) from error
            name = path.relative_to(self.path.parent).as_posix()
            found.append(Segment(name=name, size=stat.st_size, mtime_ns=stat.st_mtime_ns))
        return found

    def checksums(self) -> dict[str, str]:
        files = ((segment, self._path(segment)) for segment in self.segments())
        return {segment.name: self._summed(path, segment.size).text(path) for segment, path in files}

    def damage(self, manifest: Manifest) -> list[Damage]:
        numbers = {path: number for number, path in self.numbered()}
        sealed = {segment.name: segment.size for segment in manifest.segments}
        damage: list[Damage] = []
        for segment in self.segments():
            name, path = segment.name, self._path(segment)
            if name not in sealed or name not in manifest.checksums:
                continue
            blocks = self._summed(path, segment.size).damaged(sealed[name], manifest.checksums[name], path)
            start = numbers[path] << _OFFSET_BITS
            damage += [Damage(name, block.start, block.stop, start + block.start) for block in blocks]
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

    def _path(self, segment: Segment) -> Path:
        return self.path.parent / segment.name

    @property
    def _folder(self) -> Path:
        return self.path.with_suffix(".d")

    def _listed(self) -> list[Path]:
        return [self.path, *sorted(self._folder.glob("*.jsonl"))]

    def numbered(self) -> list[tuple[int, Path]]:
        """Files in reading order. A number, once given, stays: positions outlive a new segment's arrival."""
        with self._guard:
            listed = self._listed()
            self._files += [path for path in listed if path not in self._files]
            return [(self._files.index(path), path) for path in listed]

    def _open(self) -> int:
        make_folder(self.path.parent)
        self._created = self._created or not self.path.exists()
        self._append_fd = open_own(self.path, os.O_RDWR | os.O_APPEND)
        _mend_end(self._append_fd)
        self._appended = self._summed(self.path, os.fstat(self._append_fd).st_size)
        return self._append_fd

    def _open_to_read(self, number: int) -> int:
        with self._guard:
            if number not in self._read_fds:
                self._read_fds[number] = os.open(self._files[number], os.O_RDONLY | os.O_NONBLOCK)
            return self._read_fds[number]


def _write_rest(fd: int, lines: bytes, written: int) -> None:
    """After a short write: write the rest, or take back what was written and say why."""
    start = os.lseek(fd, 0, os.SEEK_CUR) - written
    rest = memoryview(lines)[written:]
    try:
        while rest:
            rest = rest[os.write(fd, rest) :]
    except OSError:
        os.ftruncate(fd, start)
        raise


def _whole_lines(file: BinaryIO, checksums: Checksums) -> Iterator[bytes]:
    """Blocks that end where a line ends; a torn last line is left out."""
    begun: list[bytes | memoryview] = []
    while block := file.read(_BLOCK):
        checksums.update(block)
        end = block.rfind(b"\n") + 1
        if not end:
            begun.append(block)
            continue
        begun.append(memoryview(block)[:end])
        yield b"".join(begun)
        begun = [block[end:]]
    rest = b"".join(begun)
    if rest and _is_json(rest):
        yield rest + b"\n"


def _read_long(fd: int, block: bytes, offset: int) -> bytes:
    """The whole of a line that did not end in its first block."""
    parts = [block]
    size = _FIRST_READ
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


def _mend_end(fd: int) -> None:
    """A last line without its line feed gets it if it is whole, and goes if it is not."""
    size = os.fstat(fd).st_size
    if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
        return
    start = size
    step = 1 << 16
    while start > 0:
        low = max(0, start - step)
        feed = os.pread(fd, start - low, low).rfind(b"\n")
        if feed >= 0:
            start = low + feed + 1
            break
        start = low
    if _is_json(os.pread(fd, size - start, start)):
        os.write(fd, b"\n")
    else:
        os.ftruncate(fd, start)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
