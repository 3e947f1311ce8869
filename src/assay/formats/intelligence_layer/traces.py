"""Traces of examples as rows. A row of `traces.jsonl`, which `assay trace` shows, has the spans of
one root, each with the number of its parent, and is written when the root ends."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from assay.formats.intelligence_layer.tracer import (
    AnySpan,
    Context,
    ErrorValue,
    InMemorySpan,
    InMemoryTaskSpan,
    InMemoryTracer,
    LogEntry,
    SpanStatus,
)
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

    def _begun(self, span: AnySpan) -> AnySpan:
        span.when_ended = self._store
        return super()._begun(span)

    def _store(self, root: InMemorySpan) -> None:
        row = {
            "key": self.key,
            "item_id": self.example_id,
            "owner": root.name,
            "sample_index": 0,
            "tracer": self._id,
        }
        spans: list[Row] = []
        _add_spans(root, None, spans)
        try:
            line = msgspec.json.encode({**row, "spans": spans}, enc_hook=_written)
        except (TypeError, ValueError, RecursionError) as error:
            bare = [{**span, "data": {"lost": str(error)}, "error": None} for span in spans]
            line = msgspec.json.encode({**row, "spans": bare})
        self._write(line + b"\n")


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
    return tracer


def _add_spans(span: InMemorySpan, parent: int | None, spans: list[Row]) -> None:
    """Add a span, and those in it, as they are stored."""
    errors = [log.value for log in _logs(span) if isinstance(log.value, ErrorValue)]
    data: Row = {
        "trace_id": span.context.trace_id,
        "span_id": span.context.span_id,
        "status": span.status_code,
        "logs": [
            {"message": log.message, "value": log.value, "at": log.timestamp} for log in _logs(span)
        ],
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
            _add_spans(entry, number, spans)


def _span(row: Row, around: InMemoryTracer) -> InMemorySpan:
    data: Row = row["data"]
    start = datetime.fromtimestamp(row["start"], UTC)
    if "input" in data:
        task_span = around.task_span(row["name"], data["input"], start)
        task_span.record_output(data["output"])
        span: InMemorySpan = task_span
    else:
        span = around.span(row["name"], start)
    if "span_id" in data:
        span.context = Context(trace_id=UUID(data["trace_id"]), span_id=UUID(data["span_id"]))
        span.status_code = SpanStatus(data["status"])
    for log in data.get("logs", []):
        span.log(log["message"], log["value"], from_json(log["at"], datetime))
    if row["end"] is not None:
        span.end(datetime.fromtimestamp(row["end"], UTC))
    return span


def _logs(span: InMemorySpan) -> list[LogEntry]:
    return [entry for entry in span.entries if isinstance(entry, LogEntry)]


def _written(value: Any) -> Any:
    try:
        return to_json(value)
    except TypeError:
        return str(value)
