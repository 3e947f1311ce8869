"""The user's task as one of the engine's: `do_run` in a thread, its trace kept, its failures as rows."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from assay.engine.calls.stop import Stop
from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.formats.intelligence_layer.core.task import Task
from assay.formats.intelligence_layer.core.tracer.tracer import Tracer
from assay.formats.intelligence_layer.evaluation.run.domain import FailedExampleRun
from assay.formats.intelligence_layer.evaluation.run.rows import answer_with
from assay.formats.intelligence_layer.types import from_json, to_json
from assay.interfaces import Answer, Context, Work
from assay.records import Item
from assay.store.keys import canonical, digest, response_key
from assay.text.plain import plain
from assay.usercode import identity

MakeTracer = Callable[[str, str], Tracer]
"""The tracer of an example, by its id and the key of its row."""


def parameters_of(task: Task[Any, Any]) -> dict[str, Any]:
    """What the task was made with, as far as that is plain data: the attributes that its constructor's arguments
    became. Other attributes, and containers that may be filled while it runs, are no parameters but its memory."""
    found: dict[str, Any] = {}
    for name in inspect.signature(type(task)).parameters:
        value = getattr(task, name, getattr(task, f"_{name}", None))
        if not isinstance(value, (list, dict, set)):
            try:
                found[name] = to_json(value)
            except (TypeError, ValueError, RecursionError):  # a client, an open file: not data
                continue
    return found


class ExampleTask:
    """`failure` is the first exception of a run that is to stop at it; that example has no row, so that it runs again
    when the run goes on."""

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
        self.facets: Mapping[str, Any] = {"model_id": self.name}
        self.identity: Mapping[str, Any] = {
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

    async def run(self, work: Work, context: Context) -> Answer:
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
            tracer = self._make_tracer(item.id, response_key(item.id, self.name, 0, work.fingerprint).hex())
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
