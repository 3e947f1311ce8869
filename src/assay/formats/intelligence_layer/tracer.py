"""What a tracer is: it opens spans, spans hold logs and further spans, task spans hold input and output as well.

A span that an exception leaves has it in its log as an ErrorValue, and the status ERROR. Spans of one root share a
trace id, which is the root's own id. An InMemoryTracer keeps a trace as a tree of objects.

Traces of examples as rows. A row of `traces.jsonl`, which `assay trace` shows, has the spans of
one root, each with the number of its parent, and is written when the root ends.
"""

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

import msgspec

from assay.formats.intelligence_layer.types import ModelRecord, from_json, to_json
from assay.sdk import JsonObject

PydanticSerializable = Any
"""Anything that `assay.formats.intelligence_layer.types.to_json` can write."""


def utc_now() -> datetime:
    """The time now, with its zone."""
    return datetime.now(UTC)


class SpanType(Enum):
    SPAN = "SPAN"
    TASK_SPAN = "TASK_SPAN"


class SpanStatus(Enum):
    OK = "OK"
    ERROR = "ERROR"


@dataclass(kw_only=True)
class Context(ModelRecord):
    trace_id: UUID
    span_id: UUID


@dataclass(kw_only=True)
class Event(ModelRecord):
    """One log of a span."""

    name: str
    message: str
    body: Any
    timestamp: datetime = field(default_factory=utc_now)


@dataclass(kw_only=True)
class SpanAttributes(ModelRecord):
    type: SpanType = SpanType.SPAN


@dataclass(kw_only=True)
class TaskSpanAttributes(ModelRecord):
    type: SpanType = SpanType.TASK_SPAN
    input: Any
    output: Any


@dataclass(kw_only=True)
class ExportedSpan(ModelRecord):
    """A closed span as all tracers give it to others."""

    context: Context
    name: str | None
    parent_id: UUID | None
    start_time: datetime
    end_time: datetime
    attributes: SpanAttributes | TaskSpanAttributes
    events: Sequence[Event]
    status: SpanStatus


@dataclass(kw_only=True)
class ErrorValue(ModelRecord):
    error_type: str
    message: str
    stack_trace: str


class Tracer(ABC):
    """Opens spans. `context` is a span's Context, and None for what is not a span itself."""

    context: Any = None

    @abstractmethod
    def span(self, name: str, timestamp: datetime | None = None) -> "Span":
        """A new span below this one; `timestamp` is its start, now by default."""

    @abstractmethod
    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "TaskSpan":
        """A new span for one run of a task."""

    @abstractmethod
    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        """This span and all below it; a RuntimeError if one of them is still open."""


class Span(Tracer, AbstractContextManager["Span"]):
    """A step with a beginning and an end. Leaving its `with` block ends it; it cannot be entered again."""

    context: Context

    def __init__(self, context: Context | None = None) -> None:
        """`context` is the parent's, None for a root."""
        span_id = uuid4()
        self.context = Context(
            trace_id=span_id if context is None else context.trace_id, span_id=span_id
        )
        self._status = SpanStatus.OK
        self._closed = False

    @property
    def status_code(self) -> SpanStatus:
        """ERROR once an exception has left the span."""
        return self._status

    @status_code.setter
    def status_code(self, span_status: SpanStatus) -> None:
        self._status = span_status

    def __enter__(self) -> Self:
        if self._closed:
            raise ValueError("this span has ended: open a new one")
        return self

    @abstractmethod
    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        """Keep a value that helps to understand this step."""

    @abstractmethod
    def end(self, timestamp: datetime | None = None) -> None:
        """The step is over."""
        self._closed = True

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if exc_value is not None:
            error = ErrorValue(
                error_type=type(exc_value).__qualname__,
                message=str(exc_value),
                stack_trace="".join(traceback.format_exception(exc_value)),
            )
            self.log(error.message, error)
            self.status_code = SpanStatus.ERROR
        self.end()
        self._closed = True


class TaskSpan(Span):
    """The span of one run of a task, with its input and output."""

    @abstractmethod
    def record_output(self, output: Any) -> None:
        """Record what the task returned."""


class NoOpTracer(TaskSpan):
    """Keeps nothing, and is its own span."""

    def id(self) -> str:
        return "NoOp"

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        pass

    def span(self, name: str, timestamp: datetime | None = None) -> "NoOpTracer":
        return self

    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "NoOpTracer":
        return self

    def record_output(self, output: Any) -> None:
        pass

    def end(self, timestamp: datetime | None = None) -> None:
        pass

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return []

    def __exit__(self, *_: object) -> None:
        pass


