"""Items that bring their own requests: a benchmark's documents, with examples and choices in place.

A request is a mapping: `messages`, each with the `delimiter` that follows it in plain text; then either `params` of a
generation and how often it `repeats`, or the `continuations` whose likelihood after the messages is asked (`rolling`:
of whole texts). The row's text is the first answer; its `output` has the others, or the log-probabilities.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from assay.sdk import (
    Answer,
    Completion,
    Context,
    Item,
    JsonMapping,
    JsonObject,
    Likelihood,
    Likelihoods,
    Message,
    Model,
    Request,
    UserError,
    Work,
    as_object,
    canonical,
    digest,
    task,
)
from assay.tasks.likelihood import shown_value, with_usage
from assay.text.messages import messages_text

_encode = msgspec.json.encode
_MOST_STOPS = 4  # what chat servers accept


class RequestsTask:
    """`field` of an item's data has its requests; their parameters win over those of the config. Generations go to
    the model as a chat, or, where it completes text, as one text."""

    def __init__(
        self, field: str, model: Model, params: JsonMapping, timeout: float, name: str
    ) -> None:
        self.field = field
        self.model = model
        self.params = dict(params)
        self.timeout = timeout
        self.model_name = self.lane = model.name
        self.name = f"{model.name}/{name or field}"
        self.facets = {
            "model_id": model.name,
            "prompt_template": name or field,
            "sampling": self.params,
        }
        self.identity = {"requests": field, "model": dict(model.identity), "params": self.params}
        self._chats = model.identity.get("api") != "completions"
        self._settings = digest("settings", canonical((self.identity["model"], self.params)))

    def prepare(self, item: Item) -> Work:
        data = as_object(item.data)
        if error := data.get("error"):
            raise UserError(str(error))
        requests: Any = data.get(self.field)
        if not isinstance(requests, list) or not requests:
            raise UserError(f"the item has no requests in {self.field!r}")
        sent = [self._request_of(request) for request in requests]
        encoded = _encode([(request, repeats) for request, repeats in sent])
        messages = sent[0][0].messages
        shown = messages if len(messages) > 1 else None
        return Work(
            digest("requests", self._settings, encoded), sent, _shown_prompt(sent[0][0]), shown
        )

    def _request_of(self, source: JsonMapping) -> tuple[Request, int]:
        messages: list[Message] = source["messages"]
        if "continuations" in source:
            chat = bool(source.get("chat"))
            context = _chat(messages, True) if chat else _plain(messages)
            asked = Likelihood(
                context, timeout=self.timeout, continuations=source["continuations"], chat=chat
            )
            asked.rolling = bool(source.get("rolling"))
            return asked, 1
        params = {**self.params, **source.get("params", {})}
        if not self._chats:
            return Request(_plain(messages), params, timeout=self.timeout), source.get("repeats", 1)
        if isinstance(stop := params.get("stop"), list) and len(stop) > _MOST_STOPS:
            params["stop"] = stop[:_MOST_STOPS]
        chat = _chat(messages, source.get("multiturn", True))
        return Request(chat, params, timeout=self.timeout), source.get("repeats", 1)

    async def run(self, work: Work, context: Context) -> Answer:
        requests: list[tuple[Request, int]] = work.payload
        if isinstance(requests[0][0], Likelihood):
            return await self._likelihoods([request for request, _ in requests], context)
        (request, repeats) = requests[0]
        if repeats == 1:
            own = msgspec.structs.replace(
                request, sample_index=context.sample_index, seed=context.seed
            )
            return _answer([await context.send(self.model, own)])
        ask = partial(context.complete, request.messages, model=self.model, **request.params)
        # logged: a kill must not lose a row of many calls
        return _answer([await ask() for _ in range(repeats)])

    async def _likelihoods(self, requests: Sequence[Request], context: Context) -> Answer:
        choices: list[JsonObject] = []
        whole: Likelihoods | None = None
        for request in requests:
            assert isinstance(request, Likelihood)
            answer = await context.send(self.model, request)
            assert isinstance(answer, Likelihoods)
            texts = [""] * len(answer.values) if request.rolling else request.continuations
            choices += [shown_value(*pair) for pair in zip(texts, answer.values, strict=True)]
            whole = answer if whole is None else with_usage(whole, answer)
        best = max(choices, key=lambda choice: choice["logprob"])
        way = whole.way if whole is not None else ""
        return Answer(text=best["text"], output={"choices": choices, "way": way}, completion=whole)


def _answer(completions: Sequence[Completion]) -> Answer:
    first = completions[0]
    output = (
        {"answers": [completion.text for completion in completions]}
        if len(completions) > 1
        else None
    )
    outcome = "refused" if all(completion.refused for completion in completions) else "ok"
    return Answer(text=first.text, outcome=outcome, output=output, completion=first)


def _shown_prompt(request: Request) -> str:
    return (
        request.continuations[0]
        if isinstance(request, Likelihood) and request.rolling
        else messages_text(request.messages)
    )


def _plain(messages: Sequence[Message]) -> list[Message]:
    text = "".join(message["content"] + message.get("delimiter", "") for message in messages)
    return [{"role": "user", "content": text}]


def _chat(messages: Sequence[Message], multiturn: bool) -> list[Message]:
    """The messages as a chat, or all but the system's and a beginning of the answer as a single turn."""
    if not multiturn:
        first = 1 if messages and messages[0]["role"] == "system" else 0
        last = len(messages) - (messages[-1]["role"] == "assistant")
        turn = messages[first:last]
        text = "".join(message["content"] + message.get("delimiter", "") for message in turn[:-1])
        single = {"role": "user", "content": text + turn[-1]["content"]}
        messages = [*messages[:first], single, *messages[last:]]
    return [{"role": message["role"], "content": message["content"]} for message in messages]


@task(name="requests")
def requests(
    field: str,
    model: Model,
    *,
    params: JsonMapping | None = None,
    timeout: float = 300.0,
    name: str = "",
) -> RequestsTask:
    """The requests that an item brings, sent to a model."""
    return RequestsTask(field, model, params or {}, timeout, name)
