"""Between the messages of a Request, which have the shape of the chat API, and Anthropic's messages API."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from assay.errors import TransientError
from assay.interfaces import Completion, Message
from assay.models._failures import excerpt, scrub_body, server_message
from assay.text.messages import content_text

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
            turns.append({"role": "assistant", "content": [*blocks, *map(_tool_use, message["tool_calls"])]})
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
    return {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments}


def _part(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    found: Any = part.get("image_url")
    url = str(found.get("url", "")) if isinstance(found, dict) else str(found)
    head, comma, data = url.partition(",")
    if url.startswith("data:") and comma:
        media_type = head.removeprefix("data:").partition(";")[0]
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


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


def read_answer(body: bytes, secrets: Iterable[str] = ()) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    try:
        answer = _decode(body)
    except msgspec.ValidationError:
        message = server_message(scrub_body(body, secrets))[1]
        raise TransientError(f"the server's answer is not a message: {message}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = excerpt(scrub_body(body, secrets)) or "it is empty"
        raise TransientError(f"the server's answer is not JSON: {message}") from None
    usage = answer.usage or _Usage()
    cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
    asked = None if usage.input_tokens is None else usage.input_tokens + cached
    given = usage.output_tokens
    return Completion(
        text=_joined(answer.content, "text"),
        finish_reason=_FINISH.get(answer.stop_reason or "", answer.stop_reason),
        response_id=answer.id,
        prompt_tokens=asked,
        completion_tokens=given,
        total_tokens=None if asked is None or given is None else asked + given,
        served_model=answer.model,
        reasoning=_joined(answer.content, "thinking") or None,
        tool_calls=[_tool_call(block) for block in answer.content if block.get("type") == "tool_use"] or None,
        refused=answer.stop_reason == "refusal",
    )


def _joined(blocks: list[dict[str, Any]], kind: str) -> str:
    return "".join(str(block.get(kind) or "") for block in blocks if block.get("type") == kind)


def _tool_call(block: dict[str, Any]) -> dict[str, Any]:
    arguments = msgspec.json.encode(block.get("input") or {}).decode()
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}
