"""GGUF files: what their header says, whether all of their tensors are there, and a hash that is computed once.

A file that was not downloaded to its end, or is something else, is refused here, before a server is started with it.
"""

import hashlib
import os
from contextlib import suppress
from math import prod
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, NamedTuple

import msgspec

from assay import reading
from assay.sdk import JsonObject, StoreError, UserError, cache_folder, safe_name, write_file

MAGIC = b"GGUF"
VERSIONS = (2, 3)
_LARGEST_HEADER = 1 << 28
_CHUNK = 1 << 20
_MOST_DIMENSIONS = 4
_U32, _U64 = Struct("<I"), Struct("<Q")
_SCALARS = {type: Struct(f"<{form}") for type, form in enumerate("BbHhIif?")} | {
    type: Struct(f"<{form}") for type, form in enumerate("Qqd", 10)
}
_STRING, _ARRAY = 8, 9
# By how many numbers a block has, the types of tensors and their bytes. Types that are not listed are not measured.
_SIZES = {
    1: {0: 4, 1: 2, 24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 30: 2},
    32: {2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 9: 40, 20: 18, 39: 17},
    64: {40: 36},
    128: {41: 18},
    256: {10: 84, 11: 110, 12: 144, 13: 176, 14: 210, 15: 292, 16: 66, 17: 74, 18: 98, 19: 50, 21: 110, 22: 82, 23: 136, 29: 56, 34: 54, 35: 66},
}  # fmt: skip
_BLOCKS = {type: (block, size) for block, sizes in _SIZES.items() for type, size in sizes.items()}
_AGAIN = "copy or download the file again"


class Weights(NamedTuple):
    """A whole GGUF file. `context` is the length that the model was trained for, 0 where the file does not say."""

    path: Path
    sha256: str
    context: int


def weights(path: Path) -> Weights:
    """A file of weights, checked. UserError where it cannot be one."""
    try:
        with reading.opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            metadata, needed = _header(file, str(path))
        if size < needed:
            what = f"the GGUF file is truncated: its tensors need {needed:,} bytes, it has {size:,}"
            raise UserError(what, where=str(path), fix=_AGAIN)
        context = _count(metadata, f"{metadata.get('general.architecture')}.context_length")
        return Weights(path, fingerprint(path), context)
    except OSError as error:
        raise UserError(
            f"the GGUF file cannot be read: {error.strerror}", where=str(path)
        ) from None


def _count(metadata: JsonObject, key: str) -> int:
    """A number of the metadata; 0 where there is none."""
    value = metadata.get(key)
    return value if isinstance(value, int) and value > 0 else 0


class _Remembered(msgspec.Struct):
    stamp: list[int]
    sha256: str


def fingerprint(path: Path) -> str:
    """The SHA-256 of a file, computed again only when its size or one of its times has changed."""
    real = path.resolve()
    memory = cache_folder() / "hashes" / safe_name(str(real))
    status = real.stat()
    stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    with suppress(OSError, msgspec.DecodeError):
        remembered = msgspec.json.decode(reading.content(memory), type=_Remembered)
        if remembered.stamp == stamp:
            return remembered.sha256
    with reading.opened(real) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(StoreError):  # it is only computed again then
        write_file(memory, msgspec.json.encode(_Remembered(stamp, sha256)))
    return sha256


class _Torn(Exception):
    """The file ends within its header."""


class _Values:
    """The values of a header, one after the other; of the file no more is read than they need."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._read = bytearray()
        self.at = 0

    def skip(self, count: int) -> int:
        """Pass by `count` bytes, and return where they begin."""
        start, self.at = self.at, self.at + count
        while self.at > len(self._read):
            if self.at > _LARGEST_HEADER or not (chunk := self._file.read(_CHUNK)):
                raise _Torn
            self._read += chunk
        return start

    def number(self, form: Struct) -> Any:
        start = self.skip(form.size)
        return form.unpack_from(self._read, start)[0]

    def text(self) -> str:
        length = self.number(_U64)
        start = self.skip(length)
        return self._read[start : self.at].decode(errors="replace")

    def value(self, type: int) -> Any:
        """A number or a text; arrays are passed by."""
        if type == _STRING:
            return self.text()
        if type != _ARRAY:
            return self.number(_SCALARS[type])
        inner, count = self.number(_U32), self.number(_U64)
        if inner in _SCALARS:
            self.skip(_SCALARS[inner].size * count)
        elif inner == _STRING:
            for _ in range(count):
                self.skip(self.number(_U64))
        else:
            raise KeyError(inner)
        return None


def _header(file: BinaryIO, where: str) -> tuple[JsonObject, int]:
    """The metadata, without its arrays, and how many bytes the whole file must have at least."""
    begin = file.read(len(MAGIC))
    if begin != MAGIC:
        raise _not_gguf(begin + file.read(40), where)
    values = _Values(file)
    try:
        _check_version(values.number(_U32), where)
        tensors, entries = values.number(_U64), values.number(_U64)
        metadata = {values.text(): values.value(values.number(_U32)) for _ in range(entries)}
        ends = [_end(values) for _ in range(tensors)]
    except _Torn:
        what = "the GGUF file is truncated or damaged: it ends before its header does"
        raise UserError(what, where=where, fix=_AGAIN) from None
    except KeyError:
        raise UserError("the header of the GGUF file is damaged", where=where, fix=_AGAIN) from None
    if _count(metadata, "split.count") > 1:
        fix = "join the parts with `llama-gguf-split --merge`"
        raise UserError("the GGUF file is one of several parts", where=where, fix=fix)
    if not ends:
        raise UserError("the GGUF file has no tensors: it is not a model", where=where)
    alignment = _count(metadata, "general.alignment") or 32
    start = len(MAGIC) + values.at
    return metadata, start + -start % alignment + max(ends)


def _check_version(version: int, where: str) -> None:
    if version not in VERSIONS:
        what = f"version {version} of GGUF is not supported"
        fix = f"convert it to version {VERSIONS[-1]}, little-endian"
        raise UserError(what, where=where, fix=fix)


def _end(values: _Values) -> int:
    """Return where a tensor ends, counted from where the first one begins."""
    values.text()
    dimensions = values.number(_U32)
    if dimensions > _MOST_DIMENSIONS:
        raise KeyError(dimensions)
    count = prod(values.number(_U64) for _ in range(dimensions))
    block, size = _BLOCKS.get(values.number(_U32), (1, 0))
    return values.number(_U64) + -(-count // block) * size


def _not_gguf(begin: bytes, where: str) -> UserError:
    if begin.startswith(b"version https://git-lfs"):
        return UserError(
            "this is the pointer of Git LFS to a file, not the file",
            where=where,
            fix="git lfs pull",
        )
    what = "the file is empty" if not begin else "this is not a GGUF file"
    return UserError(
        what, where=where, fix="name a file of weights for llama.cpp; its first bytes are `GGUF`"
    )
