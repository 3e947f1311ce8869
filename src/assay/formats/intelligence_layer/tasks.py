"""Tasks. A task turns an input into an output and keeps in its trace how it came to it.

`ExampleTask` is the task as one of the engine's: `do_run` in a thread, its trace kept, its failures
as rows.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, final

from assay.engine.calls.stop import Stop
from assay.formats.intelligence_layer.domain import FailedExampleRun
from assay.formats.intelligence_layer.logics import arguments_of
from assay.formats.intelligence_layer.runs import answer_with
from assay.formats.intelligence_layer.tracer import TaskSpan, Tracer
from assay.formats.intelligence_layer.types import Input, ModelRecord, Output, from_json, to_json
from assay.sdk import (
    Answer,
    CallError,
    Context as CallContext,
    Item,
    JsonMapping,
    JsonObject,
    LaneError,
    PermanentError,
    TransientError,
    Work,
    canonical,
    digest,
    response_key,
)
from assay.text.plain import plain
from assay.usercode import identity

MAX_CONCURRENCY = 20
_MISSING = object()
MakeTracer = Callable[[str, str], Tracer]
"""The tracer of an example, by its id and the key of its row."""


@dataclass(kw_only=True)
class Token(ModelRecord):
    token: str
    token_id: int


class Task(ABC, Generic[Input, Output]):
    """Implement `do_run`, with types on its `input` and its result; call `run`."""

    @abstractmethod
    def do_run(self, input: Input, task_span: TaskSpan) -> Output:
        """The work itself."""

    @final
    def run(self, input: Input, tracer: Tracer) -> Output:
        """Do the work in a task span that has the class's name, with input, output and errors
        recorded."""
        with tracer.task_span(type(self).__name__, input) as task_span:
            assert isinstance(task_span, TaskSpan)
            output = self.do_run(input, task_span)
            task_span.record_output(output)
            return output

    @final
    def run_concurrently(
        self, inputs: Iterable[Input], tracer: Tracer, concurrency_limit: int = MAX_CONCURRENCY
    ) -> Sequence[Output]:
        """The outputs in the order of the inputs, at most `concurrency_limit` (and never over 20)
        at a time."""
        limit = max(1, min(concurrency_limit, MAX_CONCURRENCY))
        with (
            tracer.span(f"Concurrent {type(self).__name__} tasks") as span,
            ThreadPoolExecutor(max_workers=limit) as executor,
        ):
            return list(executor.map(lambda value: self.run(value, span), inputs))


def type_of(task: Task[Any, Any], part: Literal["input", "output"], owner: object) -> Any:
    """A TypeError where there is no type, which says how to give one. `owner` is the object that
    was asked."""
    function: Any = inspect.unwrap(task.do_run)
    annotation = inspect.get_annotations(function).get(
        "return" if part == "output" else part, _MISSING
    )
    if isinstance(annotation, str):
        annotation = _annotated_type(annotation, function)
    if isinstance(annotation, TypeVar):
        annotation = arguments_of(type(task), Task).get(part.capitalize(), _MISSING)
    if annotation is _MISSING:
        raise TypeError(
            f"{type(task).__name__}.do_run has no type for its {part}: annotate "
            f"{'its result' if part == 'output' else 'the parameter `input`'}, "
            f"or override {part}_type() in {type(owner).__name__}"
        )
    return annotation


def _annotated_type(annotation: str, function: Any) -> Any:
    """An annotation that is text, as all are after `from __future__ import annotations`."""
    try:
        return eval(annotation, getattr(function, "__globals__", {}))
    except NameError:  # a class that some function has for itself
        return _MISSING


def parameters_of(task: Task[Any, Any]) -> JsonObject:
    """Return what the task was made with, as far as that is plain data: the attributes that its
    constructor's arguments became. Other attributes, and containers that may be filled while it
    runs, are not parameters but its memory."""
    parameters: JsonObject = {}
    for name in inspect.signature(type(task)).parameters:
        value = getattr(task, name, getattr(task, f"_{name}", None))
        if not isinstance(value, (list, dict, set)):
            try:
                parameters[name] = to_json(value)
            except (TypeError, ValueError, RecursionError):  # a client, an open file: not data
                continue
    return parameters


class ExampleTask:
    """`failure` is the first exception of a run that is to stop at it; that example has no row, so
    that it runs again when the run resumes."""

    def __init__(
        self,
        task: Task[Any, Any],
        input_type: Any,
        make_tracer: MakeTracer,
        *,
        stop: Stop | None = None,
        store: Callable[[str, Any], None] | None = None,
    ) -> None:
        self.name = self.model_name = type(task).__name__
        self.lane = ""
        self.facets: JsonMapping = {"model_id": self.name}
        self.identity: JsonMapping = {
            "task": self.name,
            "code": identity(type(task).do_run),
            "params": parameters_of(task),
        }
        self.failure: BaseException | None = None
        self._task = task
        self._input_type = input_type
        self._make_tracer = make_tracer
        self.stop = stop
        self._store = store
        self._code = digest("task", canonical(self.identity))

    def prepare(self, item: Item) -> Work:
        return Work(digest("example", self._code, canonical(item.data)), item)

    async def run(self, work: Work, context: CallContext) -> Answer:
        answer, failed = await context.thread(lambda: self._run(work))
        if isinstance(failed, LaneError) and self.stop is not None:
            self.stop.request()
        if failed is not None:
            raise failed
        return answer

    def _run(self, work: Work) -> tuple[Answer, CallError | None]:
        """In a thread. A LaneError leaves the example without a row, any other error is its row."""
        item: Item = work.payload
        if self.failure is not None:  # raised while this example waited for its thread
            return Answer(), LaneError("stopped")
        try:
            tracer = self._make_tracer(
                item.id, response_key(item.id, self.name, 0, work.fingerprint).hex()
            )
            output = self._task.run(from_json(item.data, self._input_type), tracer)
            answer, failed = answer_with(output), None
        except (Exception, SystemExit) as error:  # whatever a task raises is this example's result
            if self.stop is not None:
                self.failure = self.failure or error
                return Answer(), LaneError("stopped")
            print(plain(f'FAILED RUN: example "{item.id}", {type(error).__qualname__}: "{error}"'))
            output = FailedExampleRun.from_exception(error)
            kind = TransientError if isinstance(error, TransientError) else PermanentError
            answer, failed = Answer(), kind(output.error_message)
        if self._store is not None:
            self._store(item.id, output)
        return answer, failed
