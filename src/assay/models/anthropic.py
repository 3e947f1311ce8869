"""Anthropic's own messages API, with the same rows, errors and tool calls as every other model."""

import os
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.models._chat_answer import decode_answer
from assay.models._chat_form import (
    FINISH,
    chat_call,
    function_in,
    media_of,
    name_and_description,
    params_without,
    refuse_audio,
    texts_of,
    token_counts,
    tool_calls,
    turns,
)
from assay.models._secrets import NO_SECRETS, Secrets
from assay.models._streams import join_messages
from assay.models.openai import Hosted, HttpModel, base_url
from assay.sdk import (
    Completion,
    JsonMapping,
    JsonObject,
    Message,
    Model,
    PermanentError,
    Request,
    model,
)
from assay.text.messages import content_text

DEFAULT_MAX_TOKENS = 1024
_HOST = "api.anthropic.com"
_NOT_SENT = {
    "num_samples",
    "think",
    "seed",
    "stream",
    "stop",
    "tools",
    "tool_choice",
    "max_tokens",
    "response_format",
    "reasoning_effort",
}
_encode = msgspec.json.encode
_FINISH = {**FINISH, "refusal": "content_filter"}
_MEDIA = {"image_url": "image", "file": "document"}
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


# ---- what is sent


def _content(message: Message) -> Any:
    content = message.get("content")
    if message.get("role") == "tool":
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
        return [{**result, "content": content_text(content)}]
    if message.get("tool_calls"):
        text = content_text(content)
        said = [{"type": "text", "text": text}] if text else []
        calls = [
            {"type": "tool_use", "id": id, "name": name, "input": arguments}
            for id, name, arguments in tool_calls(message)
        ]
        return [*said, *calls]
    return [_part(part) for part in content] if isinstance(content, list) else content


def _part(part: Any) -> Any:
    refuse_audio(part, "this API")
    kind = _MEDIA.get(str(part.get("type"))) if isinstance(part, dict) else None
    media = media_of(part) if kind else None
    if media is None:
        return part
    media_type, data = media
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": kind, "source": source if media_type else {"type": "url", "url": data}}


def tool(entry: Any) -> Any:
    """A tool as this API wants it; one that already has its shape stays."""
    function = function_in(entry)
    if function is None:
        return entry
    schema = function.get("parameters") or {"type": "object"}
    return {"name": None, **name_and_description(function), "input_schema": schema}


def tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return {"type": _CHOICES.get(choice, choice)}
    function = function_in(choice)
    return choice if function is None else {"type": "tool", "name": function.get("name")}


def output_config(params: JsonMapping) -> JsonObject:
    """The form of the answer and the effort for it, which the chat API has as parameters of their own."""
    form: Any = params.get("response_format")
    effort = params.get("reasoning_effort")
    config: JsonObject = dict(params.get("output_config") or {})
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = (form.get("json_schema") or {}).get("schema")
        config["format"] = {"type": "json_schema", "schema": schema}
    elif form is not None and form != {"type": "text"}:
        raise PermanentError(
            "this API knows a form of the answer by its schema only", fix="give a json_schema"
        )
    if effort is not None and effort != "none":
        config["effort"] = "low" if effort == "minimal" else effort
    return config


# ---- what comes back


class _MessageUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _MessageBody(msgspec.Struct):
    content: list[JsonObject]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: _MessageUsage | None = None


_decode = msgspec.json.Decoder(_MessageBody).decode


def read_answer(body: bytes, secrets: Secrets = NO_SECRETS) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    answer = decode_answer(_decode, body, secrets, "a message", lambda answer: answer.content)
    usage = answer.usage or _MessageUsage()
    cached = (usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    calls = [
        chat_call(block.get("id"), block.get("name"), block.get("input"))
        for block in answer.content
        if block.get("type") == "tool_use"
    ]
    return Completion(
        text=texts_of(answer.content, "text", "text"),
        finish_reason=_FINISH.get(answer.stop_reason or "", answer.stop_reason),
        response_id=answer.id,
        served_model=answer.model,
        reasoning=texts_of(answer.content, "thinking", "thinking") or None,
        tool_calls=calls or None,
        refused=answer.stop_reason == "refusal",
        **token_counts(usage.input_tokens, usage.output_tokens, *cached),
    )


# ---- the model


@model(params=Hosted)
def anthropic(
    name: str,
    *,
    endpoint: str = f"https://{_HOST}/v1",
    version: str = "2023-06-01",
    stream: bool = False,
    **settings: Any,
) -> Model:
    """A model behind the messages API; `version` is the API's, sent as the header `anthropic-version`. With `stream`
    answers come in pieces, and rows have their times."""
    base = base_url(endpoint, where=f"model {name!r}")
    return AnthropicModel(name, Hosted(**settings), base, version, stream=stream)


class AnthropicModel(HttpModel):
    """The API has no seed: samples differ by its own randomness."""

    owned = HttpModel.owned | {"system"}
    schemas = True
    key_fix = "set the variable ANTHROPIC_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
    public = "anthropic-version"
    read_answer = staticmethod(read_answer)
    join_events = staticmethod(join_messages)

    def __init__(
        self, name: str, settings: Hosted, base: str, version: str, *, stream: bool
    ) -> None:
        super().__init__(name, settings, type="anthropic")
        self.stream = stream or self._extra.get("stream") is True
        self.listing = f"{base}/models?limit=1000"
        key = self._key
        if not key and urlsplit(base).hostname == _HOST:
            key = os.environ.get("ANTHROPIC_API_KEY", "").strip()
        named = {"x-api-key": key} if key else {}
        self.reach(base, "/messages", {self.public: version, **named, **self._headers})

    def body(self, request: Request) -> bytes:
        """The JSON of a request; the parameters of the chat API are given their names here."""
        params = request.params
        sent = params_without(params, _NOT_SENT)
        limit = params.get("max_tokens")
        sent["max_tokens"] = limit if isinstance(limit, int) and limit > 0 else DEFAULT_MAX_TOKENS
        if (stop := params.get("stop")) is not None:
            sent["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        if tools := params.get("tools"):
            sent["tools"] = [tool(entry) for entry in tools]
        if (choice := params.get("tool_choice")) is not None:
            sent["tool_choice"] = tool_choice(choice)
        if self.stream:
            sent["stream"] = True
        if form := output_config(params):
            sent["output_config"] = form
        system, messages = turns(request.messages, _content)
        if system:
            sent["system"] = system
        return _encode({"model": self.model_name, **sent, **self._extra, "messages": messages})
