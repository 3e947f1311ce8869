"""Images, audio and documents in messages: rows and keys hold a reference, only a server gets the bytes.

A reference is a part {type: image | audio | file, name, media_type, digest}. The type is what the bytes say, not what a
file is called. `wire` is the one place that makes the parts of OpenAI's API, which every model starts from.
"""

import base64
import binascii
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from assay import reading
from assay.errors import TransientError, UserError
from assay.interfaces import Message
from assay.records import JsonMapping, JsonObject

KINDS = ("image", "audio", "file")
MEDIA_MB = 20.0  # for one file; the variable ASSAY_MEDIA_MB says otherwise
_NOUNS = {"image": "image", "audio": "audio file", "file": "file"}
_AN = {"image": "an image", "audio": "an audio file", "file": "a PDF"}
_SENT = {"image": "png, jpeg, gif and webp", "audio": "wav, mp3, flac, ogg and m4a", "file": "PDF"}
_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"%PDF-", "application/pdf"),
)
# as OpenAI calls them; others are called like their type
_FORMATS = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}
_SOURCES = (
    "bytes",
    "path",
    "url",
    "data",
    *KINDS,
    "image_url",
    "audio_url",
    "file_url",
    "file_data",
)
_HEAD = 64
_ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")


# ---- what bytes are


def media_type(content: bytes) -> str:
    """Return what a file is, by its first bytes; "" if it is none that can be sent."""
    known = next((name for start, name in _STARTS if content.startswith(start)), "")
    if known:
        return known
    if content[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(content[8:12], "")
    if content[4:8] == b"ftyp":
        return "audio/mp4" if content[8:12] in (b"M4A ", b"mp42", b"isom") else ""
    synchronised = len(content) > 1 and content[0] == 0xFF and content[1] & 0xE0 == 0xE0
    # a frame of layer III or II
    return "audio/mpeg" if synchronised and content[1] & 0x06 in (2, 4) else ""


def _kind(found: str) -> str:
    return "file" if found == "application/pdf" else found.partition("/")[0]


def described(text: str, base: Path, folder: Path, kind: str = "image") -> tuple[Message, Path]:
    """The reference of a file that counts from `base`, without its name, and the file; it must be in `folder`."""
    noun = _NOUNS[kind]
    try:
        file = (base / text).resolve()
        inside = file.is_relative_to(folder)
        stat = file.stat() if inside else None
    except (OSError, ValueError, RuntimeError):
        raise UserError(f"there is no {noun} {text!r}", where=str(folder)) from None
    if stat is None:
        raise UserError(f"the {noun} {text!r} is outside {str(folder)!r}", fix="move it there")
    _check_size(stat.st_size, f"the {noun} {text!r}")
    found, digest = _type_and_digest(str(file), stat.st_size, stat.st_mtime_ns)
    if _kind(found) != kind:
        what = f"{file.name!r} is not {_AN[kind]}" + (f": it is {found}" if found else "")
        raise UserError(what, where=str(file), fix=f"{_SENT[kind]} can be sent")
    return {"type": kind, "media_type": found, "digest": digest}, file


def _check_size(size: int, what: str) -> None:
    try:
        most = float(os.environ.get("ASSAY_MEDIA_MB") or MEDIA_MB)
    except ValueError:
        raise UserError(
            "ASSAY_MEDIA_MB is not a number", fix="set it to megabytes, such as 20"
        ) from None
    if size > most * 1e6:
        fix = "make it smaller, or raise the limit with the variable ASSAY_MEDIA_MB"
        raise UserError(
            f"{what} is too large: {size / 1e6:.1f} MB, the limit is {most:g} MB", fix=fix
        )


@lru_cache(maxsize=1 << 16)
def _type_and_digest(path: str, size: int, mtime_ns: int) -> tuple[str, str]:
    """Type and digest of a file; with its size and time, so that a changed one is read again."""
    try:
        content = reading.content(path)
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=path) from None
    return media_type(content[:_HEAD]), _digest(content)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


# ---- parts


def part_of(kind: str, source: Any, detail: Mapping[str, str] | None = None) -> Message:
    """A part by address or with data, as OpenAI's API has it; by path {type, path}, to be found by whoever knows the
    folder. `source` is a text, or a mapping with one of path, url, data."""
    more: JsonObject = dict(detail or {})
    declared = ""
    if isinstance(source, Mapping):
        fields: JsonMapping = source
        more = {
            name: fields[name] for name in ("detail", "name") if isinstance(fields.get(name), str)
        } | more
        declared = str(fields.get("media_type") or fields.get("format") or "")
        name = next((name for name in _SOURCES if isinstance(fields.get(name), (str, bytes))), "")
        source = fields.get(name)
        if name == "bytes":
            source = base64.b64encode(
                source if isinstance(source, bytes) else _blob(str(source))
            ).decode()
        if name in ("data", "bytes") and isinstance(source, str) and not source.startswith("data:"):
            return wire(
                {"type": kind, "media_type": _media_type_of(source, declared, kind), **more}, source
            )
    if not isinstance(source, str) or not source:
        raise UserError(
            f"{_AN[kind]} is named by a path, an address or data", fix="write {type: …, path: …}"
        )
    if source.startswith("data:"):
        named, data = data_url(source)
        return wire({"type": kind, "media_type": named, **more}, data)
    if source.startswith(("http://", "https://")):
        return _at_address(kind, source, more)
    if "://" in source[:20]:
        fix = "begin it with https://, or give a file as `path:`"
        raise UserError(f"the {_NOUNS[kind]}'s url is {_short(source)!r}", fix=fix)
    return {"type": kind, "path": source, **more}


