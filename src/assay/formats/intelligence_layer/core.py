"""Tasks and tracers by the original's names, `intelligence_layer.core`."""

from typing import TYPE_CHECKING

from assay.formats.intelligence_layer.names import names_of

if TYPE_CHECKING:
    from assay.formats.intelligence_layer.tasks import *  # noqa: F403
    from assay.formats.intelligence_layer.tracer import *  # noqa: F403

_HOMES = {
    "tasks": "MAX_CONCURRENCY Task Token",
    "tracer": (
        "Context ErrorValue Event ExportedSpan InMemorySpan InMemoryTaskSpan InMemoryTracer "
        "LogEntry NoOpTracer PydanticSerializable Span SpanAttributes SpanStatus SpanType "
        "TaskSpan TaskSpanAttributes Tracer utc_now"
    ),
    "types": "Input Output",
}
__path__: list[str] = []  # its modules are those of the table in `__init__`
__getattr__, __dir__ = names_of(__name__, _HOMES)
