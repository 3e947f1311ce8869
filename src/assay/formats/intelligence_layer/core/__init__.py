"""Tasks and tracers by the original's names."""

from assay.formats.intelligence_layer.core.task import MAX_CONCURRENCY as MAX_CONCURRENCY
from assay.formats.intelligence_layer.core.task import Input as Input
from assay.formats.intelligence_layer.core.task import Output as Output
from assay.formats.intelligence_layer.core.task import Task as Task
from assay.formats.intelligence_layer.core.task import Token as Token
from assay.formats.intelligence_layer.core.tracer.composite_tracer import CompositeSpan as CompositeSpan
from assay.formats.intelligence_layer.core.tracer.composite_tracer import CompositeTaskSpan as CompositeTaskSpan
from assay.formats.intelligence_layer.core.tracer.composite_tracer import CompositeTracer as CompositeTracer
from assay.formats.intelligence_layer.core.tracer.file_tracer import FileSpan as FileSpan
from assay.formats.intelligence_layer.core.tracer.file_tracer import FileTaskSpan as FileTaskSpan
from assay.formats.intelligence_layer.core.tracer.file_tracer import FileTracer as FileTracer
from assay.formats.intelligence_layer.core.tracer.in_memory_tracer import InMemorySpan as InMemorySpan
from assay.formats.intelligence_layer.core.tracer.in_memory_tracer import InMemoryTaskSpan as InMemoryTaskSpan
from assay.formats.intelligence_layer.core.tracer.in_memory_tracer import InMemoryTracer as InMemoryTracer
from assay.formats.intelligence_layer.core.tracer.in_memory_tracer import LogEntry as LogEntry
from assay.formats.intelligence_layer.core.tracer.open_telemetry_tracer import OpenTelemetrySpan as OpenTelemetrySpan
from assay.formats.intelligence_layer.core.tracer.open_telemetry_tracer import (
    OpenTelemetryTaskSpan as OpenTelemetryTaskSpan,
)
from assay.formats.intelligence_layer.core.tracer.open_telemetry_tracer import (
    OpenTelemetryTracer as OpenTelemetryTracer,
)
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import EndSpan as EndSpan
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import EndTask as EndTask
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import LogLine as LogLine
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import PersistentSpan as PersistentSpan
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import PersistentTaskSpan as PersistentTaskSpan
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import PersistentTracer as PersistentTracer
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import PlainEntry as PlainEntry
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import StartSpan as StartSpan
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import StartTask as StartTask
from assay.formats.intelligence_layer.core.tracer.persistent_tracer import TracerLogEntryFailed as TracerLogEntryFailed
from assay.formats.intelligence_layer.core.tracer.tracer import Context as Context
from assay.formats.intelligence_layer.core.tracer.tracer import ErrorValue as ErrorValue
from assay.formats.intelligence_layer.core.tracer.tracer import Event as Event
from assay.formats.intelligence_layer.core.tracer.tracer import ExportedSpan as ExportedSpan
from assay.formats.intelligence_layer.core.tracer.tracer import ExportedSpanList as ExportedSpanList
from assay.formats.intelligence_layer.core.tracer.tracer import JsonSerializer as JsonSerializer
from assay.formats.intelligence_layer.core.tracer.tracer import NoOpTracer as NoOpTracer
from assay.formats.intelligence_layer.core.tracer.tracer import PydanticSerializable as PydanticSerializable
from assay.formats.intelligence_layer.core.tracer.tracer import Span as Span
from assay.formats.intelligence_layer.core.tracer.tracer import SpanAttributes as SpanAttributes
from assay.formats.intelligence_layer.core.tracer.tracer import SpanStatus as SpanStatus
from assay.formats.intelligence_layer.core.tracer.tracer import SpanType as SpanType
from assay.formats.intelligence_layer.core.tracer.tracer import TaskSpan as TaskSpan
from assay.formats.intelligence_layer.core.tracer.tracer import TaskSpanAttributes as TaskSpanAttributes
from assay.formats.intelligence_layer.core.tracer.tracer import Tracer as Tracer
from assay.formats.intelligence_layer.core.tracer.tracer import utc_now as utc_now
