"""The files behind a dataset: patterns become paths, and `.gz` and `.zst` are read as the text inside, streamed.

And what the row formats share: JSON as others write it, and the errors for rows that cannot be read.
"""

import io
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any

import msgspec

from assay import reading
from assay.records import decode_json
from assay.sdk import JsonObject, UserError, install_command

_BLOCK = 1 << 17
_strict = msgspec.json.Decoder().decode


def files(paths: str | Sequence[str], *, where: str = "dataset.path") -> list[Path]:
    """Every file, each once: in the order of the list, and sorted where a pattern stands for several."""
    found: dict[Path, None] = {}
    for text in [paths] if isinstance(paths, str) else paths:
        if reading.is_remote(text):
            from assay.store.shared.mirror import files as copies

            found.update(dict.fromkeys(copies(text)))
            continue
        path = Path(text)
        matches = (
            sorted(glob(text, recursive=True)) if has_magic(text) and not path.exists() else [text]
        )
        matching = [Path(match) for match in matches if match == text or Path(match).is_file()]
        if not matching:
            raise UserError(
                f"no file matches {text!r}", where=where, fix="correct the pattern, or remove it"
            )
        found.update(dict.fromkeys(matching))
    return list(found)


@contextmanager
def open_file(path: Path) -> Generator[IO[bytes]]:
    """The file's bytes, unpacked; what the disk or the packing has against it becomes an error with its name."""
    try:
        with _open(path) as file:
            yield file
    except (EOFError, zlib.error, _Corrupt) as error:
        raise _unpackable(path, error) from None
    except OSError as error:
        if error.errno is None:  # gzip's own
            raise _unpackable(path, error) from None
        raise UserError(f"the dataset cannot be read: {error.strerror}", where=str(path)) from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        import gzip

        reading.opened(path).close()
        return io.BufferedReader(gzip.open(path, "rb"), _BLOCK)
    if path.suffix.lower() == ".zst":
        return io.BufferedReader(_Unpacked(_zstd_blocks(path)), _BLOCK)
    return reading.opened(path)


class _Corrupt(Exception):
    pass


class _Unpacked(io.RawIOBase):
    """A stream of the blocks that an iterator gives."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _zstd_blocks(path: Path) -> Iterator[bytes]:
    """The library's own reader takes a file that was cut off for one that ends there: here every frame must end."""
    try:
        from zstandard import ZstdDecompressor, ZstdError
    except ModuleNotFoundError:
        fix = install_command("zstd")
        raise UserError("reading .zst files needs zstandard", where=str(path), fix=fix) from None
    with reading.opened(path) as file:
        frame = None
        data = file.read(_BLOCK)
        while data:
            frame = frame or ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(data)
            except ZstdError as error:
                raise _Corrupt(str(error)) from None
            data = b""
            if frame.eof:
                data, frame = frame.unused_data, None
            data = data or file.read(_BLOCK)
        if frame is not None:
            raise _Corrupt("it ends in the middle of a frame")


def _unpackable(path: Path, error: Exception) -> UserError:
    return UserError(
        f"the compressed dataset is corrupt: {error}",
        where=str(path),
        fix="copy or download the file again",
    )


def bad_row(what: str, place: str) -> UserError:
    return UserError(
        f"a dataset row cannot be read: {what}", where=place, fix="mend or remove this row"
    )


def row_of(row: Any, place: str) -> JsonObject:
    if not isinstance(row, dict):
        raise bad_row(f"expected an object, found {type(row).__name__}", place)
    return row


def json_value(text: bytes, place: str) -> Any:
    """A JSON value; NaN and Infinity, which others write, are taken too."""
    try:
        return _strict(text)
    except (ValueError, RecursionError) as error:
        try:
            return decode_json(text)
        except ValueError:
            raise bad_row(f"not JSON: {error}", place) from None
