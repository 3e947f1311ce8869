"""The two forms of a log: header and samples of an archive, or of a JSON file. Both are read sample by sample."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.engine.experiment.foreign import Rest, head_of
from assay.errors import UserError
from assay.formats.inspect_ai.archive import Archive, Unreadable
from assay.formats.inspect_ai.header import Header, header_of
from assay.formats.inspect_ai.shapes import finite
from assay.text.json_extents import BrokenExtent, extents

Broken = Callable[[str], None]
_ZIP = b"PK\x03\x04"
_HEADER, _START = "header.json", "_journal/start.json"
_SAMPLES = "samples/"
_JSON = re.compile(rb'\s*\{\s*"version"\s*:\s*-?[\d.]+\s*,\s*"status"\s*:\s*"\w*"\s*,\s*"eval"\s*:\s*\{')


def is_log(path: Path) -> bool:
    """Whether a file is a log, by its content."""
    head = head_of(path)
    if head.startswith(_ZIP):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("utf-8", "replace")
        if name in (_START, _HEADER):
            return True
        return name.endswith(".json") and _has_header(path)
    return _JSON.match(head) is not None or (
        head.lstrip()[:1] == b"{" and all(mark in head for mark in (b'"eval"', b'"run_id"', b'"task_id"', b'"plan"'))
    )


def _has_header(path: Path) -> bool:
    try:
        with Archive(path) as archive:
            return _HEADER in archive.members or _START in archive.members
    except (UserError, OSError):
        return False


def header_at(path: Path, rest: Rest) -> Header:
    """The header of a log; UserError if it cannot be read."""
    try:
        if head_of(path).startswith(_ZIP):
            with Archive(path) as archive:
                member = archive.members.get(_HEADER) or archive.members.get(_START)
                if member is None:
                    raise ValueError("it has no header")
                return header_of(archive.read(member), path, rest)
        return header_of(dict(_fields(path)), path, rest)
    except (ValueError, RecursionError, Unreadable, BrokenExtent, msgspec.MsgspecError) as error:
        raise UserError(f"the log cannot be read: {error}", where=str(path), fix="copy the file again") from None


def _fields(path: Path) -> Iterator[tuple[str, Any]]:
    with reading.opened(path) as file:
        try:
            for key, number, data in extents(file, {"samples", "reductions"}):
                if number is None and data:
                    yield key, _value(data)
        except BrokenExtent as error:
            if not error.at_end:
                raise


def _value(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return msgspec.json.decode(finite(data))


def samples_at(path: Path, broken: Broken) -> Iterator[tuple[str, bytes]]:
    """(place, JSON) of every sample; what cannot be read is reported."""
    archived = head_of(path).startswith(_ZIP)
    return _of_archive(path, broken) if archived else _of_json(path, broken)


def one_line(data: bytes) -> bytes:
    """The JSON as a line of a file can hold it: parts of it are passed on as they are."""
    if b"\n" in data:
        try:
            data = msgspec.json.format(data, indent=-1)
        except (msgspec.DecodeError, RecursionError):
            data = finite(data)
    if not data.isascii():
        data.decode()  # an error that names the byte
    return data


def _of_archive(path: Path, broken: Broken) -> Iterator[tuple[str, bytes]]:
    with Archive(path) as archive:
        if archive.torn:
            broken(f"{path}: the file is cut off; what stands whole before its end was read")
        for name, member in archive.members.items():
            if not name.startswith(_SAMPLES) or not name.endswith(".json"):
                continue
            try:
                yield name, archive.read(member)
            except Unreadable as error:
                broken(f"{path}, {name!r}: {error}")


def _of_json(path: Path, broken: Broken) -> Iterator[tuple[str, bytes]]:
    with reading.opened(path) as file:
        try:
            for key, number, data in extents(file, {"samples", "reductions"}):
                if key == "samples" and number is not None:
                    yield f"sample {number + 1}", data
        except BrokenExtent as error:
            broken(f"{path}: {error}")
