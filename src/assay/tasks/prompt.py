"""The plain task: render a prompt, ask a model. Its response row is the record of its last call, which is its only one
unless the model answers several turns of a conversation one after another; the others are in the log of calls."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from assay.sdk import (
    Answer,
    Completion,
    Context,
    Item,
    JsonMapping,
    Message,
    Model,
    PermanentError,
    Prompt,
    Request,
    Work,
    canonical,
    digest,
    task,
)
from assay.text.conversation import Asked, open_turns
from assay.text.media import loaded, restored, separated
from assay.text.messages import messages_text

_encode = msgspec.json.encode


class PromptTask:
    """One prompt and one model under one set of sampling parameters."""

    def __init__(
        self, source: Prompt, model: Model, params: JsonMapping, samples: int, timeout: float
    ) -> None:
        self.prompt = source
        self.model = model
        self.params = dict(params)
        self.timeout = timeout
        self.model_name = self.lane = model.name
        template = source.name or digest("template", source.text.encode()).hex()[:12]
        self.name = f"{model.name}/{template}"
        sampling = {**self.params, "num_samples": samples}
        self.facets = {
            "model_id": model.name,
            "prompt_template": source.name or source.text,
            "sampling": sampling,
        }
        self.identity = {
            "prompt": source.text,
            "model": dict(model.identity),
            "params": self.params,
        }
        self._ask: Callable[[Item], Asked] | None = getattr(source, "ask", None)
        self._files: Mapping[str, Path] = getattr(source, "files", {})
        self._settings = digest("settings", canonical((self.identity["model"], self.params)))

    def prepare(self, item: Item) -> Work:
        payload: Any
        if self._ask is None:
            payload = messages = self.prompt.render(item)
            fingerprint = digest("prompt", self._settings, _encode(messages))
        else:
            asked = self._ask(item)
            own = [canonical([asked.params, asked.each])] if asked.params or asked.each else []
            fingerprint = digest("prompt", self._settings, _encode(asked.messages), *own)
            payload = messages = [_without_nulls(message) for message in asked.messages]
            if own:
                payload = Asked(messages, {**self.params, **asked.params}, asked.each)
        single = len(messages) == 1 and isinstance(messages[0].get("content"), str)
        return Work(
            fingerprint,
            payload,
            messages_text(messages),
            None if single else separated(messages)[0],
        )

    async def run(self, work: Work, context: Context) -> Answer:
        messages: list[Message] = work.payload
        params, each, model = self.params, False, self.model
        if isinstance(work.payload, Asked):
            messages, params, each = work.payload.messages, work.payload.params, work.payload.each
        if work.messages is not None and work.messages is not messages:
            messages, data = separated(messages)
            data |= loaded(messages, self._files)
            model = Sending(model, data) if data else model
        answered = None
        if each:
            messages = answered = await self._answer_turns(messages, model, params, context)
        request = Request(messages, params, context.sample_index, context.seed, self.timeout)
        completion = await context.send(model, request)
        outcome = "refused" if completion.refused else "ok"
        return Answer(
            text=completion.text, outcome=outcome, completion=completion, messages=answered
        )

    async def _answer_turns(
        self, messages: list[Message], model: Model, params: JsonMapping, context: Context
    ) -> list[Message]:
        """The conversation up to its last open turn, with an answer to each turn before."""
        *before, last = open_turns(messages)
        answered: list[Message] = []
        for number, piece in enumerate(before, 1):
            answered = [*answered, *piece]
            completion = await context.complete(
                answered, model=model, step=f"turn {number}", **params
            )
            if completion.tool_calls:
                what = f"turn {number} was answered with a tool call, which nobody answers"
                raise PermanentError(
                    what, fix="write the conversation as a function task, or as a graph"
                )
            answered = [*answered, {"role": "assistant", "content": completion.text}]
        return [*answered, *last]


def _without_nulls(message: Message) -> Message:
    """Rows of a table have a null for each key that another message has, which servers refuse."""
    if None not in message.values():
        return message
    return {key: value for key, value in message.items() if value is not None or key == "content"}


class Sending:
    """A model that gets the bytes of the files that its messages refer to; rows, logs, budgets, and models that look
    answers up `by_reference`, see references."""

    def __init__(self, model: Model, data: Mapping[str, str]) -> None:
        self.name = model.name
        self.identity = model.identity
        self._model = model
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Completion:
        if not getattr(self._model, "by_reference", False):
            messages = restored(request.messages, self._data)
            request = msgspec.structs.replace(request, messages=messages)
        return await self._model.complete(request)

    async def close(self) -> None:
        await self._model.close()


@task(name="prompt")
def prompt(
    source: Prompt,
    model: Model,
    *,
    params: JsonMapping | None = None,
    samples: int = 1,
    timeout: float = 300.0,
) -> PromptTask:
    """A prompt and a model as a task."""
    return PromptTask(source, model, params or {}, samples, timeout)
