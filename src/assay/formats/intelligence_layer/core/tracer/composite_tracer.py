"""One trace to several tracers at once, with the same times in all of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar

from assay.formats.intelligence_layer.core.tracer.tracer import (
    Context,
    ExportedSpan,
    PydanticSerializable,
    Span,
    SpanStatus,
    TaskSpan,
    Tracer,
    utc_now,
)

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
        self, task_name: str, input: PydanticSerializable, timestamp: datetime | None = None
    ) -> "CompositeTaskSpan":
        timestamp = timestamp or utc_now()
        return CompositeTaskSpan([tracer.task_span(task_name, input, timestamp) for tracer in self.tracers])

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return self.tracers[0].export_for_viewing()


class CompositeSpan(Generic[SpanVar], CompositeTracer[SpanVar], Span):
    """`context` is that of its first span."""

    def __init__(self, tracers: Sequence[SpanVar], context: Context | None = None) -> None:
        CompositeTracer.__init__(self, tracers)
        self._closed = False

    def log(self, message: str, value: PydanticSerializable, timestamp: datetime | None = None) -> None:
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
        found = {tracer.status_code for tracer in self.tracers}
        if len(found) > 1:
            raise ValueError("the spans of this composite do not have the same status")
        return found.pop()

    @status_code.setter
    def status_code(self, span_status: SpanStatus) -> None:
        for tracer in self.tracers:
            tracer.status_code = span_status


class CompositeTaskSpan(CompositeSpan[TaskSpan], TaskSpan):
    def record_output(self, output: PydanticSerializable) -> None:
        for tracer in self.tracers:
            tracer.record_output(output)
