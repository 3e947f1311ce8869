"""What is evaluated: a task turns an input into an output and says in its trace how it came to it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from assay.formats.intelligence_layer.core.tracer.tracer import TaskSpan, Tracer
from assay.formats.intelligence_layer.record import Record

Input = TypeVar("Input")
"""What a task is given: a pydantic model, a dataclass, a Struct or a plain JSON type."""
Output = TypeVar("Output")
"""What a task returns, of the same kinds of types."""

MAX_CONCURRENCY = 20


@dataclass(kw_only=True)
class Token(Record):
    token: str
    token_id: int


class Task(ABC, Generic[Input, Output]):
    """Implement `do_run`, with types on its `input` and its result; call `run`."""

    @abstractmethod
    def do_run(self, input: Input, task_span: TaskSpan) -> Output:
        """The work itself."""

    @final
    def run(self, input: Input, tracer: Tracer) -> Output:
        """Do the work in a task span that has the class's name, with input, output and errors recorded."""
        with tracer.task_span(type(self).__name__, input) as task_span:
            assert isinstance(task_span, TaskSpan)
            output = self.do_run(input, task_span)
            task_span.record_output(output)
            return output

    @final
    def run_concurrently(
        self, inputs: Iterable[Input], tracer: Tracer, concurrency_limit: int = MAX_CONCURRENCY
    ) -> Sequence[Output]:
        """The outputs in the order of the inputs, at most `concurrency_limit` (and never over 20) at a time."""
        limit = max(1, min(concurrency_limit, MAX_CONCURRENCY))
        with (
            tracer.span(f"Concurrent {type(self).__name__} tasks") as span,
            ThreadPoolExecutor(max_workers=limit) as executor,
        ):
            return list(executor.map(lambda each: self.run(each, span), inputs))
