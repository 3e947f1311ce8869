"""What a tracer is: it opens spans, spans hold logs and further spans, task spans hold input and output as well.

A span that an exception leaves has it in its log as an ErrorValue, and the status ERROR. Spans of one root share a
trace id, which is the root's own id. A composite tracer hands one trace to several tracers, with equal times.
"""

import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from uuid import UUID, uuid4

from assay.formats.intelligence_layer.types import Record, to_json

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


@dataclass
class JsonSerializer(Record):
    """Any value with the methods of a record."""

    root: Any

    def model_dump(self, mode: str = "python", **chosen: Any) -> Any:
        return to_json(self.root) if mode == "json" else self.root


class ExportedSpanList(JsonSerializer):
    """What `export_for_viewing` gives, with the methods of a record."""


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


TracerVar = TypeVar("TracerVar", bound=Tracer)
SpanVar = TypeVar("SpanVar", bound=Span)


class CompositeTracer(Tracer, Generic[TracerVar]):
    """Hands everything to each of its tracers; what it exports is the trace of the first."""

    def __init__(self, tracers: Sequence[TracerVar]) -> None:
        if not tracers:
            raise ValueError("a composite tracer needs at least one tracer")
        self.tracers = tracers
        self.context = tracers[0].context

    def span(self, name: str, timestamp: datetime | None = None) -> "CompositeSpan[Span]":
        timestamp = timestamp or utc_now()
        return CompositeSpan([tracer.span(name, timestamp) for tracer in self.tracers])

    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "CompositeTaskSpan":
        timestamp = timestamp or utc_now()
        return CompositeTaskSpan(
            [tracer.task_span(task_name, input, timestamp) for tracer in self.tracers]
        )

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return self.tracers[0].export_for_viewing()


class CompositeSpan(Generic[SpanVar], CompositeTracer[SpanVar], Span):
    """`context` is that of its first span."""

    def __init__(self, tracers: Sequence[SpanVar], context: Context | None = None) -> None:
        CompositeTracer.__init__(self, tracers)
        self._closed = False

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        timestamp = timestamp or utc_now()
        for tracer in self.tracers:
            tracer.log(message, value, timestamp)

    def end(self, timestamp: datetime | None = None) -> None:
        timestamp = timestamp or utc_now()
        for tracer in self.tracers:
            tracer.end(timestamp)
        self._closed = True

    @property
    def status_code(self) -> SpanStatus:
        statuses = {tracer.status_code for tracer in self.tracers}
        if len(statuses) > 1:
            raise ValueError("the spans of this composite do not have the same status")
        return statuses.pop()

    @status_code.setter
    def status_code(self, span_status: SpanStatus) -> None:
        for tracer in self.tracers:
            tracer.status_code = span_status


class CompositeTaskSpan(CompositeSpan[TaskSpan], TaskSpan):
    def record_output(self, output: Any) -> None:
        for tracer in self.tracers:
            tracer.record_output(output)