def data_url(url: str) -> tuple[str, str]:
    """Return the media type and the data of an address that holds them."""
    head, _, data = url.partition(",")
    return head.removeprefix("data:").partition(";")[0], data


def _blob(text: str) -> bytes:
    """Binary data of a table as a row's JSON has them: as base64, or, from Parquet, bytes beyond ASCII as \\xNN."""
    if "\\x" not in text:
        return _from_base64(text, "file")
    return _ESCAPED.sub(lambda byte: bytes([int(byte[1], 16)]), text.encode())


def _at_address(kind: str, url: str, more: JsonMapping) -> Message:
    if kind == "file":
        return {
            "type": "file",
            "file": {"filename": more.get("name") or url.rpartition("/")[2], "file_data": url},
        }
    name = f"{kind}_url"
    return {
        "type": name,
        name: {"url": url, **{key: more[key] for key in more.keys() & {"detail"}}},
    }


def _media_type_of(data: str, declared: str, kind: str) -> str:
    """The media type of base64 text: by its bytes, else as it is declared."""
    found = media_type(_from_base64(data[: _HEAD // 3 * 4], kind))
    return found or (declared if "/" in declared else f"{kind}/{declared}")


def _from_base64(data: str, kind: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        what = f"the data of {_AN[kind]} are not base64: {_short(data)!r}"
        raise UserError(what, fix="encode the bytes, or give a file as `path:`") from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def wire(reference: JsonMapping, data: str) -> Message:
    """The part of OpenAI's API for a reference, with its bytes as base64."""
    kind, found = reference["type"], reference["media_type"]
    if kind == "audio":
        format = _FORMATS.get(found) or found.rpartition("/")[2]
        return {"type": "input_audio", "input_audio": {"data": data, "format": format}}
    url = f"data:{found};base64,{data}"
    if kind == "file":
        name = os.path.basename(reference.get("name") or "document.pdf")
        return {"type": "file", "file": {"filename": name, "file_data": url}}
    detail = {"detail": reference["detail"]} if "detail" in reference else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


# ---- messages


def separated(messages: list[Message]) -> tuple[list[Message], dict[str, str]]:
    """The messages with references in place of bytes, and these bytes as base64, by digest. Plain texts come back as
    the same object."""
    data: dict[str, str] = {}
    if not any(isinstance(message.get("content"), list) for message in messages):
        return messages, data

    def shown(part: Any) -> Any:
        inline = _inline(part)
        if inline is None:
            return part
        reference, text = inline
        content = _from_base64(text, reference["type"])
        _check_size(len(content), f"the data of {_AN[reference['type']]}")
        reference["media_type"] = media_type(content[:_HEAD]) or reference["media_type"]
        reference["digest"] = _digest(content)
        data[reference["digest"]] = text
        return reference

    return _with_parts(messages, shown), data


def nameless(messages: list[Message]) -> list[Message]:
    """The messages with references that have no names: equal where the bytes are, whatever files held them."""

    def bare(part: Any) -> Any:
        known = isinstance(part, dict) and "digest" in part
        return {key: value for key, value in part.items() if key != "name"} if known else part

    try:
        shown = separated(messages)[0]
    except UserError:  # an old row may hold anything
        return messages
    return messages if shown is messages else _with_parts(shown, bare)


def _inline(part: Any) -> tuple[Message, str] | None:
    """A part's reference, still without a digest, and its base64; None where it holds no bytes."""
    kind = str(part.get("type")) if isinstance(part, dict) else ""
    holder: Any = part.get(kind) if kind in ("image_url", "input_audio", "file") else None
    if not isinstance(holder, dict):
        return None
    if kind == "input_audio":
        data = holder.get("data")
        reference = {"type": "audio", "media_type": f"audio/{holder.get('format')}"}
        return (reference, data) if isinstance(data, str) else None
    url = holder.get("url" if kind == "image_url" else "file_data")
    head, _, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    if not head.startswith("data:") or not head.endswith(";base64"):
        return None
    reference = {"type": kind.removesuffix("_url"), "media_type": head[5:].partition(";")[0]}
    more = {"name": holder.get("filename"), "detail": holder.get("detail")}
    return {**reference, **{name: value for name, value in more.items() if value}}, data


def loaded(messages: Sequence[Message], files: Mapping[str, Path]) -> dict[str, str]:
    """The bytes of the references that are files, as base64, by digest."""
    data: dict[str, str] = {}
    for part in _parts(messages):
        digest = (
            part.get("digest") if isinstance(part, dict) and part.get("type") in KINDS else None
        )
        if digest is None or digest in data or digest not in files:
            continue
        try:
            content = reading.content(files[digest])
        except OSError:
            content = b""
        if _digest(content) != digest:
            what = f"the {_NOUNS[part['type']]} {files[digest].name!r} changed during the run"
            raise TransientError(what, where=str(files[digest]))
        data[digest] = base64.b64encode(content).decode()
    return data


def restored(messages: Sequence[Message], data: Mapping[str, str]) -> list[Message]:
    """The messages as a server gets them."""

    def sent(part: Any) -> Any:
        known = isinstance(part, dict) and part.get("type") in KINDS and part.get("digest") in data
        return wire(part, data[part["digest"]]) if known else part

    return _with_parts(messages, sent)


def has_media(messages: Sequence[Message]) -> bool:
    """Return whether there is a part that is no text."""
    return any(isinstance(part, dict) and "text" not in part for part in _parts(messages))


def _parts(messages: Sequence[Message]) -> list[Any]:
    contents = (message.get("content") for message in messages)
    return [part for content in contents if isinstance(content, list) for part in content]


def _with_parts(messages: Sequence[Message], change: Any) -> list[Message]:
    return [
        {**message, "content": [change(part) for part in message["content"]]}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]
