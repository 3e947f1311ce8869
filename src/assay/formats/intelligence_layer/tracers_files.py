"""Traces as a log of lines that begin and end spans: in a file of JSON lines, or wherever a subclass writes them.
Several tracers and threads may write to one file.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec

from assay.formats.intelligence_layer.tracer import (
    Context,
    ExportedSpan,
    Span,
    SpanStatus,
    TaskSpan,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.tracers import InMemorySpan, InMemoryTaskSpan, InMemoryTracer
from assay.formats.intelligence_layer.types import Record, to_json
from assay.store.files import make_folder, private_mode


@dataclass(kw_only=True)
class LogLine(Record):
    """`entry_type` is the name of the entry's class."""

    trace_id: UUID
    entry_type: str
    entry: Any


@dataclass(kw_only=True)
class StartTask(Record):
    """`parent` of a root is its own trace id."""

    uuid: UUID
    parent: UUID
    name: str
    start: datetime
    input: Any
    trace_id: UUID


@dataclass(kw_only=True)
class EndTask(Record):
    uuid: UUID
    end: datetime
    output: Any
    status_code: SpanStatus = SpanStatus.OK


@dataclass(kw_only=True)
class StartSpan(Record):
    uuid: UUID
    parent: UUID
    name: str
    start: datetime
    trace_id: UUID


@dataclass(kw_only=True)
class EndSpan(Record):
    uuid: UUID
    end: datetime
    status_code: SpanStatus = SpanStatus.OK


@dataclass(kw_only=True)
class PlainEntry(Record):
    message: str
    value: Any
    timestamp: datetime
    parent: UUID
    trace_id: UUID


_ENTRIES = {kind.__name__: kind for kind in (StartTask, EndTask, StartSpan, EndSpan, PlainEntry)}


class TracerLogEntryFailed(Exception):
    """A tracer could not write a value; its `description` is written instead."""

    def __init__(self, error_message: str, id: str) -> None:
        super().__init__(f"the log entry {id} could not be written: {error_message}")
        self.description = error_message


class PersistentTracer(Tracer, ABC):
    """Implement `_log_entry` and `traces` to keep traces elsewhere."""

    def __init__(self) -> None:
        self.current_id = uuid4()

    @abstractmethod
    def _log_entry(self, id: UUID, entry: Record) -> None:
        """Write one entry of the trace `id`; TracerLogEntryFailed if its value cannot be written."""

    @abstractmethod
    def traces(self) -> InMemoryTracer:
        """All that was written, as a tree."""

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return self.traces().export_for_viewing()

    def _log_span(
        self, span: "PersistentSpan", name: str, timestamp: datetime | None = None
    ) -> None:
        self._log_entry(span.context.trace_id, StartSpan(**self._start(span, name, timestamp)))

    def _log_task(
        self,
        task_span: "PersistentTaskSpan",
        task_name: str,
        input: Any,
        timestamp: datetime | None = None,
    ) -> None:
        entry = StartTask(**self._start(task_span, task_name, timestamp), input=input)
        try:
            self._log_entry(entry.trace_id, entry)
        except TracerLogEntryFailed as error:
            entry.input = error.description
            self._log_entry(entry.trace_id, entry)

    def _start(self, span: Span, name: str, timestamp: datetime | None) -> dict[str, Any]:
        trace_id, span_id = span.context.trace_id, span.context.span_id
        parent = self.context.span_id if self.context else trace_id
        return {
            "uuid": span_id,
            "parent": parent,
            "name": name,
            "start": timestamp or utc_now(),
            "trace_id": trace_id,
        }

    def _parse_log(self, log_entries: Iterable[LogLine]) -> InMemoryTracer:
        """The lines of a log as a tree again; a span whose end was never written stays open."""
        root = InMemoryTracer()
        spans: dict[UUID, InMemorySpan] = {}
        for line in log_entries:
            if line.entry_type not in _ENTRIES:
                raise RuntimeError(f"a trace has no entries of type {line.entry_type!r}")
            entry = _ENTRIES[line.entry_type].model_validate(line.entry)
            if isinstance(entry, StartTask | StartSpan):
                spans[entry.uuid] = _opened(entry, spans.get(entry.parent, root))
            elif isinstance(entry, PlainEntry):
                spans[entry.parent].log(entry.message, entry.value, entry.timestamp)
            else:
                _end(spans[entry.uuid], entry)
        return root


