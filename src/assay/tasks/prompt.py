"""The plain task: render a prompt, ask a model. Its response row is the record of its one call."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from assay.interfaces import Answer, Context, Message, Model, Prompt, Request, Work
from assay.records import Item
from assay.registry import task
from assay.store.keys import canonical, digest
from assay.text.messages import messages_text

_encode = msgspec.json.encode


class PromptTask:
    """One prompt and one model under one set of sampling parameters."""

    def __init__(self, source: Prompt, model: Model, params: Mapping[str, Any], samples: int, timeout: float) -> None:
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
        self.identity = {"prompt": source.text, "model": dict(model.identity), "params": self.params}
        self._sent: Callable[[list[Message]], list[Message]] | None = getattr(source, "sent", None)
        self._settings = digest("settings", canonical((self.identity["model"], self.params)))

    def prepare(self, item: Item) -> Work:
        messages = self.prompt.render(item)
        single = len(messages) == 1 and isinstance(messages[0]["content"], str)
        fingerprint = digest("prompt", self._settings, _encode(messages))
        return Work(fingerprint, messages, messages_text(messages), None if single else messages)

    async def run(self, work: Work, context: Context) -> Answer:
        messages = work.payload if self._sent is None else self._sent(work.payload)
        request = Request(messages, self.params, context.sample_index, context.seed, self.timeout)
        completion = await context.send(self.model, request)
        outcome = "refused" if completion.refused else "ok"
        return Answer(text=completion.text, outcome=outcome, completion=completion)


@task(name="prompt")
def prompt(
    source: Prompt,
    model: Model,
    *,
    params: Mapping[str, Any] | None = None,
    samples: int = 1,
    timeout: float = 300.0,
) -> PromptTask:
    """A prompt and a model as a task."""
    return PromptTask(source, model, params or {}, samples, timeout)
