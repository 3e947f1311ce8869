"""The events of a log, joined by sample. They are mostly adjacent, but threads mix them, and a log may be larger than
memory: a first pass keeps sixteen bytes of each event, a second one reads each sample's events where they stand."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from assay import reading
from assay.engine.experiment.imports.values import Row, fields_of, json_row
from assay.store.keys import id_hash
from assay.store.table.columns import Growing
from assay.store.table.decode import row_decoder
from assay.store.table.join import group_rows

_FIRST = b'{"spec"'
_NAMED = "metrics"


class _Line(msgspec.Struct, gc=False):
    """What the first pass looks at."""

    sample_id: str | None = None
    type: str = ""
    final_report: Any = msgspec.UNSET
    spec: Any = msgspec.UNSET


class Event(NamedTuple):
    """An event of a sample; `rest` has fields that no version of evals writes."""

    type: str
    data: Row
    created_at: str
    rest: Row


_KNOWN = {"run_id", "event_id", "sample_id", "type", "data", "created_by", "created_at"}


class Log:
    """A log, whose events are found by `index` before `samples` reads them."""

    def __init__(self, file: Path, spec: Row) -> None:
        self.file = file
        self.spec = spec
        self.count = 0
        self._begin()

    def _begin(self) -> None:
        self.report: Row | None = None
        self.rejected: list[int] = []
        self.types: Counter[str] = Counter()
        self.metric = ""  # the first one that a sample has
        self._samples, self._offsets = Growing("id"), Growing("int")

    def index(self) -> None:
        """The first pass."""
        self._begin()
        decode = row_decoder(_Line)
        offset = 0
        with reading.opened(self.file) as file:
            for number, text in enumerate(file, 1):
                try:
                    self._note(decode(text), text, number, offset)
                except (ValueError, RecursionError):
                    if text.strip():
                        self.rejected.append(number)
                offset += len(text)
        self.count = len(np.unique(self._samples.numbers))

    def _note(self, line: _Line, text: bytes, number: int, offset: int) -> None:
        if line.final_report is not msgspec.UNSET:
            self.report = fields_of(line.final_report)
        elif line.sample_id is not None and line.type:
            self._samples.append(id_hash(line.sample_id))
            self._offsets.append(offset)
            self.types[line.type] += 1
            if line.type == _NAMED and not self.metric:
                self.metric = next(iter(fields_of(json_row(text).get("data"))), "")
        elif line.spec is msgspec.UNSET:
            self.rejected.append(number)

    def samples(self) -> Iterator[tuple[str, list[Event]]]:
        """Each sample's id and events, in the order of their first events."""
        groups = group_rows(self._samples.numbers)
        first = groups.first[groups.of_row]
        order = np.argsort(first, kind="stable")
        begins = np.flatnonzero(np.diff(first[order], prepend=-1, append=-1))
        offsets = self._offsets.numbers[order]
        with reading.opened(self.file) as file:
            for begin, end in pairwise(begins.tolist()):
                events = [_event(file, offset) for offset in offsets[begin:end].tolist()]
                present = [event for event in events if event is not None]
                if present:
                    yield present[0][0], [event for _, event in present]


def _event(file: IO[bytes], offset: int) -> tuple[str, Event] | None:
    if file.tell() != offset:
        file.seek(offset)
    try:
        row = json_row(file.readline())
    except (ValueError, RecursionError):
        return None  # the file has changed meanwhile
    data = row.get("data")
    event = Event(
        str(row.get("type")),
        data if isinstance(data, dict) else {"data": data},
        str(row.get("created_at", "")),
        {name: value for name, value in row.items() if name not in _KNOWN},
    )
    return str(row.get("sample_id")), event


def spec_in(head: bytes) -> Row | None:
    """The run that a file says it is a log of; None for other files. A first line beyond the head is not one."""
    if not head.startswith(_FIRST):
        return None
    try:
        spec = fields_of(json_row(head.partition(b"\n")[0]).get("spec"))
    except (ValueError, RecursionError):
        return None
    return spec if {"completion_fns", "eval_name", "run_id"} <= spec.keys() else None
