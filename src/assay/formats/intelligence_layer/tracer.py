"""What a tracer is: it opens spans, spans hold logs and further spans, task spans hold input and output as well.

A span that an exception leaves has it in its log as an ErrorValue, and the status ERROR. Spans of one root share a
trace id, which is the root's own id. An InMemoryTracer keeps a trace as a tree of objects.
"""

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

from assay.formats.intelligence_layer.types import Record

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
class Context(Record):
    trace_id: UUID
    span_id: UUID


@dataclass(kw_only=True)
class Event(Record):
    """One log of a span."""

    name: str
    message: str
    body: Any
    timestamp: datetime = field(default_factory=utc_now)


@dataclass(kw_only=True)
class SpanAttributes(Record):
    type: SpanType = SpanType.SPAN


@dataclass(kw_only=True)
class TaskSpanAttributes(Record):
    type: SpanType = SpanType.TASK_SPAN
    input: Any
    output: Any


@dataclass(kw_only=True)
class ExportedSpan(Record):
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
class ErrorValue(Record):
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
        """What the task returned."""


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
class LogEntry(Record):
    """A log of a span."""

    message: str
    value: Any
    timestamp: datetime = field(default_factory=utc_now)
    trace_id: UUID

    def as_event(self) -> Event:
        return Event(name="log", message=self.message, body=self.value, timestamp=self.timestamp)
