"""Traces of examples ⇄ rows of a run's `traces.jsonl`, which `assay trace` shows.

A row has the spans of one root, each with the number of its parent. It is written when the root ends.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from assay.formats.intelligence_layer.core.tracer.in_memory_tracer import (
    InMemorySpan,
    InMemoryTaskSpan,
    InMemoryTracer,
    LogEntry,
)
from assay.formats.intelligence_layer.core.tracer.tracer import Context, ErrorValue, PydanticSerializable, SpanStatus
from assay.formats.intelligence_layer.types import from_json, to_json

Row = dict[str, Any]


class ExampleTracer(InMemoryTracer):
    """The tracer of one example. `key` is that of the example's row, where it is known."""

    def __init__(self, example_id: str, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self.example_id = example_id
        self.key = ""
        self._id = uuid4().hex
        self._write = write

    def span(self, name: str, timestamp: datetime | None = None) -> InMemorySpan:
        root = _RootSpan(name=name, start_timestamp=timestamp)
        return self._begun(root)

    def task_span(
        self, task_name: str, input: PydanticSerializable, timestamp: datetime | None = None
    ) -> InMemoryTaskSpan:
        root = _RootTaskSpan(name=task_name, input=input, start_timestamp=timestamp)
        return self._begun(root)

    def _begun(self, root: Any) -> Any:
        root.when_ended = self._store
        self.entries.append(root)
        return root

    def _store(self, root: InMemorySpan) -> None:
        row = {"key": self.key, "item_id": self.example_id, "owner": root.name, "sample_index": 0, "tracer": self._id}
        spans: list[Row] = []
        _add(root, None, spans)
        try:
            line = msgspec.json.encode({**row, "spans": spans}, enc_hook=_written)
        except (TypeError, ValueError, RecursionError) as error:
            bare = [{**span, "data": {"lost": str(error)}, "error": None} for span in spans]
            line = msgspec.json.encode({**row, "spans": bare})
        self._write(line + b"\n")


class _Root:
    when_ended: Callable[[Any], None] | None

    def end(self, timestamp: datetime | None = None) -> None:
        super().end(timestamp)  # type: ignore[misc]
        ended, self.when_ended = self.when_ended, None  # the tracer has the root, and the root should not keep it
        if ended is not None:
            ended(self)


class _RootSpan(_Root, InMemorySpan):
    pass


class _RootTaskSpan(_Root, InMemoryTaskSpan):
    pass


def tracer_of(rows: Iterable[Row]) -> InMemoryTracer:
    """The trace again. Of an example that ran more than once it is the last run's."""
    every = list(rows)
    tracer = InMemoryTracer()
    for row in every:
        if row.get("tracer") == every[-1].get("tracer"):
            spans: list[InMemorySpan] = []
            for span in row["spans"]:
                around = tracer if span["parent"] is None else spans[span["parent"]]
                spans.append(_span(span, around))
                around.entries.append(spans[-1])
    return tracer


def _add(span: InMemorySpan, parent: int | None, spans: list[Row]) -> None:
    errors = [each.value for each in _logs(span) if isinstance(each.value, ErrorValue)]
    data: Row = {
        "trace_id": span.context.trace_id,
        "span_id": span.context.span_id,
        "status": span.status_code,
        "logs": [{"message": each.message, "value": each.value, "at": each.timestamp} for each in _logs(span)],
    }
    if isinstance(span, InMemoryTaskSpan):
        data |= {"input": span.input, "output": span.output}
    number = len(spans)
    spans.append(
        {
            "name": span.name,
            "parent": parent,
            "start": span.start_timestamp.timestamp(),
            "end": None if span.end_timestamp is None else span.end_timestamp.timestamp(),
            "error": f"{errors[-1].error_type}: {errors[-1].message}" if errors else None,
            "data": data,
        }
    )
    for entry in span.entries:
        if isinstance(entry, InMemorySpan):
            _add(entry, number, spans)


def _span(row: Row, around: InMemoryTracer) -> InMemorySpan:
    data: Row = row["data"]
    start = _time(row["start"])
    if "input" in data:
        span: InMemorySpan = InMemoryTaskSpan(
            name=row["name"], input=data["input"], context=around.context, start_timestamp=start
        )
        span.record_output(data["output"])  # type: ignore[attr-defined]
    else:
        span = InMemorySpan(name=row["name"], context=around.context, start_timestamp=start)
    if "span_id" in data:
        span.context = Context(trace_id=UUID(data["trace_id"]), span_id=UUID(data["span_id"]))
        span.status_code = SpanStatus(data["status"])
    for log in data.get("logs", []):
        at = from_json(log["at"], datetime)
        span.entries.append(
            LogEntry(message=log["message"], value=log["value"], timestamp=at, trace_id=span.context.trace_id)
        )
    if row["end"] is not None:
        span.end(_time(row["end"]))
    return span


def _logs(span: InMemorySpan) -> list[LogEntry]:
    return [entry for entry in span.entries if isinstance(entry, LogEntry)]


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _written(value: Any) -> Any:
    try:
        return to_json(value)
    except TypeError:
        return str(value)
