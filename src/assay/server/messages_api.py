"""Anthropic's messages API for the mock server: its requests in the words of the chat API, and answers in its own."""

from hashlib import blake2b
from typing import Any

import msgspec

from assay.demo.solver import count_tokens
from assay.records import JsonObject
from assay.sdk import list_of
from assay.text.messages import messages_text

_encode = msgspec.json.encode


class MessagesRequest(msgspec.Struct):
    """The part of a request that the server reads; `max_tokens` is required, as by the real API."""

    model: str
    max_tokens: int
    messages: list[JsonObject]
    system: str | list[JsonObject] | None = None
    stream: bool | None = None
    tools: list[JsonObject] | None = None
    tool_choice: JsonObject | None = None


_decode = msgspec.json.Decoder(MessagesRequest).decode


def as_chat(body: bytes) -> JsonObject:
    """The fields of the chat request that asks the same."""
    request = _decode(body)
    if any(message.get("role") not in ("user", "assistant") for message in request.messages):
        raise ValueError(
            "a message's role is 'user' or 'assistant'; the system prompt is apart, in 'system'"
        )
    system = [{"role": "system", "content": request.system}] if request.system else []
    tools = [
        {
            "type": "function",
            "function": {"name": tool.get("name"), "parameters": tool.get("input_schema")},
        }
        for tool in request.tools or []
    ]
    return {
        "model": request.model,
        "messages": [*system, *map(_turn, request.messages)] if request.messages else None,
        "stream": request.stream,
        "tools": tools or None,
        "tool_choice": _choice(request.tool_choice),
    }


def _turn(message: JsonObject) -> JsonObject:
    """A user's turn that brings a tool's result is the chat API's role `tool`."""
    content: Any = message.get("content")
    blocks = list_of(content)
    brings = any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)
    return {**message, "role": "tool"} if brings else message


def _choice(given: JsonObject | None) -> Any:
    if given is None:
        return None
    if given.get("type") == "tool":
        return {"type": "function", "function": {"name": given.get("name")}}
    return {"any": "required"}.get(str(given.get("type")), given.get("type"))


def answer_body(
    model: str, messages: list[Any], text: str, calls: list[Any] | None, request: bytes
) -> bytes:
    """The JSON of one answer. Its id comes from the request, so equal runs write equal rows."""
    content: list[JsonObject] = [{"type": "text", "text": text}]
    if calls:
        content = [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": msgspec.json.decode(call["function"]["arguments"]),
            }
            for call in calls
        ]
    return _encode(
        {
            "id": f"msg_{blake2b(request, digest_size=12).hexdigest()}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": count_tokens(messages_text(messages)),
                "output_tokens": count_tokens(text),
            },
        }
    )
