"""Tracers: what all kinds do alike, and what each does by itself."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest

from assay.errors import UserError
from assay.formats.intelligence_layer.core import (
    CompositeSpan,
    CompositeTracer,
    ErrorValue,
    ExportedSpanList,
    FileTracer,
    InMemorySpan,
    InMemoryTaskSpan,
    InMemoryTracer,
    JsonSerializer,
    LogEntry,
    LogLine,
    NoOpTracer,
    OpenTelemetryTracer,
    PersistentSpan,
    PersistentTaskSpan,
    PersistentTracer,
    PlainEntry,
    SpanStatus,
    SpanType,
    Task,
    TaskSpan,
    TaskSpanAttributes,
    Tracer,
    TracerLogEntryFailed,
    utc_now,
)
from assay.formats.intelligence_layer.evaluation import FileRunRepository, InMemoryRunRepository
from tests.formats.intelligence_layer.labs import Question

Make = Callable[[Path], Tracer]
KINDS: dict[str, Make] = {
    "memory": lambda folder: InMemoryTracer(),
    "file": lambda folder: FileTracer(folder / "deep" / "trace.jsonl"),
    "composite": lambda folder: CompositeTracer(
        [InMemoryTracer(), FileTracer(folder / "trace.jsonl")]
    ),
    "run in memory": lambda folder: InMemoryRunRepository().create_tracer_for_example(
        "run", "example"
    ),
    "run in files": lambda folder: FileRunRepository(folder).create_tracer_for_example(
        "run", "example"
    ),
}
every_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@every_kind
def test_spans_are_exported_with_their_logs(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    before = utc_now()
    with tracer.span("step") as span:
        span.log("seen", Question(text="cool"))
    (exported,) = tracer.export_for_viewing()
    assert exported.name == "step"
    assert exported.parent_id is None
    assert exported.context.trace_id == exported.context.span_id
    assert exported.attributes.type is SpanType.SPAN
    assert exported.status is SpanStatus.OK
    (event,) = exported.events
    assert (event.name, event.message) == ("log", "seen")
    assert Question.model_validate(event.body) == Question(text="cool")
    assert before <= exported.start_time <= event.timestamp <= exported.end_time <= utc_now()


@every_kind
def test_task_spans_have_input_and_output(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    with tracer.task_span("task", "in") as span:
        span.record_output("out")  # type: ignore[attr-defined]
    (exported,) = tracer.export_for_viewing()
    assert isinstance(exported.attributes, TaskSpanAttributes)
    assert exported.attributes.type is SpanType.TASK_SPAN
    assert (exported.attributes.input, exported.attributes.output) == ("in", "out")


@every_kind
@pytest.mark.parametrize("is_task", [False, True])
def test_an_exception_is_logged_and_makes_an_error(
    make: Make, is_task: bool, tmp_path: Path
) -> None:
    tracer = make(tmp_path)
    with (
        pytest.raises(ZeroDivisionError),
        tracer.task_span("t", 1) if is_task else tracer.span("t"),
    ):
        raise ZeroDivisionError("by nothing")
    (exported,) = tracer.export_for_viewing()
    assert exported.status is SpanStatus.ERROR
    (event,) = exported.events
    error = ErrorValue.model_validate(event.body)
    assert (event.message, error.error_type, error.message) == (
        "by nothing",
        "ZeroDivisionError",
        "by nothing",
    )
    assert "raise ZeroDivisionError" in error.stack_trace
    assert not is_task or exported.attributes.output is None  # type: ignore[union-attr]


@every_kind
def test_spans_nest(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    with tracer.span("outer") as outer, outer.task_span("inner", 1) as inner:
        inner.log("deep", [1, {"a": None}])
    by_name = {span.name: span for span in tracer.export_for_viewing()}
    assert by_name.keys() == {"outer", "inner"}
    assert by_name["inner"].parent_id == by_name["outer"].context.span_id
    assert by_name["inner"].context.trace_id == by_name["outer"].context.trace_id
    assert by_name["inner"].context.span_id != by_name["outer"].context.span_id
    assert (len(by_name["inner"].events), len(by_name["outer"].events)) == (1, 0)


@every_kind
def test_roots_are_traces_of_their_own(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    tracer.span("one").end()
    tracer.span("two").end()
    one, two = tracer.export_for_viewing()
    assert (one.parent_id, two.parent_id) == (None, None)
    assert one.context.trace_id != two.context.trace_id


@every_kind
def test_an_open_span_cannot_be_exported(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    with tracer.span("outer") as outer:
        inner = outer.span("inner")
        with pytest.raises(RuntimeError, match="open"):
            inner.export_for_viewing()
        inner.end()


@every_kind
@pytest.mark.parametrize("ended", ["by its block", "by itself"])
def test_a_span_cannot_be_entered_again(make: Make, ended: str, tmp_path: Path) -> None:
    span = make(tmp_path).span("once")
    if ended == "by itself":
        span.end()
    else:
        with span:
            pass
    with pytest.raises(ValueError, match="ended"), span:
        pass


@every_kind
def test_given_times_are_kept_and_the_first_end_counts(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    at = [datetime(2024, 1, 1, 0, 0, second, 123456, UTC) for second in range(4)]
    span = tracer.task_span("task", None, at[0])
    span.log("log", 1, at[1])
    span.end(at[2])
    span.end(at[3])
    (exported,) = tracer.export_for_viewing()
    assert [exported.start_time, exported.events[0].timestamp, exported.end_time] == at[:3]


@every_kind
def test_threads_share_a_span(make: Make, tmp_path: Path) -> None:
    tracer = make(tmp_path)
    with tracer.span("outer") as outer:

        def work(number: int) -> None:
            with outer.span(f"inner {number}") as span:
                span.log("n", number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    spans = tracer.export_for_viewing()
    assert {span.name for span in spans} == {"outer", *(f"inner {number}" for number in range(8))}
    assert all(
        span.events[0].body == int(str(span.name)[6:]) for span in spans if span.name != "outer"
    )


def test_values_that_are_no_json_are_stored_as_text(tmp_path: Path) -> None:
    lock = threading.Lock()
    for number, tracer in enumerate(
        [
            FileTracer(tmp_path / "t.jsonl"),
            FileRunRepository(tmp_path).create_tracer_for_example("run", "e"),
        ]
    ):
        with tracer.task_span("task", lock) as span:
            span.log("lock", {"lock": lock})
            span.log("surrogate", "\ud800" if number else "")
    (exported,) = FileTracer(tmp_path / "t.jsonl").export_for_viewing()
    assert "lock" in exported.attributes.input  # type: ignore[union-attr]
    assert "lock" in exported.events[0].body["lock"]
    stored = FileRunRepository(tmp_path).example_tracer("run", "e")
    assert stored is not None
    assert [span.name for span in stored.export_for_viewing()] == ["task"]


def test_a_file_has_the_lines_of_the_original(tmp_path: Path) -> None:
    tracer = FileTracer(str(tmp_path / "trace.jsonl"))
    with tracer.task_span("task", {"in": 1}) as task, task.span("step") as step:
        step.log("message", "value")
    lines = [
        msgspec.json.decode(line) for line in (tmp_path / "trace.jsonl").read_bytes().splitlines()
    ]
    assert [line["entry_type"] for line in lines] == [
        "StartTask",
        "StartSpan",
        "PlainEntry",
        "EndSpan",
        "EndTask",
    ]
    root = lines[0]["entry"]["uuid"]
    assert {line["trace_id"] for line in lines} == {root}
    assert lines[0]["entry"].keys() == {"uuid", "parent", "name", "start", "input", "trace_id"}
    assert lines[0]["entry"]["start"].endswith("Z")
    assert lines[4]["entry"] | {"end": ""} == {
        "uuid": root,
        "end": "",
        "output": None,
        "status_code": "OK",
    }


def test_an_older_file_of_the_original_is_read(tmp_path: Path) -> None:
    trace, task, step, unknown = (str(UUID(int=number)) for number in (1, 2, 3, 4))
    entries: list[tuple[str, dict[str, Any]]] = [
        (
            "StartTask",
            {
                "uuid": task,
                "parent": unknown,
                "name": "Old",
                "start": "2024-05-22T09:43:37.428758Z",
                "input": "input",
                "trace_id": trace,
            },
        ),
        (
            "StartSpan",
            {
                "uuid": step,
                "parent": task,
                "name": "step",
                "start": "2024-05-22T09:43:37.5Z",
                "trace_id": trace,
            },
        ),
        (
            "PlainEntry",
            {
                "message": "m",
                "value": "v",
                "timestamp": "2024-05-22T09:43:37.6Z",
                "parent": step,
                "trace_id": trace,
            },
        ),
        ("EndSpan", {"uuid": step, "end": "2024-05-22T09:43:37.7Z"}),
        ("EndTask", {"uuid": task, "end": "2024-05-22T09:43:37.8Z", "output": "output"}),
    ]
    lines = [{"trace_id": trace, "entry_type": kind, "entry": entry} for kind, entry in entries]
    file = tmp_path / "old.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode(line) for line in lines))
    step_span, task_span = FileTracer(file).export_for_viewing()
    assert (task_span.name, task_span.status) == ("Old", SpanStatus.OK)
    assert step_span.parent_id == task_span.context.span_id == UUID(task)
    assert step_span.events[0].body == "v"
    assert FileTracer(file).traces(trace_id=trace).entries
    assert not FileTracer(file).traces(trace_id=unknown).entries


def test_an_unknown_entry_is_refused(tmp_path: Path) -> None:
    line = LogLine(trace_id=UUID(int=1), entry_type="Strange", entry={})
    (tmp_path / "trace.jsonl").write_text(line.model_dump_json())
    with pytest.raises(RuntimeError, match="Strange"):
        FileTracer(tmp_path / "trace.jsonl").traces()


def test_memory_keeps_a_tree(capsys: pytest.CaptureFixture[str]) -> None:
    tracer = InMemoryTracer()
    with tracer.task_span("task\x1b[31m", Question(text="q")) as task:
        task.log("note", "[bold]not markup")
        task.span("step").end()
    (entry,) = tracer.entries
    assert isinstance(entry, InMemoryTaskSpan)
    log, step = entry.entries
    assert isinstance(log, LogEntry)
    assert isinstance(step, InMemorySpan)
    assert log.trace_id == entry.context.trace_id
    tracer._ipython_display_()
    log._ipython_display_()
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "[bold]not markup" in shown
    assert shown.index("Input") < shown.index("note") < shown.index("step") < shown.index("Output")


def test_a_composite_hands_on_to_all() -> None:
    one, two = InMemoryTracer(), InMemoryTracer()
    with CompositeTracer([one, two]).task_span("task", 1) as task:
        assert isinstance(task, CompositeSpan)
        with task.span("step") as step:
            step.log("m", "v")
        task.record_output(2)  # type: ignore[attr-defined]
    first, second = one.export_for_viewing(), two.export_for_viewing()
    assert [(s.name, s.start_time, s.end_time, s.attributes, s.events) for s in first] == [
        (s.name, s.start_time, s.end_time, s.attributes, s.events) for s in second
    ]
    assert task.context == one.entries[0].context  # type: ignore[union-attr]
    task.tracers[0].status_code = SpanStatus.ERROR
    with pytest.raises(ValueError, match="same status"):
        _ = task.status_code
    with pytest.raises(ValueError, match="at least one"):
        CompositeTracer([])


def test_a_tracer_of_ones_own_may_fail_to_log() -> None:
    class Picky(PersistentTracer):
        lines: list[LogLine] = []

        def _log_entry(self, id: UUID, entry: Any) -> None:
            if getattr(entry, "value", getattr(entry, "input", None)) == "bad":
                raise TracerLogEntryFailed("too bad", str(id))
            self.lines.append(LogLine(trace_id=id, entry_type=type(entry).__name__, entry=entry))

        def span(self, name: str, timestamp: datetime | None = None) -> "PickySpan":
            span = PickySpan(context=self.context)
            self._log_span(span, name, timestamp)
            return span

        def task_span(
            self, task_name: str, input: Any, timestamp: datetime | None = None
        ) -> "PickyTask":
            span = PickyTask(context=self.context)
            self._log_task(span, task_name, input, timestamp)
            return span

        def traces(self) -> InMemoryTracer:
            return self._parse_log(self.lines)

    class PickySpan(PersistentSpan, Picky):
        pass

    class PickyTask(PersistentTaskSpan, PickySpan):
        pass

    tracer = Picky()
    with tracer.task_span("task", "bad") as task:
        task.log("message", "bad")
    (exported,) = tracer.export_for_viewing()
    assert exported.attributes.input == "too bad"  # type: ignore[union-attr]
    assert (exported.events[0].message, exported.events[0].body) == ("log entry failed", "too bad")
    assert isinstance(Picky.lines[1].entry, PlainEntry)


def test_the_tracer_that_keeps_nothing() -> None:
    tracer = NoOpTracer()
    with tracer.task_span("task", 1) as task:
        assert task is tracer
        task.record_output(2)
    with tracer.span("again") as span:
        span.log("m", "v")
    assert tracer.export_for_viewing() == []
    assert tracer.id() == "NoOp"


def test_exported_spans_have_the_methods_of_models() -> None:
    tracer = InMemoryTracer()
    tracer.task_span("task", Question(text="q")).end()
    (dumped,) = ExportedSpanList(tracer.export_for_viewing()).model_dump(mode="json")
    assert dumped["attributes"] == {"type": "TASK_SPAN", "input": {"text": "q"}, "output": None}
    assert JsonSerializer(root={"a": 1}).model_dump_json() == '{"a":1}'


def test_open_telemetry_gets_the_same_spans() -> None:
    sdk = pytest.importorskip(
        "opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed"
    )
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip(
        "opentelemetry.sdk.trace.export.in_memory_span_exporter"
    ).InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(memory))
    _check_open_telemetry(provider.get_tracer("test"), lambda: memory.get_finished_spans())


def test_open_telemetry_needs_no_more_than_its_interface() -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    ended: list[Any] = []

    class Recorded(trace.NonRecordingSpan):
        def __init__(
            self, name: str, parent: Any, attributes: dict[str, Any], start_time: int | None
        ) -> None:
            super().__init__(trace.SpanContext(trace_id=1, span_id=id(self), is_remote=False))
            self.name, self.parent, self.attributes, self.start_time = (
                name,
                parent,
                attributes,
                start_time,
            )
            self.events: list[Any] = []

        @property
        def context(self) -> Any:
            return self.get_span_context()

        def set_attribute(self, key: str, value: Any) -> None:
            self.attributes[key] = value

        def add_event(
            self, name: str, attributes: Any = None, timestamp: int | None = None
        ) -> None:
            self.events.append(SimpleNamespace(name=name, attributes=attributes))

        def set_status(self, status: Any, description: str | None = None) -> None:
            self.status = SimpleNamespace(status_code=status)

        def end(self, end_time: int | None = None) -> None:
            ended.append(self)

    class Recorder:
        def start_span(
            self, name: str, context: Any, attributes: dict[str, Any], start_time: int | None
        ) -> Any:
            return Recorded(
                name, trace.get_current_span(context).get_span_context(), attributes, start_time
            )

    _check_open_telemetry(Recorder(), lambda: ended)


def _check_open_telemetry(tracer: Any, finished: Callable[[], Any]) -> None:
    class Failing(Task[Question, str]):
        def do_run(self, input: Question, task_span: TaskSpan) -> str:
            thread = threading.Thread(target=lambda: task_span.span("elsewhere").end())
            thread.start()
            thread.join()
            with task_span.span("step", datetime(2024, 1, 1, tzinfo=UTC)) as step:
                step.log("m", {"v": 1})
            task_span.record_output("out")
            raise KeyError("k")

    with pytest.raises(KeyError):
        Failing().run(Question(text="q"), OpenTelemetryTracer(tracer))
    spans = {span.name: span for span in finished()}
    assert spans.keys() == {"Failing", "step", "elsewhere"}
    assert spans["Failing"].attributes == {
        "type": "TASK_SPAN",
        "input": '{"text":"q"}',
        "output": '"out"',
    }
    assert spans["step"].attributes == {"type": "SPAN"}
    assert spans["step"].start_time == int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e9)
    assert [(event.name, event.attributes["value"]) for event in spans["step"].events] == [
        ("m", '{"v":1}')
    ]
    assert {spans[name].parent.span_id for name in ("step", "elsewhere")} == {
        spans["Failing"].context.span_id
    }
    assert (spans["step"].status.status_code.name, spans["Failing"].status.status_code.name) == (
        "OK",
        "ERROR",
    )
    assert spans["Failing"].events[-1].name == "'k'"


def test_open_telemetry_cannot_see_its_spans_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    with pytest.raises(NotImplementedError):
        OpenTelemetryTracer(object()).export_for_viewing()  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(UserError, match="opentelemetry-api") as caught:
        OpenTelemetryTracer(object()).span("s")  # type: ignore[arg-type]
    assert "pip install" in caught.value.fix
