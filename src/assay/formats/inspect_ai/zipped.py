"""An archive as `.eval` files are, written as a stream: each member is compressed as it comes, the directory follows.
zstandard where it is installed, else deflate, which inspect_ai reads as well."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from struct import pack
from tempfile import TemporaryFile
from typing import Any

_TIME, _DATE = 0, (1 << 5) | 1  # 1980-01-01: equal rows give equal files
_ZIP64, _LARGE, _MANY = 45, 0xFFFFFFFF, 0xFFFF
_DEFLATED, _ZSTD = 8, 93
_STORED_BLOCK = 1 << 20


class Zipped:
    """Gives the bytes of the archive, in order."""

    def __init__(self) -> None:
        self._offset = 0
        self._directory: list[bytes] = []
        self._zstd = _compressor()
        self._method = _DEFLATED if self._zstd is None else _ZSTD

    def member(self, name: str, content: bytes) -> bytes:
        """A member that is in memory."""
        packed = self._zstd.compress(content) if self._zstd is not None else _deflated(content)
        return self._entry(name, zlib.crc32(content), len(packed), len(content)) + self._count(
            packed
        )

    def spooled(self, name: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """A member that may be larger than memory: its chunks are compressed into a file first."""
        crc = size = packed = 0
        deflate = zlib.compressobj(wbits=-15) if self._method == _DEFLATED else None
        compress: Callable[[bytes], bytes] = (
            deflate.compress if deflate is not None else self._zstd.compress
        )
        with TemporaryFile(prefix="assay-") as spool:
            for chunk in chunks:
                crc, size = zlib.crc32(chunk, crc), size + len(chunk)
                packed += spool.write(compress(chunk))
            packed += spool.write(deflate.flush()) if deflate is not None else 0
            yield self._entry(name, crc, packed, size)
            spool.seek(0)
            while block := spool.read(_STORED_BLOCK):
                yield self._count(block)

    def end(self) -> bytes:
        """The directory."""
        start, count = self._offset, len(self._directory)
        directory = b"".join(self._directory)
        size = len(directory)
        large = b""
        if count >= _MANY or start >= _LARGE:
            numbers = pack("<QHHIIQQQQ", 44, _ZIP64, _ZIP64, 0, 0, count, count, size, start)
            large = b"PK\x06\x06" + numbers + b"PK\x06\x07" + pack("<IQI", 0, start + size, 1)
        number = min(count, _MANY)
        end = pack("<HHHHIIH", 0, 0, number, number, min(size, _LARGE), min(start, _LARGE), 0)
        return directory + large + b"PK\x05\x06" + end

    def _entry(self, name: str, crc: int, packed: int, size: int) -> bytes:
        encoded, offset = name.encode(), self._offset
        larger = max(packed, size) >= _LARGE
        own = pack("<HHQQ", 1, 16, size, packed) if larger else b""
        sizes = (_LARGE, _LARGE) if larger else (packed, size)
        common = pack("<HHHHHIII", _ZIP64, 0x800, self._method, _TIME, _DATE, crc, *sizes)
        local = b"PK\x03\x04" + common + pack("<HH", len(encoded), len(own)) + encoded + own
        far = offset >= _LARGE
        numbers = [*([size, packed] if larger else []), *([offset] if far else [])]
        extra = pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
        rest = pack("<HHHHHII", len(encoded), len(extra), 0, 0, 0, 0, min(offset, _LARGE))
        self._directory.append(b"PK\x01\x02" + pack("<H", _ZIP64) + common + rest + encoded + extra)
        return self._count(local)

    def _count(self, data: bytes) -> bytes:
        self._offset += len(data)
        return data


def _compressor() -> Any:
    try:
        from zstandard import ZstdCompressor
    except ModuleNotFoundError:
        return None
    return ZstdCompressor()


def _deflated(content: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    return deflate.compress(content) + deflate.flush()
