"""Tracers: what all kinds do alike, and what each does by itself."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.formats.intelligence_layer.core import (
    ErrorValue,
    InMemorySpan,
    InMemoryTaskSpan,
    InMemoryTracer,
    LogEntry,
    NoOpTracer,
    SpanStatus,
    SpanType,
    TaskSpanAttributes,
    Tracer,
    utc_now,
)
from assay.formats.intelligence_layer.evaluation import FileRunRepository, InMemoryRunRepository
from tests.formats.intelligence_layer.labs import Question

Make = Callable[[Path], Tracer]
KINDS: dict[str, Make] = {
    "memory": lambda folder: InMemoryTracer(),
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
    error = event.body
    assert isinstance(error, ErrorValue)
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
    tracer = FileRunRepository(tmp_path).create_tracer_for_example("run", "e")
    with tracer.task_span("task", lock) as span:
        span.log("lock", {"lock": lock})
        span.log("surrogate", "\ud800")
    stored = FileRunRepository(tmp_path).example_tracer("run", "e")
    assert stored is not None
    assert [span.name for span in stored.export_for_viewing()] == ["task"]


def test_memory_keeps_a_tree() -> None:
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


def test_the_tracer_that_keeps_nothing() -> None:
    tracer = NoOpTracer()
    with tracer.task_span("task", 1) as task:
        assert task is tracer
        task.record_output(2)
    with tracer.span("again") as span:
        span.log("m", "v")
    assert tracer.export_for_viewing() == []
    assert tracer.id() == "NoOp"
