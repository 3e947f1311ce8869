"""Tasks by themselves."""

import threading
from itertools import count

import pytest

from assay.formats.intelligence_layer.core import (
    MAX_CONCURRENCY,
    InMemoryTaskSpan,
    InMemoryTracer,
    NoOpTracer,
    SpanStatus,
    Task,
    TaskSpan,
    Token,
)
from tests.formats.intelligence_layer.labs import FAILS, Answering, Question, Reply


def test_run_traces_input_and_output_under_the_name_of_the_class() -> None:
    tracer = InMemoryTracer()
    assert Answering().run(Question(text="hi"), tracer) == Reply(text="HI", length=2)
    (span,) = tracer.entries
    assert isinstance(span, InMemoryTaskSpan)
    assert (span.name, span.input, span.output) == (
        "Answering",
        Question(text="hi"),
        Reply(text="HI", length=2),
    )


def test_run_lets_the_exception_through_and_traces_it() -> None:
    tracer = InMemoryTracer()
    with pytest.raises(RuntimeError, match="asked to fail"):
        Answering().run(Question(text=FAILS), tracer)
    assert tracer.export_for_viewing()[0].status is SpanStatus.ERROR


def test_run_concurrently_keeps_the_order_and_the_limit() -> None:
    running, most, lock, together = count(), [0], threading.Lock(), threading.Barrier(3)
    now = [0]

    class Slow(Task[int, int]):
        def do_run(self, input: int, task_span: TaskSpan) -> int:
            with lock:
                next(running)
                now[0] += 1
                most[0] = max(most[0], now[0])
            together.wait(5)  # passes only if three run at once
            with lock:
                now[0] -= 1
            return -input

    tracer = InMemoryTracer()
    assert Slow().run_concurrently(range(9), tracer, concurrency_limit=3) == [
        -number for number in range(9)
    ]
    assert most == [3]
    (outer,) = tracer.entries
    assert outer.name == "Concurrent Slow tasks"  # type: ignore[union-attr]
    assert len(outer.entries) == 9  # type: ignore[union-attr]


def test_nothing_is_a_task_without_do_run() -> None:
    with pytest.raises(TypeError):
        Task()  # type: ignore[abstract]
    assert MAX_CONCURRENCY == 20
    assert Answering().run_concurrently([], NoOpTracer()) == []
    assert Token(token="a", token_id=1) == Token(token="a", token_id=1)
