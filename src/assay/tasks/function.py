"""Any function as a task: an agent, a pipeline, a chain of calls.

A parameter called `item` gets the whole item, any other first parameter the item's data; `context` is passed if it
is asked for. A function that is not async runs in a thread. What it returns becomes the response: text as it is,
any other JSON value as `output`, with its JSON as the text.
"""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from assay.registry import check_params
from assay.sdk import (
    Answer,
    Completion,
    Context,
    Item,
    JsonMapping,
    UserError,
    Work,
    canonical,
    digest,
    task,
)
from assay.usercode import identity


class FunctionTask:
    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        params: JsonMapping,
        facets: JsonMapping,
        lane: str,
    ) -> None:
        positional = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "context"
        ]
        if not positional:
            raise UserError(
                f"the task {name!r} takes no item", fix="give it a parameter: def answer(item): ..."
            )
        self.function = function
        self.params = dict(params)
        self.name = self.model_name = name
        self.lane = lane
        self.facets = {"model_id": name, **facets}
        self.identity = {"task": name, "code": identity(function), "params": self.params}
        self._code = digest("task", canonical(self.identity))
        self._sees_item = positional[0] == "item"
        self._wants_context = "context" in inspect.signature(function).parameters
        self._is_async = inspect.iscoroutinefunction(function)

    def prepare(self, item: Item) -> Work:
        seen = (
            (item.data, item.ground_truth, item.metadata, item.extra)
            if self._sees_item
            else item.data
        )
        return Work(
            digest("function", self._code, canonical(seen)), item if self._sees_item else item.data
        )

    async def run(self, work: Work, context: Context) -> Answer:
        keywords = {**self.params, "context": context} if self._wants_context else self.params
        if self._is_async:
            result = await self.function(work.payload, **keywords)
        else:
            result = await context.thread(lambda: self.function(work.payload, **keywords))
        return answer_of(result)


def answer_of(result: Any) -> Answer:
    """Return what a user's function returned as an answer."""
    if isinstance(result, Answer):
        return result
    if isinstance(result, Completion):
        return Answer(
            text=result.text, completion=result, outcome="refused" if result.refused else "ok"
        )
    if isinstance(result, str):
        return Answer(text=result)
    output = msgspec.to_builtins(result, str_keys=True)
    return Answer(text=msgspec.json.encode(output).decode(), output=output)


@task(name="function")
def function(
    source: Callable[..., Any],
    *,
    name: str = "",
    params: JsonMapping | None = None,
    facets: JsonMapping | None = None,
    lane: str = "",
) -> FunctionTask:
    """A function as a task; `lane` names the model whose limits its runs share."""
    return FunctionTask(
        source,
        name or source.__name__,
        check_params(source, params or {}, reserved=["context"], given=1),
        facets or {},
        lane,
    )
