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
from typing import Any, NamedTuple

from assay import reading
from assay.errors import UserError, install_command

MOST = 1 << 30  # bytes of one member, unpacked
FREE = 1 << 26  # a member up to this size may be packed as tightly as it likes
RATIO = 1_000
_LOCAL, _SIZE = b"PK\x03\x04", 30
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_END, _ENTRY = Struct("<4s4H2LH"), Struct("<4s6H3L5H2L")
_LARGE, _UTF8 = 0xFFFFFFFF, 0x800


class Member(NamedTuple):
    """Where a member stands, and what the directory says of it."""

    name: str
    offset: int
    packed: int
    size: int
    crc: int
    method: int
    encrypted: bool = False


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
            self.members = {member.name: member for member in self._directory()}

    def __enter__(self) -> "Archive":
        self._file = reading.opened(self.path, 0)
        self._fd = self._file.fileno()
        self._size = os.fstat(self._fd).st_size
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _directory(self) -> list[Member]:
        try:
            members = self._plain_directory()
            if members is None:
                with zipfile.ZipFile(self._file) as directory:
                    members = [*map(_member, directory.infolist())]
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, UnicodeError):
            self.torn = True
            members = list(self._whole_members())
        if sum(member.packed for member in members) > self._size:
            raise UserError(
                "the members of this archive overlap",
                where=str(self.path),
                fix="do not trust this file",
            )
        return members

    def _plain_directory(self) -> list[Member] | None:
        """The members of an archive below 4 GB that ends with its directory, in a third of zipfile's time; None for
        any other."""
        at = max(0, self._size - _END.size)
        end = os.pread(self._fd, _END.size, at)
        if len(end) < _END.size:
            return None
        mark, _, _, _, count, size, start, _ = _END.unpack(end)
        if mark != b"PK\x05\x06" or start + size != at or count == 0xFFFF:
            return None
        data, place, members = os.pread(self._fd, size, start), 0, list[Member]()
        while place + _ENTRY.size <= len(data):
            mark, _, _, flags, method, _, _, crc, packed, full, name, extra, comment, *_, offset = (
                _ENTRY.unpack_from(data, place)
            )
            text = data[place + _ENTRY.size : place + _ENTRY.size + name]
            if (
                mark != b"PK\x01\x02"
                or _LARGE in (packed, full, offset)
                or not (flags & _UTF8 or text.isascii())
            ):
                return None
            members.append(
                Member(text.decode(), offset, packed, full, crc, method, bool(flags & 1))
            )
            place += _ENTRY.size + name + extra + comment
        return members if len(members) == count and place == size else None

    def read(self, member: Member) -> bytes:
        """A member's content; Unreadable if it is damaged, encrypted or too large."""
        if member.encrypted:
            raise Unreadable("it is encrypted")
        if member.size > MOST or (member.size > FREE and member.size > RATIO * member.packed):
            raise Unreadable(
                f"it would have {member.size:,} bytes, unpacked from {member.packed:,}"
            )
        data = self._packed(member)
        if member.method == _ZSTD:
            content = self._decompressed(data, member.size)
        elif member.method == _DEFLATED:
            content = _inflated(data, member.size)
        elif member.method == _STORED:
            content = data
        else:
            raise Unreadable(f"it is compressed with the unknown method {member.method}")
        if len(content) != member.size or zlib.crc32(content) != member.crc:
            raise Unreadable("its content is not what the archive says")
        return content

    def _packed(self, member: Member) -> bytes:
        if not 0 <= member.offset < self._size or member.packed > self._size:
            raise Unreadable("there is no member where the archive says")
        guess = _SIZE + len(member.name) + 64
        data = os.pread(self._fd, guess + member.packed, member.offset)
        if data[:4] != _LOCAL or len(data) < _SIZE:
            raise Unreadable("there is no member where the archive says")
        start = _SIZE + data[26] + (data[27] << 8) + data[28] + (data[29] << 8)
        if len(data) < start + member.packed:
            data = os.pread(self._fd, start + member.packed, member.offset)
        packed = data[start : start + member.packed]
        if len(packed) < member.packed:
            raise Unreadable("the file ends in the middle of it")
        return packed

    def _decompressed(self, data: bytes, size: int) -> bytes:
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

    def _whole_members(self) -> Iterator[Member]:
        """The members from the front, up to the first that is not whole."""
        offset = 0
        while len(head := os.pread(self._fd, _SIZE, offset)) == _SIZE and head[:4] == _LOCAL:
            flags, method = (
                int.from_bytes(head[6:8], "little"),
                int.from_bytes(head[8:10], "little"),
            )
            crc, packed, size = (int.from_bytes(head[at : at + 4], "little") for at in (14, 18, 22))
            length = int.from_bytes(head[26:28], "little")
            end = offset + _SIZE + length + int.from_bytes(head[28:30], "little") + packed
            if flags & 8 or 0xFFFFFFFF in (packed, size) or end > self._size:
                return
            name = os.pread(self._fd, length, offset + _SIZE).decode("utf-8", "replace")
            yield Member(name, offset, packed, size, crc, method, bool(flags & 1))
            offset = end


def _member(info: zipfile.ZipInfo) -> Member:
    encrypted = bool(info.flag_bits & 1)
    return Member(
        info.filename,
        info.header_offset,
        info.compress_size,
        info.file_size,
        info.CRC,
        info.compress_type,
        encrypted,
    )


def _inflated(data: bytes, size: int) -> bytes:
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
