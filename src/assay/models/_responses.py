"""OpenAI's Responses API: what is sent and what comes back, in the chat API's terms.

Nothing is stored at the server: a run has its own rows. The API has no seed: samples differ by its own randomness.
"""

from typing import Any

import msgspec

from assay.models._chat_answer import count, decode_answer
from assay.models._chat_form import chat_call, mappings, params_without, texts_of
from assay.models._failures import server_message
from assay.models._secrets import NO_SECRETS, Secrets
from assay.sdk import (
    Completion,
    JsonMapping,
    JsonObject,
    Message,
    Request,
    TransientError,
    as_object,
)
from assay.text.messages import content_text

_NOT_SENT = {"num_samples", "think", "seed", "max_tokens", "max_completion_tokens", "logprobs"}
_encode = msgspec.json.encode


# ---- what is sent


def responses_body(model_name: str, request: Request, extra: JsonMapping) -> bytes:
    """The JSON of a request; the parameters of the chat API are given their names here."""
    params = request.params
    sent = params_without(params, _NOT_SENT)
    limit = params.get("max_completion_tokens") or params.get("max_tokens")
    if isinstance(limit, int) and limit > 0:
        sent["max_output_tokens"] = limit
    if (effort := sent.pop("reasoning_effort", None)) is not None:
        sent["reasoning"] = {"effort": effort}
    if (form := sent.pop("response_format", None)) is not None:
        sent["text"] = {"format": _flat(form, "json_schema")}
    if tools := sent.get("tools"):
        sent["tools"] = [_flat(tool, "function") for tool in tools]
    if "tool_choice" in sent:
        sent["tool_choice"] = _flat(sent["tool_choice"], "function")
    if params.get("logprobs"):
        sent["include"] = ["message.output_text.logprobs"]
    items = [item for message in request.messages for item in _items(message)]
    return _encode({"model": model_name, "store": False, **sent, **extra, "input": items})


def _flat(value: Any, kind: str) -> Any:
    """`{type: kind, kind: {…}}` without the inner mapping."""
    inner: Any = as_object(value).get(kind)
    return {"type": kind, **inner} if isinstance(inner, dict) else value


def _items(message: Message) -> list[JsonObject]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        output = {"type": "function_call_output", "call_id": message.get("tool_call_id")}
        return [{**output, "output": content_text(content)}]
    items: list[JsonObject] = []
    if isinstance(content, list):
        kind = "output_text" if role == "assistant" else "input_text"
        items.append({"role": role, "content": [_part(part, kind) for part in content]})
    elif content:
        items.append({"role": role, "content": content})
    for call in message.get("tool_calls") or ():
        function: Any = call.get("function") or {}
        called = {"name": function.get("name"), "arguments": function.get("arguments") or "{}"}
        items.append({"type": "function_call", "call_id": call.get("id"), **called})
    return items


def _part(part: Any, kind: str) -> Any:
    if isinstance(part, dict) and part.get("type") == "text":
        return {"type": kind, "text": part.get("text")}
    if isinstance(part, dict) and part.get("type") == "image_url":
        image: Any = part.get("image_url")
        return {
            "type": "input_image",
            "image_url": image.get("url") if isinstance(image, dict) else image,
        }
    if isinstance(part, dict) and isinstance(file := part.get("file"), dict):
        return {"type": "input_file", **file}
    return part


# ---- what comes back


class _ResponseUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class _Reason(msgspec.Struct):
    reason: str | None = None


class _ResponseBody(msgspec.Struct):
    output: list[JsonObject]
    id: str | None = None
    model: str | None = None
    status: str | None = None
    incomplete_details: _Reason | None = None
    usage: _ResponseUsage | None = None


_decode = msgspec.json.Decoder(_ResponseBody).decode
_FINISH = {"max_output_tokens": "length"}


def read_response(body: bytes, secrets: Secrets = NO_SECRETS) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    answer = decode_answer(_decode, body, secrets, "a response", lambda answer: answer.output)
    if answer.status in ("failed", "cancelled"):
        raise TransientError(f"the server gave up: {server_message(secrets.scrub(body))[1]}")
    messages = _parts(answer, "message", "content")
    refusal = texts_of(messages, "refusal", "refusal")
    calls = [_tool_call(item) for item in _of_kind(answer, "function_call")]
    finish = _finish(answer) or ("tool_calls" if calls else "stop")
    usage = answer.usage or _ResponseUsage()
    logprobs = [entry for part in messages for entry in mappings(part.get("logprobs"))]
    return Completion(
        text=texts_of(messages, "output_text", "text") or refusal,
        finish_reason=finish,
        response_id=answer.id,
        prompt_tokens=count(usage.input_tokens),
        completion_tokens=count(usage.output_tokens),
        total_tokens=count(usage.total_tokens),
        served_model=answer.model,
        reasoning=_thoughts(answer) or None,
        tool_calls=calls or None,
        refused=bool(refusal) or finish == "content_filter",
        logprobs=logprobs or None,
    )


def _finish(answer: _ResponseBody) -> str | None:
    why = answer.incomplete_details and answer.incomplete_details.reason
    return _FINISH.get(why or "", why)


def _thoughts(answer: _ResponseBody) -> str:
    """Return its own words where the server shows them, else their summary."""
    parts = _parts(answer, "reasoning", "content", "summary")
    return "\n\n".join(str(part["text"]) for part in parts if part.get("text"))


def _parts(answer: _ResponseBody, kind: str, *keys: str) -> list[JsonObject]:
    """Return the parts of all items of a kind, from the first of these fields that has any."""
    parts: list[JsonObject] = []
    for item in _of_kind(answer, kind):
        parts += next(filter(None, (mappings(item.get(key)) for key in keys)), [])
    return parts


def _of_kind(answer: _ResponseBody, kind: str) -> list[JsonObject]:
    return [item for item in answer.output if item.get("type") == kind]


def _tool_call(item: JsonObject) -> JsonObject:
    return chat_call(item.get("call_id"), item.get("name"), item.get("arguments"))
