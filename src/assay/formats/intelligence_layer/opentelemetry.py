"""Traces as OpenTelemetry spans, for whatever collects those. Needs only the tracer that it is given."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay.errors import UserError
from assay.formats.intelligence_layer.tracer import (
    Context,
    ExportedSpan,
    JsonSerializer,
    PydanticSerializable,
    Span,
    SpanStatus,
    SpanType,
    TaskSpan,
    Tracer,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OpenTSpan
    from opentelemetry.trace import Tracer as OpenTTracer


class OpenTelemetryTracer(Tracer):
    """`input`, `output` and the values of logs are JSON text in the attributes and events."""

    def __init__(self, tracer: "OpenTTracer") -> None:
        self._tracer = tracer

    def span(self, name: str, timestamp: datetime | None = None) -> "OpenTelemetrySpan":
        span, token = self._start(name, {"type": SpanType.SPAN.value}, timestamp)
        return OpenTelemetrySpan(span, self._tracer, token, self.context)

    def task_span(
        self, task_name: str, input: PydanticSerializable, timestamp: datetime | None = None
    ) -> "OpenTelemetryTaskSpan":
        attributes = {"type": SpanType.TASK_SPAN.value, "input": _text(input)}
        span, token = self._start(task_name, attributes, timestamp)
        return OpenTelemetryTaskSpan(span, self._tracer, token, self.context)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        raise NotImplementedError("an OpenTelemetry tracer cannot see its own spans: look where they are collected")

    def _start(self, name: str, attributes: dict[str, str], timestamp: datetime | None) -> "tuple[OpenTSpan, object]":
        """A child of this span, wherever it is opened: in another thread there is no current span to follow."""
        context, trace = _api()
        own = getattr(self, "open_ts_span", None)
        around = None if own is None else trace.set_span_in_context(own)
        span = self._tracer.start_span(
            name,
            context=around,
            attributes=attributes,
            start_time=None if timestamp is None else _nanoseconds(timestamp),
        )
        return span, context.attach(trace.set_span_in_context(span))


class OpenTelemetrySpan(Span, OpenTelemetryTracer):
    def __init__(self, span: "OpenTSpan", tracer: "OpenTTracer", token: object, context: Context | None = None) -> None:
        OpenTelemetryTracer.__init__(self, tracer)
        Span.__init__(self, context=context)
        self.open_ts_span = span
        self._token = token

    def log(self, message: str, value: PydanticSerializable, timestamp: datetime | None = None) -> None:
        self.open_ts_span.add_event(
            message, {"value": _text(value)}, None if timestamp is None else _nanoseconds(timestamp)
        )

    def end(self, timestamp: datetime | None = None) -> None:
        super().end(timestamp)
        context, trace = _api()
        code = trace.StatusCode.OK if self.status_code is SpanStatus.OK else trace.StatusCode.ERROR
        self.open_ts_span.set_status(code)
        context.detach(self._token)
        self.open_ts_span.end(None if timestamp is None else _nanoseconds(timestamp))


class OpenTelemetryTaskSpan(TaskSpan, OpenTelemetrySpan):
    def record_output(self, output: PydanticSerializable) -> None:
        self.open_ts_span.set_attribute("output", _text(output))


def _api() -> tuple[Any, Any]:
    try:
        from opentelemetry import context, trace
    except ModuleNotFoundError:
        raise UserError(
            "OpenTelemetry traces need the package opentelemetry-api", fix="pip install 'assay[opentelemetry]'"
        ) from None
    return context, trace


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1e9)


def _text(value: Any) -> str:
    try:
        return JsonSerializer(value).model_dump_json()
    except (TypeError, ValueError):
        return str(value)
