"""The two forms of a log: header and samples of an archive, or of a JSON file. Both are read sample by sample."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.engine.experiment.imports.foreign import Rest, head_of
from assay.errors import UserError
from assay.formats.inspect_ai.archive import Archive, Unreadable
from assay.formats.inspect_ai.header import Header, header_of
from assay.formats.inspect_ai.shapes import finite, finite_value
from assay.text.json_extents import BrokenExtent, extents

Broken = Callable[[str], None]
_ZIP = b"PK\x03\x04"
_HEADER, _START = "header.json", "_journal/start.json"
_SAMPLES = "samples/"
_LISTS = {"samples", "reductions"}
_JSON = re.compile(
    rb'\s*\{\s*"version"\s*:\s*-?[\d.]+\s*,\s*"status"\s*:\s*"\w*"\s*,\s*"eval"\s*:\s*\{'
)
# The list of an eval set, `logs.json`, has names of files there, and headers below them.
_FIELD = re.compile(rb'\s*\{\s*"\w+"\s*:')
_MARKS = (b'"eval"', b'"run_id"', b'"task_id"', b'"plan"')


def is_log(path: Path) -> bool:
    """Whether a file is a log, by its content."""
    head = head_of(path)
    if head.startswith(_ZIP):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("utf-8", "replace")
        return name in (_START, _HEADER) or (name.endswith(".json") and _has_header(path))
    return _JSON.match(head) is not None or (
        _FIELD.match(head) is not None and all(mark in head for mark in _MARKS)
    )


def _has_header(path: Path) -> bool:
    try:
        members = Archive(path).members
    except (UserError, OSError):
        return False
    return _HEADER in members or _START in members


class Document:
    """A log's file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = Archive(path) if head_of(path).startswith(_ZIP) else None

    def header(self, rest: Rest) -> Header:
        """The header; UserError if it cannot be read."""
        try:
            if self._archive is None:
                return header_of(dict(self._fields()), self.path, rest)
            member = self._archive.members.get(_HEADER) or self._archive.members.get(_START)
            if member is None:
                raise ValueError("it has no header")
            with self._archive as archive:
                return header_of(archive.read(member), self.path, rest)
        except (ValueError, RecursionError, Unreadable) as error:
            fix = "copy the file again"
            raise UserError(
                f"the log cannot be read: {error}", where=str(self.path), fix=fix
            ) from None

    def _fields(self) -> Iterator[tuple[str, Any]]:
        """The fields of a JSON file but its samples; those before the end of one that was cut off."""
        with reading.opened(self.path) as file:
            try:
                for key, _, data in extents(file, skip=_LISTS):
                    if data:
                        yield key, finite_value(data)
            except BrokenExtent as error:
                if not error.at_end:
                    raise

    def samples(self, broken: Broken) -> Iterator[tuple[str, bytes]]:
        """(place, JSON) of every sample; what cannot be read is reported."""
        return (
            self._of_json(broken)
            if self._archive is None
            else self._of_archive(self._archive, broken)
        )

    def _of_archive(self, archive: Archive, broken: Broken) -> Iterator[tuple[str, bytes]]:
        if archive.torn:
            broken(f"{self.path}: the file is cut off; what stands whole before its end was read")
        with archive:
            for name, member in archive.members.items():
                if not name.startswith(_SAMPLES) or not name.endswith(".json"):
                    continue
                try:
                    yield name, archive.read(member)
                except Unreadable as error:
                    broken(f"{self.path}, {name!r}: {error}")

    def _of_json(self, broken: Broken) -> Iterator[tuple[str, bytes]]:
        with reading.opened(self.path) as file:
            try:
                for _, number, data in extents(file, {"samples"}, _LISTS):
                    if number is not None:
                        yield f"sample {number + 1}", data
            except BrokenExtent as error:
                broken(f"{self.path}: {error}")


def one_line(data: bytes) -> bytes:
    """The JSON as a line of a file can hold it: parts of it are passed on as they are."""
    if b"\n" in data:
        try:
            data = msgspec.json.format(data, indent=-1)
        except (ValueError, RecursionError):
            data = finite(data)
    if not data.isascii():
        data.decode()  # an error that names the byte
    return data
