"""The files that a run of SyGra leaves, read as they come: records one by one, reports and metadata whole."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from assay import reading
from assay.engine.experiment.imports.foreign import head_of
from assay.records import tolerant_json
from assay.text.json_stream import BrokenJson, json_entries

Row = dict[str, Any]
_LARGEST = 64 << 20  # bytes of a report or a file of metadata


def content(file: Path) -> Any:
    """What a JSON file holds; None for any other, or one that is too large."""
    try:
        return (
            None if file.stat().st_size > _LARGEST else msgspec.json.decode(reading.content(file))
        )
    except (OSError, ValueError, RecursionError):
        return None


def fields(value: Any) -> Row:
    """An object as it is; empty for anything else."""
    return cast("Row", value) if isinstance(value, dict) else {}


def records_in(path: Path, broken: Callable[[str], None]) -> Iterator[Row]:
    """Return the records of a list or of lines; what cannot be read is told to `broken`."""
    try:
        with reading.opened(path, 1 << 20) as file:
            is_list = head_of(path).lstrip()[:1] == b"["
            values = (value for _, value in json_entries(file)[1]) if is_list else _lines(file)
            for number, value in enumerate(values):
                if isinstance(value, dict):
                    yield _storable(cast("Row", value))
                else:
                    broken(f"{path} [{number}] is not a record")
    except (BrokenJson, OSError, RecursionError) as error:
        broken(f"{path} is not whole, what follows is not read: {error}")


def _lines(file: IO[bytes]) -> Iterator[Any]:
    decode = msgspec.json.Decoder().decode
    for line in file:
        try:
            yield decode(line)
        except (ValueError, RecursionError):
            try:
                yield None if line.isspace() else tolerant_json(line)
            except ValueError:
                yield None


def _storable(record: Row) -> Row:
    """The record with question marks for halves of characters, which Python writes and UTF-8 lacks."""
    try:
        msgspec.json.encode(record)
    except (UnicodeEncodeError, OverflowError):
        return tolerant_json(json.dumps(record).encode())
    return record
