"""Anthropic's own messages API, with the same rows, errors and tool calls as every other model."""

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.errors import PermanentError
from assay.interfaces import Completion, Message, Model, Request
from assay.models._chat_answer import count, decoded
from assay.models._secrets import NO_SECRETS, Secrets
from assay.models._streams import join_messages
from assay.models.openai import Hosted, HttpModel, base_url
from assay.registry import model
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
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


# ---- what is sent


def split_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The system prompt, and the turns that remain; results of tools become one user's turn."""
    system: list[str] = []
    turns: list[Message] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role in ("system", "developer"):
            system.append(content_text(content))
        elif role == "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message.get("tool_call_id"),
                "content": content_text(content),
            }
            last = turns[-1]["content"] if turns and turns[-1]["role"] == "user" else None
            if isinstance(last, list) and last and last[-1].get("type") == "tool_result":
                last.append(result)
            else:
                turns.append({"role": "user", "content": [result]})
        elif message.get("tool_calls"):
            text = content_text(content)
            blocks = [{"type": "text", "text": text}] if text else []
            turns.append(
                {"role": "assistant", "content": [*blocks, *map(_tool_use, message["tool_calls"])]}
            )
        elif isinstance(content, list):
            turns.append({"role": role, "content": [_part(part) for part in content]})
        else:
            turns.append({"role": role, "content": content})
    return "\n\n".join(filter(None, system)), turns


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function: Any = call.get("function") or {}
    try:
        arguments: Any = msgspec.json.decode(function.get("arguments") or "{}")
    except msgspec.DecodeError:  # a model's own broken call must not end the conversation about it
        arguments = {"arguments": function.get("arguments")}
    return {
        "type": "tool_use",
        "id": call.get("id"),
        "name": function.get("name"),
        "input": arguments,
    }


def _part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_audio", "audio_url"):
        raise PermanentError(
            "this API takes no audio", fix="ask a model that hears, or leave such items out"
        )
    if kind not in ("image_url", "file"):
        return part
    found: Any = part.get(kind)
    url = (
        str(found.get("url" if kind == "image_url" else "file_data", ""))
        if isinstance(found, dict)
        else str(found)
    )
    block = "image" if kind == "image_url" else "document"
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma:
        media_type = head.removeprefix("data:").partition(";")[0]
        return {"type": block, "source": {"type": "base64", "media_type": media_type, "data": data}}
    return {"type": block, "source": {"type": "url", "url": url}}


def tool(given: Any) -> Any:
    """A tool as this API wants it; one that already has its shape stays."""
    function: Any = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict):
        return given
    described = {"description": function["description"]} if "description" in function else {}
    schema = function.get("parameters") or {"type": "object"}
    return {"name": function.get("name"), **described, "input_schema": schema}


def tool_choice(given: Any) -> Any:
    if isinstance(given, str):
        return {"type": _CHOICES.get(given, given)}
    if isinstance(given, dict) and isinstance(given.get("function"), dict):
        return {"type": "tool", "name": given["function"].get("name")}
    return given


def output_config(params: Mapping[str, Any]) -> dict[str, Any]:
    """The form of the answer and the effort for it, which the chat API has as parameters of their own."""
    given: Any = params.get("response_format")
    effort = params.get("reasoning_effort")
    config: dict[str, Any] = dict(params.get("output_config") or {})
    if isinstance(given, dict) and given.get("type") == "json_schema":
        config["format"] = {
            "type": "json_schema",
            "schema": (given.get("json_schema") or {}).get("schema"),
        }
    elif given is not None and given != {"type": "text"}:
        raise PermanentError(
            "this API knows a form of the answer by its schema only", fix="give a json_schema"
        )
    if effort is not None and effort != "none":
        config["effort"] = "low" if effort == "minimal" else effort
    return config


# ---- what comes back


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(msgspec.Struct):
    content: list[dict[str, Any]]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


_decode = msgspec.json.Decoder(_Answer).decode


def read_answer(body: bytes, secrets: Secrets = NO_SECRETS) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    answer = decoded(_decode, body, secrets, "a message", lambda answer: answer.content)
    usage = answer.usage or _Usage()
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    asked = None if usage.input_tokens is None else count(usage.input_tokens + cached)
    given = count(usage.output_tokens)
    return Completion(
        text=_joined(answer.content, "text"),
        finish_reason=_FINISH.get(answer.stop_reason or "", answer.stop_reason),
        response_id=answer.id,
        prompt_tokens=asked,
        completion_tokens=given,
        total_tokens=None if asked is None or given is None else asked + given,
        served_model=answer.model,
        reasoning=_joined(answer.content, "thinking") or None,
        tool_calls=[
            _tool_call(block) for block in answer.content if block.get("type") == "tool_use"
        ]
        or None,
        refused=answer.stop_reason == "refusal",
    )


def _joined(blocks: list[dict[str, Any]], kind: str) -> str:
    return "".join(str(block.get(kind) or "") for block in blocks if block.get("type") == kind)


def _tool_call(block: dict[str, Any]) -> dict[str, Any]:
    arguments = msgspec.json.encode(block.get("input") or {}).decode()
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


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
        sent = {
            key: value
            for key, value in params.items()
            if key not in _NOT_SENT and value is not None
        }
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
        system, turns = split_system(request.messages)
        if system:
            sent["system"] = system
        return _encode({"model": self.model_name, **sent, **self._extra, "messages": turns})
