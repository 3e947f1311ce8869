"""Traces as a tree of Python objects, for notebooks and tests, and ⇄ rows of `traces.jsonl`, which `assay trace` shows:
a row has the spans of one root, each with the number of its parent, and is written when the root ends."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

import msgspec

from assay.formats.intelligence_layer.tracer import (
    Context,
    ErrorValue,
    Event,
    ExportedSpan,
    JsonSerializer,
    PydanticSerializable,
    Span,
    SpanAttributes,
    SpanStatus,
    TaskSpan,
    TaskSpanAttributes,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.types import Record, from_json, show, to_json, tree
from assay.text.plain import plain

Row = dict[str, Any]
AnySpan = TypeVar("AnySpan", bound="InMemorySpan")


class InMemoryTracer(Tracer):
    """`entries` are the spans, and in a span its logs too, in the order in which they began."""

    def __init__(self) -> None:
        self.entries: list[LogEntry | InMemoryTaskSpan | InMemorySpan] = []

    def span(self, name: str, timestamp: datetime | None = None) -> "InMemorySpan":
        return self._begun(InMemorySpan(name=name, context=self.context, start_timestamp=timestamp))

    def task_span(
        self, task_name: str, input: PydanticSerializable, timestamp: datetime | None = None
    ) -> "InMemoryTaskSpan":
        span = InMemoryTaskSpan(name=task_name, input=input, context=self.context, start_timestamp=timestamp)
        return self._begun(span)

    def _begun(self, span: AnySpan) -> AnySpan:
        self.entries.append(span)
        return span

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return [
            span for entry in self.entries if not isinstance(entry, LogEntry) for span in entry.export_for_viewing()
        ]

    def _rich_render_(self) -> Any:
        return tree("Trace", *(entry._rich_render_() for entry in self.entries))

    def _ipython_display_(self) -> None:
        show(self._rich_render_())


class InMemorySpan(InMemoryTracer, Span):
    when_ended: "Callable[[InMemorySpan], None] | None" = None

    def __init__(self, name: str, context: Context | None = None, start_timestamp: datetime | None = None) -> None:
        InMemoryTracer.__init__(self)
        Span.__init__(self, context=context)
        self.parent_id = None if context is None else context.span_id
        self.name = name
        self.start_timestamp = start_timestamp or utc_now()
        self.end_timestamp: datetime | None = None

    def log(self, message: str, value: PydanticSerializable, timestamp: datetime | None = None) -> None:
        self.entries.append(
            LogEntry(message=message, value=value, timestamp=timestamp or utc_now(), trace_id=self.context.trace_id)
        )

    def end(self, timestamp: datetime | None = None) -> None:
        if self.end_timestamp is None:
            self.end_timestamp = timestamp or utc_now()
        super().end(timestamp)
        ended, self.when_ended = self.when_ended, None  # a tracer has its root, and the root should not keep it
        if ended is not None:
            ended(self)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        if self.end_timestamp is None:
            raise RuntimeError(f"the span {self.name!r} is still open: end it before it is exported")
        own = ExportedSpan(
            context=self.context,
            name=self.name,
            parent_id=self.parent_id,
            start_time=self.start_timestamp,
            end_time=self.end_timestamp,
            attributes=self._span_attributes(),
            events=[entry.as_event() for entry in self.entries if isinstance(entry, LogEntry)],
            status=self.status_code,
        )
        return [*super().export_for_viewing(), own]

    def _span_attributes(self) -> SpanAttributes | TaskSpanAttributes:
        return SpanAttributes()

    def _rich_render_(self) -> Any:
        return tree(self.name, *(entry._rich_render_() for entry in self.entries))


class InMemoryTaskSpan(InMemorySpan, TaskSpan):
    def __init__(
        self,
        name: str,
        input: PydanticSerializable,
        context: Context | None = None,
        start_timestamp: datetime | None = None,
    ) -> None:
        super().__init__(name=name, context=context, start_timestamp=start_timestamp)
        self.input = input
        self.output: PydanticSerializable | None = None

    def record_output(self, output: PydanticSerializable) -> None:
        self.output = output

    def _span_attributes(self) -> SpanAttributes | TaskSpanAttributes:
        return TaskSpanAttributes(input=self.input, output=self.output)

    def _rich_render_(self) -> Any:
        inside = (entry._rich_render_() for entry in self.entries)
        return tree(self.name, _panel("Input", self.input), *inside, _panel("Output", self.output))


@dataclass(kw_only=True)
class LogEntry(Record):
    """A log of a span."""

    message: str
    value: Any
    timestamp: datetime = field(default_factory=utc_now)
    trace_id: UUID

    def as_event(self) -> Event:
        return Event(name="log", message=self.message, body=self.value, timestamp=self.timestamp)

    def _rich_render_(self) -> Any:
        return _panel(self.message, self.value)

    def _ipython_display_(self) -> None:
        show(self._rich_render_())


def _panel(title: str, value: Any) -> Any:
    from rich.panel import Panel
    from rich.text import Text

    try:
        text = JsonSerializer(value).model_dump_json(indent=2)
    except (TypeError, ValueError):
        text = str(value)
    return Panel(Text(plain(text)), title=Text(plain(title)))


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
        row = {"key": self.key, "item_id": self.example_id, "owner": root.name, "sample_index": 0, "tracer": self._id}
        spans: list[Row] = []
        _add(root, None, spans)
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
    start = datetime.fromtimestamp(row["start"], UTC)
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
        span.end(datetime.fromtimestamp(row["end"], UTC))
    return span


def _logs(span: InMemorySpan) -> list[LogEntry]:
    return [entry for entry in span.entries if isinstance(entry, LogEntry)]


def _written(value: Any) -> Any:
    try:
        return to_json(value)
    except TypeError:
        return str(value)
