"""Images and sounds in records become data URLs, which is what a model's server takes.

The fields are those that hold one in the first record: bytes, `{bytes, path}` and `{array, sampling_rate}` of Hugging
Face, a picture object, or the path of a file. A path is text from data: only files below the folders of the task and
of its data are read. What cannot be read, and addresses on the net, stay as they are.
"""

import base64
import io
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from assay.formats.sygra.data.transform import Records, Streamed, mapping

_IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tiff", ".tif", ".webp", ".ico", ".apng")
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
    (b"\0\0\1\0", "ico"),
)
_SOUND_SUFFIXES = {
    ".wav": "wav",
    ".mp3": "mpeg",
    ".ogg": "ogg",
    ".flac": "flac",
    ".aac": "aac",
    ".m4a": "mp4",
    ".aiff": "aiff",
}
_SOUNDS = ((b"ID3", "mpeg"), (b"\xff\xfb", "mpeg"), (b"\xff\xf1", "aac"), (b"OggS", "ogg"), (b"fLaC", "flac"))


class _Media(Streamed, title="create_image_url"):
    """`folders` are those that files may be read from: by default the current one."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = [folder.resolve() for folder in folders or [Path()]]

    @abstractmethod
    def encoded(self, value: Any) -> str | None:
        """The data URL of one value, or None if it holds nothing that can be sent."""

    def stream(self, records: Records, params: Mapping[str, Any]) -> Records:
        first = next(records, None)
        if first is None:
            return
        names = [name for name, value in first.items() if any(map(self.encoded, _each(value)))]
        targets = mapping(params, "output_fields")
        for record in chain([first], records):
            if names:
                urls = {targets.get(name, name): self._all(record[name]) for name in names if name in record}
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
        if hasattr(value, "save") and hasattr(value, "format"):  # a picture of Pillow, which need not be installed
            kind = value.format or "PNG"
            buffer = io.BytesIO()
            value.save(buffer, format=kind)
            return _data_url(f"image/{kind.lower()}", buffer.getvalue())
        media = self.content(value, _IMAGE_SUFFIXES)
        kind = _image_kind(media[0]) if media else ""
        return _data_url(f"image/{kind}", media[0]) if media and kind else None


class CreateAudioUrlTransform(_Media, title="create_audio_url"):
    """Sounds as `data:audio/…;base64,…`; `output_fields: {field: other}` leaves the field as it is."""

    def encoded(self, value: Any) -> str | None:
        if isinstance(value, Mapping) and "array" in value and value.get("sampling_rate"):
            return _data_url("audio/wav", _wave(value["array"], int(value["sampling_rate"])))
        media = self.content(value, tuple(_SOUND_SUFFIXES))
        if media is None:
            return None
        content, suffix = media
        kind = _SOUND_SUFFIXES.get(suffix) or _sound_kind(content)
        return _data_url(f"audio/{kind}", content) if kind else None


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _image_kind(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _IMAGES if content.startswith(start)), "")


def _sound_kind(content: bytes) -> str:
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return "wav"
    if content[:4] == b"FORM" and content[8:12] in (b"AIFF", b"AIFC"):
        return "aiff"
    return next((kind for start, kind in _SOUNDS if content.startswith(start)), "")


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
