"""The events of a log, joined by sample. They are mostly adjacent, but threads mix them, and a log may be larger than
memory: a first pass keeps sixteen bytes of each event, a second one reads each sample's events where they stand."""

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

from assay import reading
from assay.records import decode_json
from assay.store.keys import id_hash

Fields = dict[str, Any]
_FIRST = b'{"spec"'
_NAMED = "metrics"


class _Line(msgspec.Struct, gc=False):
    """What the first pass looks at."""

    sample_id: str | None = None
    type: str = ""
    data: Raw = Raw(b"null")
    final_report: Raw | UnsetType = UNSET
    spec: Raw | UnsetType = UNSET


class Event(NamedTuple):
    """An event of a sample; `rest` has fields that no version of evals writes."""

    type: str
    data: Fields
    created_at: str
    rest: Fields


_KNOWN = {"run_id", "event_id", "sample_id", "type", "data", "created_by", "created_at"}


class Log:
    """A log, whose events are found by `index` before `samples` reads them."""

    def __init__(self, file: Path, spec: Fields) -> None:
        self.file = file
        self.spec = spec
        self.report: Fields | None = None
        self.rejected: list[int] = []
        self.types: dict[str, int] = {}
        self.metric = ""  # the first one that a sample has
        self.count = 0
        self._samples, self._offsets = array("Q"), array("Q")

    def index(self) -> None:
        """The first pass."""
        self.report, self.rejected, self.types, self.metric = None, [], {}, ""
        self._samples, self._offsets = array("Q"), array("Q")
        decode = msgspec.json.Decoder(_Line).decode
        offset = 0
        with reading.opened(self.file) as file:
            for number, text in enumerate(file, 1):
                try:
                    line = decode(text)
                    text.decode()  # a Raw is passed over, whatever its bytes are
                except (ValueError, RecursionError):
                    line = _odd_line(text)
                self._note(line, number, offset, blank=not text.strip())
                offset += len(text)
        self.count = len(np.unique(self._samples))

    def _note(self, line: _Line | None, number: int, offset: int, *, blank: bool) -> None:
        if line is not None and line.final_report is not UNSET:
            self.report = _fields(line.final_report)
        elif line is not None and line.sample_id is not None and line.type:
            self._samples.append(id_hash(line.sample_id))
            self._offsets.append(offset)
            self.types[line.type] = self.types.get(line.type, 0) + 1
            if line.type == _NAMED and not self.metric:
                self.metric = next(iter(_fields(line.data)), "")
        elif not blank and (line is None or line.spec is UNSET):
            self.rejected.append(number)

    def samples(self) -> Iterator[tuple[str, list[Event]]]:
        """Each sample's id and events, in the order of their first events."""
        samples = (
            np.frombuffer(self._samples, np.uint64) if self._samples else np.zeros(0, np.uint64)
        )
        offsets = (
            np.frombuffer(self._offsets, np.uint64) if self._offsets else np.zeros(0, np.uint64)
        )
        _, first, inverse = np.unique(samples, return_index=True, return_inverse=True)
        order = np.argsort(first[inverse], kind="stable")
        first_of = first[inverse][order]
        with reading.opened(self.file) as file:
            start = 0
            while start < len(order):
                end = int(np.searchsorted(first_of, first_of[start], side="right"))
                events = [_event(file, int(offsets[at])) for at in order[start:end]]
                present = [event for event in events if event is not None]
                if present:
                    yield present[0][0], [event for _, event in present]
                start = end


def _event(file: Any, offset: int) -> tuple[str, Event] | None:
    if file.tell() != offset:
        file.seek(offset)
    line = file.readline()
    try:
        try:
            fields = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            fields = decode_json(line)
    except ValueError:
        return None  # the file has changed meanwhile
    if not isinstance(fields, dict):
        return None
    row = cast("Fields", fields)
    data = row.get("data")
    rest = {name: value for name, value in row.items() if name not in _KNOWN}
    held = cast("Fields", data) if isinstance(data, dict) else {"data": data}
    return str(row.get("sample_id")), Event(
        str(row.get("type")), held, str(row.get("created_at", "")), rest
    )


def _odd_line(text: bytes) -> _Line | None:
    """A line with numbers that JSON has not, as Python writes them."""
    try:
        fields = decode_json(text)
        return msgspec.convert(
            {
                name: Raw(msgspec.json.encode(value))
                if name in ("data", "final_report", "spec")
                else value
                for name, value in fields.items()
            },
            _Line,
        )
    except (ValueError, TypeError, AttributeError, msgspec.MsgspecError):
        return None


def _fields(raw: Raw | UnsetType) -> Fields:
    value = msgspec.json.decode(raw) if isinstance(raw, Raw) else None
    return cast("Fields", value) if isinstance(value, dict) else {}


def spec_in(head: bytes) -> Fields | None:
    """The run that a file says it is a log of; None for other files. A first line beyond the head is not one."""
    if not head.startswith(_FIRST):
        return None
    try:
        first = msgspec.json.decode(head.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    spec = first.get("spec") if isinstance(first, dict) else None
    if not isinstance(spec, dict) or not {"completion_fns", "eval_name", "run_id"} <= spec.keys():
        return None
    return cast("Fields", spec)
