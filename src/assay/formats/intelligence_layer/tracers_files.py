"""Traces as a log of lines that begin and end spans: in a file of JSON lines, or wherever a subclass writes them.
Several tracers and threads may write to one file.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec

from assay.formats.intelligence_layer.tracer import (
    Context,
    ExportedSpan,
    PydanticSerializable,
    Span,
    SpanStatus,
    TaskSpan,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.tracers import InMemorySpan, InMemoryTaskSpan, InMemoryTracer, LogEntry
from assay.formats.intelligence_layer.types import Record, to_json


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

    def _log_span(self, span: "PersistentSpan", name: str, timestamp: datetime | None = None) -> None:
        own = span.context
        entry = StartSpan(
            uuid=own.span_id,
            parent=self.context.span_id if self.context else own.trace_id,
            name=name,
            start=timestamp or utc_now(),
            trace_id=own.trace_id,
        )
        self._log_entry(own.trace_id, entry)

    def _log_task(
        self,
        task_span: "PersistentTaskSpan",
        task_name: str,
        input: PydanticSerializable,
        timestamp: datetime | None = None,
    ) -> None:
        own = task_span.context
        entry = StartTask(
            uuid=own.span_id,
            parent=self.context.span_id if self.context else own.trace_id,
            name=task_name,
            start=timestamp or utc_now(),
            input=input,
            trace_id=own.trace_id,
        )
        try:
            self._log_entry(own.trace_id, entry)
        except TracerLogEntryFailed as error:
            entry.input = error.description
            self._log_entry(own.trace_id, entry)

    def _parse_log(self, log_entries: Iterable[LogLine]) -> InMemoryTracer:
        tree = TreeBuilder()
        for line in log_entries:
            tree.add(line)
        return tree.root


class PersistentSpan(Span, PersistentTracer, ABC):
    end_timestamp: datetime | None = None

    def log(self, message: str, value: PydanticSerializable, timestamp: datetime | None = None) -> None:
        own = self.context
        entry = PlainEntry(
            message=message,
            value=value,
            timestamp=timestamp or utc_now(),
            parent=own.span_id,
            trace_id=own.trace_id,
        )
        try:
            self._log_entry(own.trace_id, entry)
        except TracerLogEntryFailed as error:
            entry.message, entry.value = "log entry failed", error.description
            self._log_entry(own.trace_id, entry)

    def end(self, timestamp: datetime | None = None) -> None:
        if self.end_timestamp is None:
            self.end_timestamp = timestamp or utc_now()
            self._log_entry(self.context.trace_id, self._end_entry(self.end_timestamp))
        super().end(timestamp)

    def _end_entry(self, end: datetime) -> Record:
        return EndSpan(uuid=self.context.span_id, end=end, status_code=self.status_code)


class PersistentTaskSpan(TaskSpan, PersistentSpan, ABC):
    output: PydanticSerializable | None = None

    def record_output(self, output: PydanticSerializable) -> None:
        self.output = output

    def _end_entry(self, end: datetime) -> Record:
        return EndTask(uuid=self.context.span_id, end=end, output=self.output, status_code=self.status_code)


class TreeBuilder:
    """Puts the lines of a log together again; a span whose end was never written stays open."""

    def __init__(self) -> None:
        self.root = InMemoryTracer()
        self._spans: dict[UUID, InMemorySpan] = {}
        self._add: dict[str, Callable[[Any], None]] = {
            "StartTask": lambda entry: self._start_task(StartTask.model_validate(entry)),
            "EndTask": lambda entry: self._end_task(EndTask.model_validate(entry)),
            "StartSpan": lambda entry: self._start_span(StartSpan.model_validate(entry)),
            "EndSpan": lambda entry: self._end(EndSpan.model_validate(entry)),
            "PlainEntry": lambda entry: self._log(PlainEntry.model_validate(entry)),
        }

    def add(self, line: LogLine) -> None:
        add = self._add.get(line.entry_type)
        if add is None:
            raise RuntimeError(f"a trace has no entries of type {line.entry_type!r}")
        add(line.entry)

    def _start_task(self, entry: StartTask) -> None:
        self._open(InMemoryTaskSpan(name=entry.name, input=entry.input, start_timestamp=entry.start), entry)

    def _start_span(self, entry: StartSpan) -> None:
        self._open(InMemorySpan(name=entry.name, start_timestamp=entry.start), entry)

    def _open(self, span: InMemorySpan, entry: StartTask | StartSpan) -> None:
        parent = self._spans.get(entry.parent)
        is_root = parent is None and entry.trace_id in (entry.uuid, entry.parent)
        span.parent_id = None if is_root else entry.parent
        span.context = Context(trace_id=entry.trace_id, span_id=entry.uuid)
        (parent or self.root).entries.append(span)
        self._spans[entry.uuid] = span

    def _end_task(self, entry: EndTask) -> None:
        span = self._spans[entry.uuid]
        if isinstance(span, InMemoryTaskSpan):
            span.record_output(entry.output)
        self._end(entry)

    def _end(self, entry: EndTask | EndSpan) -> None:
        span = self._spans[entry.uuid]
        span.status_code = entry.status_code
        span.end(entry.end)

    def _log(self, entry: PlainEntry) -> None:
        self._spans[entry.parent].entries.append(
            LogEntry(message=entry.message, value=entry.value, timestamp=entry.timestamp, trace_id=entry.trace_id)
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
        self._log_file_path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._log_file_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(fd, encoded + b"\n")  # one write: lines of other threads do not run into it
        finally:
            os.close(fd)

    def span(self, name: str, timestamp: datetime | None = None) -> "FileSpan":
        span = FileSpan(self._log_file_path, context=self.context)
        self._log_span(span, name, timestamp)
        return span

    def task_span(
        self, task_name: str, input: PydanticSerializable, timestamp: datetime | None = None
    ) -> "FileTaskSpan":
        task = FileTaskSpan(self._log_file_path, context=self.context)
        self._log_task(task, task_name, input, timestamp)
        return task

    def traces(self, trace_id: str | None = None) -> InMemoryTracer:
        """The file as a tree; with a trace id only that trace."""
        with self._log_file_path.open("rb") as file:
            lines = (LogLine.model_validate_json(line) for line in file if line.strip())
            return self._parse_log(line for line in lines if trace_id is None or str(line.trace_id) == str(trace_id))


class FileSpan(PersistentSpan, FileTracer):
    def __init__(self, log_file_path: Path, context: Context | None = None) -> None:
        PersistentSpan.__init__(self, context=context)
        FileTracer.__init__(self, log_file_path=log_file_path)


class FileTaskSpan(PersistentTaskSpan, FileSpan):
    pass
