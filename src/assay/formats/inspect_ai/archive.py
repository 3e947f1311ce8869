"""The zip archive that an `.eval` file is, member by member: stored, deflated or, as inspect_ai writes it, zstandard in
one or several frames.

Nothing is trusted: sizes are bounded before and while a member is unpacked, members that overlap are refused, and a
member's name is never a path. An archive that was cut off has no directory: its members are looked for from the front.
"""

import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Any
from zipfile import ZipInfo

from assay import reading
from assay.sdk import UserError, install_command

MOST = 1 << 30  # bytes of one member, unpacked
FREE = 1 << 26  # a member up to this size may be packed as tightly as it likes
RATIO = 1_000
_LOCAL, _HEADER = b"PK\x03\x04", Struct("<4s5H3L2H")
_SIZE = _HEADER.size
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_LARGE = 0xFFFFFFFF


class Unreadable(Exception):
    """Why a member cannot be read."""


class Archive:
    """The members by name; of several with one name, the last. `torn`: the directory is missing. It is open within
    `with`, and may be opened again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        self._zstd: Any = None
        with self:
            self.members = {member.filename: member for member in self._directory()}

    def __enter__(self) -> "Archive":
        self._file = reading.opened(self.path, 0)
        self._fd = self._file.fileno()
        self._size = os.fstat(self._fd).st_size
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _directory(self) -> list[ZipInfo]:
        try:
            with zipfile.ZipFile(self._file) as directory:
                members = directory.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, UnicodeError):
            self.torn = True
            members = list(self._whole_members())
        if sum(member.compress_size for member in members) > self._size:
            raise UserError(
                "the members of this archive overlap",
                where=str(self.path),
                fix="do not trust this file",
            )
        return members

    def read(self, member: ZipInfo) -> bytes:
        """A member's content; Unreadable if it is damaged, encrypted or too large."""
        if member.flag_bits & 1:
            raise Unreadable("it is encrypted")
        size, packed = member.file_size, member.compress_size
        if size > MOST or (size > FREE and size > RATIO * packed):
            raise Unreadable(f"it would have {size:,} bytes, unpacked from {packed:,}")
        data = self._packed_content(member)
        if member.compress_type == _ZSTD:
            content = self._decompress(data, size)
        elif member.compress_type == _DEFLATED:
            content = _inflate(data, size)
        elif member.compress_type == _STORED:
            content = data
        else:
            raise Unreadable(f"it is compressed with the unknown method {member.compress_type}")
        if len(content) != size or zlib.crc32(content) != member.CRC:
            raise Unreadable("its content is not what the archive says")
        return content

    def _packed_content(self, member: ZipInfo) -> bytes:
        offset, size = member.header_offset, member.compress_size
        if not 0 <= offset < self._size or size > self._size:
            raise Unreadable("there is no member where the archive says")
        guess = _SIZE + len(member.filename) + 64
        data = os.pread(self._fd, guess + size, offset)
        if data[:4] != _LOCAL or len(data) < _SIZE:
            raise Unreadable("there is no member where the archive says")
        *_, name, extra = _HEADER.unpack_from(data)
        start = _SIZE + name + extra
        if len(data) < start + size:
            data = os.pread(self._fd, start + size, offset)
        packed = data[start : start + size]
        if len(packed) < size:
            raise Unreadable("the file ends in the middle of it")
        return packed

    def _decompress(self, data: bytes, size: int) -> bytes:
        if self._zstd is None:
            self._zstd = _zstandard(self.path)
        zstd, decompressor = self._zstd
        try:
            if zstd.frame_content_size(data) <= size:  # unknown is -1
                content = decompressor.decompress(data, max_output_size=size) if size else b""
                if len(content) == size:
                    return content
            with decompressor.stream_reader(data, read_across_frames=True) as frames:
                return frames.read(size + 1)
        except zstd.ZstdError as error:
            raise Unreadable(str(error)) from None

    def _whole_members(self) -> Iterator[ZipInfo]:
        """The members from the front, up to the first that is not whole."""
        offset = 0
        while len(head := os.pread(self._fd, _SIZE, offset)) == _SIZE and head[:4] == _LOCAL:
            _, _, flags, method, _, _, crc, packed, size, length, extra = _HEADER.unpack(head)
            end = offset + _SIZE + length + extra + packed
            if flags & 8 or _LARGE in (packed, size) or end > self._size:
                return
            name = os.pread(self._fd, length, offset + _SIZE).decode("utf-8", "replace")
            member = ZipInfo(name)
            member.header_offset, member.compress_size, member.file_size = offset, packed, size
            member.flag_bits, member.compress_type, member.CRC = flags, method, crc
            yield member
            offset = end


def _inflate(data: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(data, size + 1)
    except zlib.error as error:
        raise Unreadable(str(error)) from None


def _zstandard(path: Path) -> tuple[Any, Any]:
    try:
        import zstandard
    except ModuleNotFoundError:
        fix = install_command("zstd")
        raise UserError("reading .eval files needs zstandard", where=str(path), fix=fix) from None
    return zstandard, zstandard.ZstdDecompressor()
