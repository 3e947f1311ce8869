"""Traces as a tree of Python objects, for notebooks and tests, and as OpenTelemetry spans, for whatever collects those:
that needs only the tracer that it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from assay.errors import UserError, install_command
from assay.formats.intelligence_layer.tracer import (
    Context,
    Event,
    ExportedSpan,
    JsonSerializer,
    Span,
    SpanAttributes,
    SpanStatus,
    SpanType,
    TaskSpan,
    TaskSpanAttributes,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.types import Record, show, tree
from assay.text.plain import plain

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OpenTSpan
    from opentelemetry.trace import Tracer as OpenTTracer

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

    def _rich_render_(self) -> Any:
        return tree("Trace", *(entry._rich_render_() for entry in self.entries))

    def _ipython_display_(self) -> None:
        show(self._rich_render_())


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
        ended, self.when_ended = (
            self.when_ended,
            None,
        )  # a tracer has its root, and the root should not keep it
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

    def _rich_render_(self) -> Any:
        return tree(self.name, *(entry._rich_render_() for entry in self.entries))


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

    return Panel(Text(plain(_text(value, 2))), title=Text(plain(title)))


def _text(value: Any, indent: int | None = None) -> str:
    try:
        return JsonSerializer(value).model_dump_json(indent)
    except (TypeError, ValueError):
        return str(value)


class OpenTelemetryTracer(Tracer):
    """`input`, `output` and the values of logs are JSON text in the attributes and events."""

    def __init__(self, tracer: "OpenTTracer") -> None:
        self._tracer = tracer

    def span(self, name: str, timestamp: datetime | None = None) -> "OpenTelemetrySpan":
        span, token = self._start(name, {"type": SpanType.SPAN.value}, timestamp)
        return OpenTelemetrySpan(span, self._tracer, token, self.context)

    def task_span(
        self, task_name: str, input: Any, timestamp: datetime | None = None
    ) -> "OpenTelemetryTaskSpan":
        attributes = {"type": SpanType.TASK_SPAN.value, "input": _text(input)}
        span, token = self._start(task_name, attributes, timestamp)
        return OpenTelemetryTaskSpan(span, self._tracer, token, self.context)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        raise NotImplementedError(
            "an OpenTelemetry tracer cannot see its own spans: look where they are collected"
        )

    def _start(
        self, name: str, attributes: dict[str, str], timestamp: datetime | None
    ) -> "tuple[OpenTSpan, object]":
        """A child of this span, wherever it is opened: in another thread there is no current span to follow."""
        context, trace = _api()
        parent = getattr(self, "open_ts_span", None)
        around = None if parent is None else trace.set_span_in_context(parent)
        span = self._tracer.start_span(
            name, context=around, attributes=attributes, start_time=_nanoseconds(timestamp)
        )
        return span, context.attach(trace.set_span_in_context(span))


class OpenTelemetrySpan(Span, OpenTelemetryTracer):
    def __init__(
        self,
        span: "OpenTSpan",
        tracer: "OpenTTracer",
        token: object,
        context: Context | None = None,
    ) -> None:
        OpenTelemetryTracer.__init__(self, tracer)
        Span.__init__(self, context=context)
        self.open_ts_span = span
        self._token = token

    def log(self, message: str, value: Any, timestamp: datetime | None = None) -> None:
        self.open_ts_span.add_event(message, {"value": _text(value)}, _nanoseconds(timestamp))

    def end(self, timestamp: datetime | None = None) -> None:
        super().end(timestamp)
        context, trace = _api()
        code = trace.StatusCode.OK if self.status_code is SpanStatus.OK else trace.StatusCode.ERROR
        self.open_ts_span.set_status(code)
        context.detach(self._token)
        self.open_ts_span.end(_nanoseconds(timestamp))


class OpenTelemetryTaskSpan(TaskSpan, OpenTelemetrySpan):
    def record_output(self, output: Any) -> None:
        self.open_ts_span.set_attribute("output", _text(output))


def _api() -> tuple[Any, Any]:
    try:
        from opentelemetry import context, trace
    except ModuleNotFoundError:
        raise UserError(
            "OpenTelemetry traces need the package opentelemetry-api",
            fix=install_command("opentelemetry"),
        ) from None
    return context, trace


def _nanoseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1e9)