AnySpan = TypeVar("AnySpan", bound="InMemorySpan")


class InMemoryTracer(Tracer):
    """`entries` are the spans, and in a span its logs too, in the order in which they began."""

    def __init__(self) -> None:
        self.entries: list[LogEntry | InMemoryTaskSpan | InMemorySpan] = []

    def span(self, name: str, timestamp: datetime | None = None) -> "InMemorySpan":
        return self._begun(InMemorySpan(name=name, context=self.context, start_timestamp=timestamp))

    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "InMemoryTaskSpan":
        span = InMemoryTaskSpan(
            name=task_name, input=input, context=self.context, start_timestamp=timestamp
        )
        return self._begun(span)

    def _begun(self, span: AnySpan) -> AnySpan:
        self.entries.append(span)
        return span

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return [
            span
            for entry in self.entries
            if not isinstance(entry, LogEntry)
            for span in entry.export_for_viewing()
        ]


class InMemorySpan(InMemoryTracer, Span):
    when_ended: "Callable[[InMemorySpan], None] | None" = None

    def __init__(
        self, name: str, context: Context | None = None, start_timestamp: datetime | None = None
    ) -> None:
        InMemoryTracer.__init__(self)
        Span.__init__(self, context=context)
        self.parent_id = None if context is None else context.span_id
        self.name = name
        self.start_timestamp = start_timestamp or utc_now()
        self.end_timestamp: datetime | None = None

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        self.entries.append(
            LogEntry(
                message=message,
                value=value,
                timestamp=timestamp or utc_now(),
                trace_id=self.context.trace_id,
            )
        )

    def end(self, timestamp: datetime | None = None) -> None:
        if self.end_timestamp is None:
            self.end_timestamp = timestamp or utc_now()
        super().end(timestamp)
        # a tracer has its root, and the root should not keep it
        ended, self.when_ended = (self.when_ended, None)
        if ended is not None:
            ended(self)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        if self.end_timestamp is None:
            raise RuntimeError(
                f"the span {self.name!r} is still open: end it before it is exported"
            )
        span = ExportedSpan(
            context=self.context,
            name=self.name,
            parent_id=self.parent_id,
            start_time=self.start_timestamp,
            end_time=self.end_timestamp,
            attributes=self._span_attributes(),
            events=[entry.as_event() for entry in self.entries if isinstance(entry, LogEntry)],
            status=self.status_code,
        )
        return [*super().export_for_viewing(), span]

    def _span_attributes(self) -> SpanAttributes | TaskSpanAttributes:
        return SpanAttributes()


class InMemoryTaskSpan(InMemorySpan, TaskSpan):
    def __init__(
        self,
        name: str,
        input: Any,
        context: Context | None = None,
        start_timestamp: datetime | None = None,
    ) -> None:
        super().__init__(name=name, context=context, start_timestamp=start_timestamp)
        self.input = input
        self.output: Any = None

    def record_output(self, output: Any) -> None:
        self.output = output

    def _span_attributes(self) -> SpanAttributes | TaskSpanAttributes:
        return TaskSpanAttributes(input=self.input, output=self.output)


@dataclass(kw_only=True)
class LogEntry(ModelRecord):
    """A log of a span."""

    message: str
    value: Any
    timestamp: datetime = field(default_factory=utc_now)
    trace_id: UUID

    def as_event(self) -> Event:
        return Event(name="log", message=self.message, body=self.value, timestamp=self.timestamp)


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
        spans: list[JsonObject] = []
        _add_spans(root, None, spans)
        try:
            line = msgspec.json.encode({**row, "spans": spans}, enc_hook=_json_or_text)
        except (TypeError, ValueError, RecursionError) as error:
            bare = [{**span, "data": {"lost": str(error)}, "error": None} for span in spans]
            line = msgspec.json.encode({**row, "spans": bare})
        self._write(line + b"\n")


def tracer_of(rows: Iterable[JsonObject]) -> InMemoryTracer:
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


def _add_spans(span: InMemorySpan, parent: int | None, spans: list[JsonObject]) -> None:
    """Add a span, and those in it, as they are stored."""
    errors = [log.value for log in _logs(span) if isinstance(log.value, ErrorValue)]
    data: JsonObject = {
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


def _span(row: JsonObject, around: InMemoryTracer) -> InMemorySpan:
    data: JsonObject = row["data"]
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


def _json_or_text(value: Any) -> Any:
    try:
        return to_json(value)
    except TypeError:
        return str(value)
