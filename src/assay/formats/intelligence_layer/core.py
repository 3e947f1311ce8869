"""Tasks and tracers by the original's names, `intelligence_layer.core`."""

import typing

from assay.formats.intelligence_layer.task import MAX_CONCURRENCY as MAX_CONCURRENCY
from assay.formats.intelligence_layer.task import Task as Task
from assay.formats.intelligence_layer.task import Token as Token
from assay.formats.intelligence_layer.tracer import CompositeSpan as CompositeSpan
from assay.formats.intelligence_layer.tracer import CompositeTaskSpan as CompositeTaskSpan
from assay.formats.intelligence_layer.tracer import CompositeTracer as CompositeTracer
from assay.formats.intelligence_layer.tracer import Context as Context
from assay.formats.intelligence_layer.tracer import ErrorValue as ErrorValue
from assay.formats.intelligence_layer.tracer import Event as Event
from assay.formats.intelligence_layer.tracer import ExportedSpan as ExportedSpan
from assay.formats.intelligence_layer.tracer import ExportedSpanList as ExportedSpanList
from assay.formats.intelligence_layer.tracer import JsonSerializer as JsonSerializer
from assay.formats.intelligence_layer.tracer import NoOpTracer as NoOpTracer
from assay.formats.intelligence_layer.tracer import PydanticSerializable as PydanticSerializable
from assay.formats.intelligence_layer.tracer import Span as Span
from assay.formats.intelligence_layer.tracer import SpanAttributes as SpanAttributes
from assay.formats.intelligence_layer.tracer import SpanStatus as SpanStatus
from assay.formats.intelligence_layer.tracer import SpanType as SpanType
from assay.formats.intelligence_layer.tracer import TaskSpan as TaskSpan
from assay.formats.intelligence_layer.tracer import TaskSpanAttributes as TaskSpanAttributes
from assay.formats.intelligence_layer.tracer import Tracer as Tracer
from assay.formats.intelligence_layer.tracer import utc_now as utc_now
from assay.formats.intelligence_layer.tracers import InMemorySpan as InMemorySpan
from assay.formats.intelligence_layer.tracers import InMemoryTaskSpan as InMemoryTaskSpan
from assay.formats.intelligence_layer.tracers import InMemoryTracer as InMemoryTracer
from assay.formats.intelligence_layer.tracers import LogEntry as LogEntry
from assay.formats.intelligence_layer.tracers import OpenTelemetrySpan as OpenTelemetrySpan
from assay.formats.intelligence_layer.tracers import OpenTelemetryTaskSpan as OpenTelemetryTaskSpan
from assay.formats.intelligence_layer.tracers import OpenTelemetryTracer as OpenTelemetryTracer
from assay.formats.intelligence_layer.tracers_files import EndSpan as EndSpan
from assay.formats.intelligence_layer.tracers_files import EndTask as EndTask
from assay.formats.intelligence_layer.tracers_files import FileSpan as FileSpan
from assay.formats.intelligence_layer.tracers_files import FileTaskSpan as FileTaskSpan
from assay.formats.intelligence_layer.tracers_files import FileTracer as FileTracer
from assay.formats.intelligence_layer.tracers_files import LogLine as LogLine
from assay.formats.intelligence_layer.tracers_files import PersistentSpan as PersistentSpan
from assay.formats.intelligence_layer.tracers_files import PersistentTaskSpan as PersistentTaskSpan
from assay.formats.intelligence_layer.tracers_files import PersistentTracer as PersistentTracer
from assay.formats.intelligence_layer.tracers_files import PlainEntry as PlainEntry
from assay.formats.intelligence_layer.tracers_files import StartSpan as StartSpan
from assay.formats.intelligence_layer.tracers_files import StartTask as StartTask
from assay.formats.intelligence_layer.tracers_files import TracerLogEntryFailed as TracerLogEntryFailed
from assay.formats.intelligence_layer.types import Input as Input
from assay.formats.intelligence_layer.types import Output as Output

__path__: list[str] = []  # its modules are those of the table in `__init__`

if not typing.TYPE_CHECKING:
    from assay.formats.intelligence_layer import not_offered as __getattr__  # noqa: F401