def _opened(entry: StartTask | StartSpan, around: InMemoryTracer) -> InMemorySpan:
    if isinstance(entry, StartTask):
        span: InMemorySpan = around.task_span(entry.name, entry.input, entry.start)
    else:
        span = around.span(entry.name, entry.start)
    is_root = around.context is None and entry.trace_id in (entry.uuid, entry.parent)
    span.parent_id = None if is_root else entry.parent
    span.context = Context(trace_id=entry.trace_id, span_id=entry.uuid)
    return span


def _end(span: InMemorySpan, entry: EndTask | EndSpan) -> None:
    if isinstance(entry, EndTask) and isinstance(span, InMemoryTaskSpan):
        span.record_output(entry.output)
    span.status_code = entry.status_code
    span.end(entry.end)


class PersistentSpan(Span, PersistentTracer, ABC):
    end_timestamp: datetime | None = None

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        context, at = self.context, timestamp or utc_now()
        entry = PlainEntry(
            message=message,
            value=value,
            timestamp=at,
            parent=context.span_id,
            trace_id=context.trace_id,
        )
        try:
            self._log_entry(context.trace_id, entry)
        except TracerLogEntryFailed as error:
            entry.message, entry.value = "log entry failed", error.description
            self._log_entry(context.trace_id, entry)

    def end(self, timestamp: datetime | None = None) -> None:
        if self.end_timestamp is None:
            self.end_timestamp = timestamp or utc_now()
            self._log_entry(self.context.trace_id, self._end_entry(self.end_timestamp))
        super().end(timestamp)

    def _end_entry(self, end: datetime) -> Record:
        return EndSpan(uuid=self.context.span_id, end=end, status_code=self.status_code)


class PersistentTaskSpan(TaskSpan, PersistentSpan, ABC):
    output: Any = None

    def record_output(self, output: Any) -> None:
        self.output = output

    def _end_entry(self, end: datetime) -> Record:
        return EndTask(
            uuid=self.context.span_id, end=end, output=self.output, status_code=self.status_code
        )


class FileTracer(PersistentTracer):
    """A value that JSON cannot hold is written as its text."""

    def __init__(self, log_file_path: Path | str) -> None:
        super().__init__()
        self._log_file_path = Path(log_file_path)

    def _log_entry(self, id: UUID, entry: Record) -> None:
        line = LogLine(trace_id=id, entry_type=type(entry).__name__, entry=entry)
        try:
            encoded = msgspec.json.encode(to_json(line))
        except (TypeError, ValueError, RecursionError):
            encoded = msgspec.json.encode(line, enc_hook=str)
        make_folder(self._log_file_path.parent)
        fd = os.open(self._log_file_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, private_mode())
        try:
            os.write(fd, encoded + b"\n")  # one write: lines of other threads do not run into it
        finally:
            os.close(fd)

    def span(self, name: str, timestamp: datetime | None = None) -> "FileSpan":
        span = FileSpan(self._log_file_path, context=self.context)
        self._log_span(span, name, timestamp)
        return span

    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "FileTaskSpan":
        task = FileTaskSpan(self._log_file_path, context=self.context)
        self._log_task(task, task_name, input, timestamp)
        return task

    def traces(self, trace_id: str | None = None) -> InMemoryTracer:
        """The file as a tree; with a trace id only that trace."""
        with self._log_file_path.open("rb") as file:
            lines = (LogLine.model_validate_json(line) for line in file if line.strip())
            return self._parse_log(
                line for line in lines if trace_id is None or str(line.trace_id) == str(trace_id)
            )


class FileSpan(PersistentSpan, FileTracer):
    def __init__(self, log_file_path: Path, context: Context | None = None) -> None:
        PersistentSpan.__init__(self, context=context)
        FileTracer.__init__(self, log_file_path=log_file_path)


class FileTaskSpan(PersistentTaskSpan, FileSpan):
    pass
