"""All data transforms that task folders find under `sygra.processors.data_transform`. Those that count records count
from the end as well: a record is held back only until enough have followed it to tell where it stands.

Images and sounds become data URLs, which is what a model's server takes. The fields are those that hold one in the
first record: bytes, `{bytes, path}` and `{array, sampling_rate}` of Hugging Face, a picture object, or the path of a
file. A path is text from data: only files below the folders of the task and of its data are read. What cannot be read,
and addresses on the net, stay as they are.
"""

import base64
import io
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from assay.errors import UserError
from assay.formats.sygra.data.transform import (
    DataTransform,
    Record,
    Records,
    Streamed,
    mapping,
    whole,
)
from assay.registry import nearest

__all__ = [
    "AddNewFieldTransform",
    "AddRetryFieldsTransform",
    "CombineRecords",
    "CreateAudioUrlTransform",
    "CreateImageUrlTransform",
    "DataTransform",
    "RenameFieldsTransform",
    "SkipRecords",
]


class RenameFieldsTransform(Streamed):
    """`mapping: {old: new}`. A new name that the record has already is kept, both stay, unless `overwrite`."""

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        names, overwrite = mapping(params, "mapping"), bool(params.get("overwrite"))
        for record in records:
            renamed = dict(record)
            for old, new in names.items():
                if old in renamed and (overwrite or new not in renamed):
                    renamed[new] = renamed.pop(old)
            yield renamed


class AddNewFieldTransform(Streamed):
    """`mapping: {field: constant}`."""

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        constants = mapping(params, "mapping")
        return ({**record, **constants} for record in records)


class AddRetryFieldsTransform(Streamed):
    """What a loop with retries counts with: `max_retries`, `curr_retries`, `original_current_user_text`."""

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        constants = {
            "max_retries": params.get("max_retries", 3),
            "curr_retries": params.get("initial_retry_count", 0),
            "original_current_user_text": params.get("original_current_user_text", ""),
        }
        return ({**record, **constants} for record in records)


_START = ("from_start", "from_begin", "from_beginning")
_RANGE = re.compile(r"\s*\[\s*(-?\d+)?\s*:\s*(-?\d+)?\s*\]\s*")
_VARIABLE = re.compile(r"\$([1-9][0-9]*)")


class SkipRecords(Streamed):
    """Leaves records out: `skip_type: range` with `range: "[:10],[-10:]"`, or `skip_type: count` with
    `count: {from_start, from_end}`."""

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        kind = params.get("skip_type") or "range"
        if kind == "count":
            count = mapping(params, "count")
            return _inner(records, whole(count, *_START), whole(count, "from_end"))
        if kind == "range":
            return _outside(records, _ranges(params.get("range") or ""))
        raise UserError(f"unknown skip_type {kind!r}", fix=nearest(str(kind), ["range", "count"]))


class CombineRecords(Streamed):
    """Makes one record of every `combine` neighbours, `shift` records apart: `join_column: {field: "$1-$2"}`.

    Windows end with the last record; without something to combine, records stay as they are.
    """

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        size = whole(params, "combine", default=1)
        if size < 2:
            return records
        shift = whole(params, "shift", default=1, least=1)
        skip = mapping(params, "skip")
        rules = mapping(params, "join_column")
        inner = _inner(records, whole(skip, *_START), whole(skip, "from_end"))
        return (
            {name: _joined(str(rule), window, name) for name, rule in rules.items()}
            for window in _windows(inner, size, shift)
        )


def _inner(records: Records, start: int, end: int) -> Records:
    """All but the first `start` and the last `end`."""
    held: deque[Record] = deque()
    for record in islice(records, start, None):
        held.append(record)
        if len(held) > end:
            yield held.popleft()


def _ranges(text: Any) -> list[tuple[int, int | None]]:
    """`[a:b],[c:d]` as pairs; None is the end."""
    ranges: list[tuple[int, int | None]] = []
    for part in filter(str.strip, str(text).split(",")):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UserError(
                f"{part.strip()!r} is not a range", fix='write ranges like "[:10],[-10:]"'
            )
        ranges.append((int(match[1] or 0), int(match[2]) if match[2] else None))
    return ranges


def _outside(records: Records, ranges: list[tuple[int, int | None]]) -> Records:
    """The records that are in none of the ranges."""
    ahead = max(
        (-bound for pair in ranges for bound in pair if bound is not None and bound < 0), default=0
    )

    def skipped(number: int, left: int) -> bool:
        """`left` counts this record and those behind it; all that matters of more than `ahead` is that it is more."""
        return any(
            (number >= start if start >= 0 else left <= -start)
            and (end is None or (number < end if end >= 0 else left > -end))
            for start, end in ranges
        )

    held: deque[Record] = deque()
    number = -1
    for number, record in enumerate(records):
        held.append(record)
        if len(held) > ahead:
            first = held.popleft()
            if not skipped(number - ahead, ahead + 1):
                yield first
    for place, record in enumerate(held):
        left = len(held) - place
        if not skipped(number + 1 - left, left):
            yield record


def _windows(records: Iterable[Record], size: int, shift: int) -> Iterator[list[Record]]:
    window: deque[Record] = deque(maxlen=size)
    for number, record in enumerate(records, 1):
        window.append(record)
        if number >= size and (number - size) % shift == 0:
            yield list(window)


