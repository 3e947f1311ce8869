"""Traces in a file of JSON lines; several tracers and threads may write to one file."""

import os
from datetime import datetime
from pathlib import Path
from uuid import UUID

import msgspec

from assay.formats.intelligence_layer.core.tracer.in_memory_tracer import InMemoryTracer
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import (
    LogLine,
    PersistentSpan,
    PersistentTaskSpan,
    PersistentTracer,
)
from assay.formats.intelligence_layer.core.tracer.tracer import Context, PydanticSerializable
from assay.formats.intelligence_layer.record import Record
from assay.formats.intelligence_layer.types import to_json


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
