"""Tasks and tracers by the original's names, `intelligence_layer.core`."""

from typing import TYPE_CHECKING

from assay.formats.intelligence_layer import names_of

if TYPE_CHECKING:
    from assay.formats.intelligence_layer.task import *  # noqa: F403
    from assay.formats.intelligence_layer.tracer import *  # noqa: F403
    from assay.formats.intelligence_layer.tracers import *  # noqa: F403
    from assay.formats.intelligence_layer.tracers_files import *  # noqa: F403
    from assay.formats.intelligence_layer.types import *  # noqa: F403

_HOMES = {
    "task": "MAX_CONCURRENCY Task Token",
    "tracer": (
        "CompositeSpan CompositeTaskSpan CompositeTracer Context ErrorValue Event ExportedSpan ExportedSpanList "
        "JsonSerializer NoOpTracer PydanticSerializable Span SpanAttributes SpanStatus SpanType TaskSpan "
        "TaskSpanAttributes Tracer utc_now"
    ),
    "tracers": (
        "InMemorySpan InMemoryTaskSpan InMemoryTracer LogEntry OpenTelemetrySpan OpenTelemetryTaskSpan "
        "OpenTelemetryTracer"
    ),
    "tracers_files": (
        "EndSpan EndTask FileSpan FileTaskSpan FileTracer LogLine PersistentSpan PersistentTaskSpan "
        "PersistentTracer PlainEntry StartSpan StartTask TracerLogEntryFailed"
    ),
    "types": "Input Output",
}
__path__: list[str] = []  # its modules are those of the table in `__init__`
__getattr__, __dir__ = names_of(__name__, _HOMES)