def _joined(rule: str, window: list[Record], name: str) -> str:
    """`$n` is the field of the n-th record. Of `$12` only the first digit counts where there are but two records; a
    dollar sign in a value stays one."""

    def value(match: re.Match[str]) -> str:
        digits = match[1]
        while digits and int(digits) > len(window):
            digits = digits[:-1]
        if not digits:
            return match[0]
        record = window[int(digits) - 1]
        if name not in record:
            raise UserError(f"a record has no field {name!r}", fix=nearest(name, map(str, record)))
        return str(record[name]) + match[1][len(digits) :]

    return _VARIABLE.sub(value, rule)


_IMAGE_SUFFIXES = (
    ".jpg",
    ".jpeg",
    ".png",
    ".gif",
    ".bmp",
    ".tiff",
    ".tif",
    ".webp",
    ".ico",
    ".apng",
)
_IMAGES = (  # the first bytes of a file, those from the ninth on, and what it is
    (b"\x89PNG\r\n\x1a\n", b"", "png"),
    (b"\xff\xd8\xff", b"", "jpeg"),
    (b"GIF8", b"", "gif"),
    (b"BM", b"", "bmp"),
    (b"II*\0", b"", "tiff"),
    (b"MM\0*", b"", "tiff"),
    (b"\0\0\1\0", b"", "ico"),
    (b"RIFF", b"WEBP", "webp"),
)
_SOUND_SUFFIXES = {f".{name}": name for name in ("wav", "ogg", "flac", "aac", "aiff")} | {
    ".mp3": "mpeg",
    ".m4a": "mp4",
}
_SOUNDS = (
    *((b"ID3", b"", "mpeg"), (b"\xff\xfb", b"", "mpeg"), (b"\xff\xf1", b"", "aac")),
    *((b"OggS", b"", "ogg"), (b"fLaC", b"", "flac"), (b"RIFF", b"WAVE", "wav")),
    *((b"FORM", b"AIFF", "aiff"), (b"FORM", b"AIFC", "aiff")),
)


class _Media(Streamed):
    """`folders` are those that files may be read from: by default the current one."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = [folder.resolve() for folder in folders or [Path()]]

    @abstractmethod
    def encoded(
        self, value: Any
    ) -> str | None: ...  # a data URL; None if the value holds nothing that can be sent

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        first = next(records, None)
        if first is None:
            return
        values = {
            name: value if isinstance(value, list) else [value] for name, value in first.items()
        }
        names = [name for name, entries in values.items() if any(map(self.encoded, entries))]
        targets = mapping(params, "output_fields")
        for record in chain([first], records):
            if names:
                urls = {
                    targets.get(name, name): self._all(record[name])
                    for name in names
                    if name in record
                }
                record = {**record, **urls}
            yield record

    def _all(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.encoded(entry) or entry for entry in value]
        return self.encoded(value) or value

    def content(self, value: Any, suffixes: Sequence[str]) -> tuple[bytes, str] | None:
        """The bytes that a value is or names, and the suffix of the name."""
        if isinstance(value, Mapping) and isinstance(value.get("bytes"), bytes):
            return value["bytes"], Path(str(value.get("path") or "")).suffix.lower()
        if isinstance(value, bytes | bytearray):
            return bytes(value), ""
        if isinstance(value, str) and value.lower().endswith(tuple(suffixes)):
            content = self._file(value)
            return None if content is None else (content, Path(value).suffix.lower())
        return None

    def _file(self, name: str) -> bytes | None:
        for folder in self.folders:
            try:
                path = (folder / name).resolve()
                if path.is_relative_to(folder) and path.is_file():
                    return path.read_bytes()
            except (OSError, ValueError, RuntimeError):
                continue
        return None


class CreateImageUrlTransform(_Media):
    """Images as `data:image/…;base64,…`."""

    def encoded(self, value: Any) -> str | None:
        if hasattr(value, "save") and hasattr(
            value, "format"
        ):  # a picture of Pillow, which need not be installed
            kind = value.format or "PNG"
            buffer = io.BytesIO()
            value.save(buffer, format=kind)
            return _data_url(f"image/{kind.lower()}", buffer.getvalue())
        media = self.content(value, _IMAGE_SUFFIXES)
        kind = _kind(media[0], _IMAGES) if media else ""
        return _data_url(f"image/{kind}", media[0]) if media and kind else None


class CreateAudioUrlTransform(_Media):
    """Sounds as `data:audio/…;base64,…`; `output_fields: {field: other}` leaves the field as it is."""

    def encoded(self, value: Any) -> str | None:
        if isinstance(value, Mapping) and "array" in value and value.get("sampling_rate"):
            return _data_url("audio/wav", _wave(value["array"], int(value["sampling_rate"])))
        media = self.content(value, tuple(_SOUND_SUFFIXES))
        if media is None:
            return None
        content, suffix = media
        kind = _SOUND_SUFFIXES.get(suffix) or _kind(content, _SOUNDS)
        return _data_url(f"audio/{kind}", content) if kind else None


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _kind(content: bytes, signatures: Sequence[tuple[bytes, bytes, str]]) -> str:
    inside = content[8:12]
    matches = (
        kind
        for start, inner, kind in signatures
        if content.startswith(start) and inside.startswith(inner)
    )
    return next(matches, "")


def _wave(samples: Any, rate: int) -> bytes:
    """Samples between -1 and 1, one column for each channel, as a WAV file of 16 bits."""
    import wave

    import numpy as np

    numbers = np.asarray(samples, np.float64)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1 if numbers.ndim == 1 else numbers.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(np.clip(numbers, -1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()
