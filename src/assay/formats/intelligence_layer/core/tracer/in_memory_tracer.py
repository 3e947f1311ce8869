"""Traces as a tree of Python objects, for notebooks, tests, and as what stored traces are read back to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from assay.formats.intelligence_layer.core.tracer.tracer import (
    Context,
    Event,
    ExportedSpan,
    JsonSerializer,
    PydanticSerializable,
    Span,
    SpanAttributes,
    TaskSpan,
    TaskSpanAttributes,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.record import Record
from assay.text.plain import plain

if TYPE_CHECKING:
    from rich.panel import Panel
    from rich.tree import Tree


class InMemoryTracer(Tracer):
    """`entries` are the spans, and in a span its logs too, in the order in which they began."""

    def __init__(self) -> None:
        self.entries: list[LogEntry | InMemoryTaskSpan | InMemorySpan] = []

    def span(self, name: str, timestamp: datetime | None = None) -> "InMemorySpan":
        child = InMemorySpan(name=name, context=self.context, start_timestamp=timestamp or utc_now())
        self.entries.append(child)
        return child

    def task_span(
        self, task_name: str, input: PydanticSerializable, timestamp: datetime | None = None
    ) -> "InMemoryTaskSpan":
        child = InMemoryTaskSpan(
            name=task_name, input=input, context=self.context, start_timestamp=timestamp or utc_now()
        )
        self.entries.append(child)
        return child

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        return [
            span for entry in self.entries if not isinstance(entry, LogEntry) for span in entry.export_for_viewing()
        ]

    def _rich_render_(self) -> "Tree":
        return _tree("Trace", [entry._rich_render_() for entry in self.entries])

    def _ipython_display_(self) -> None:
        import rich

        rich.print(self._rich_render_())


class InMemorySpan(InMemoryTracer, Span):
    def __init__(self, name: str, context: Context | None = None, start_timestamp: datetime | None = None) -> None:
        InMemoryTracer.__init__(self)
        Span.__init__(self, context=context)
        self.parent_id = None if context is None else context.span_id
        self.name = name
        self.start_timestamp = start_timestamp or utc_now()
        self.end_timestamp: datetime | None = None

    def log(self, message: str, value: PydanticSerializable, timestamp: datetime | None = None) -> None:
        self.entries.append(
            LogEntry(message=message, value=value, timestamp=timestamp or utc_now(), trace_id=self.context.trace_id)
        )

    def end(self, timestamp: datetime | None = None) -> None:
        if self.end_timestamp is None:
            self.end_timestamp = timestamp or utc_now()
        super().end(timestamp)

    def export_for_viewing(self) -> Sequence[ExportedSpan]:
        if self.end_timestamp is None:
            raise RuntimeError(f"the span {self.name!r} is still open: end it before it is exported")
        own = ExportedSpan(
            context=self.context,
            name=self.name,
            parent_id=self.parent_id,
            start_time=self.start_timestamp,
            end_time=self.end_timestamp,
            attributes=self._span_attributes(),
            events=[entry.as_event() for entry in self.entries if isinstance(entry, LogEntry)],
            status=self.status_code,
        )
        return [*super().export_for_viewing(), own]

    def _span_attributes(self) -> SpanAttributes | TaskSpanAttributes:
        return SpanAttributes()

    def _rich_render_(self) -> "Tree":
        return _tree(self.name, [entry._rich_render_() for entry in self.entries])


class InMemoryTaskSpan(InMemorySpan, TaskSpan):
    def __init__(
        self,
        name: str,
        input: PydanticSerializable,
        context: Context | None = None,
        start_timestamp: datetime | None = None,
    ) -> None:
        super().__init__(name=name, context=context, start_timestamp=start_timestamp)
        self.input = input
        self.output: PydanticSerializable | None = None

    def record_output(self, output: PydanticSerializable) -> None:
        self.output = output

    def _span_attributes(self) -> SpanAttributes | TaskSpanAttributes:
        return TaskSpanAttributes(input=self.input, output=self.output)

    def _rich_render_(self) -> "Tree":
        inside = [entry._rich_render_() for entry in self.entries]
        return _tree(self.name, [_panel("Input", self.input), *inside, _panel("Output", self.output)])


@dataclass(kw_only=True)
class LogEntry(Record):
    """A log of a span."""

    message: str
    value: Any
    timestamp: datetime = field(default_factory=utc_now)
    trace_id: UUID

    def as_event(self) -> Event:
        return Event(name="log", message=self.message, body=self.value, timestamp=self.timestamp)

    def _rich_render_(self) -> "Panel":
        return _panel(self.message, self.value)

    def _ipython_display_(self) -> None:
        import rich

        rich.print(self._rich_render_())


def _tree(title: str, children: Sequence[Any]) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(plain(title)))
    for child in children:
        tree.add(child)
    return tree


def _panel(title: str, value: Any) -> "Panel":
    from rich.panel import Panel
    from rich.text import Text

    try:
        text = JsonSerializer(value).model_dump_json(indent=2)
    except (TypeError, ValueError):
        text = str(value)
    return Panel(Text(plain(text)), title=Text(plain(title)))
