"""An answer as server-sent events, cut into pieces of about a token; and what may go wrong with them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from assay.demo.solver import count_tokens
from assay.records import JsonObject

_encode = msgspec.json.encode
GARBAGE = b"data: {garbage\n\n"


def events_of(body: bytes, *, usage: bool) -> list[bytes]:
    """The events that bring the same as this body; `usage`: the tokens of the chat API as well."""
    answer: Any = msgspec.json.decode(body)
    if answer.get("type") == "message":
        return [
            b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _encode(event))
            for event in _message(answer)
        ]
    chunks = [b"data: %b\n\n" % _encode(chunk) for chunk in _chunks(answer, usage)]
    return [*chunks, b"data: [DONE]\n\n"]


def spoil(events: list[bytes], fault: str) -> list[bytes]:
    """The same with something wrong in the middle."""
    half = events[: len(events) // 2]
    if fault == "garbage":
        return [*half, GARBAGE, *events[len(half) :]]
    if fault == "error_event":
        error = {"type": "overloaded_error", "message": "the mock server is set to fail"}
        return [*half, b"event: error\ndata: %b\n\n" % _encode({"type": "error", "error": error})]
    return half


def _pieces(text: str) -> list[str]:
    return [text[at * 4 : at * 4 + 4] for at in range(count_tokens(text))]


def _chunks(answer: JsonObject, usage: bool) -> Iterator[JsonObject]:
    chat = answer.get("object") != "text_completion"
    head = {key: value for key, value in answer.items() if key not in ("choices", "usage")}
    if chat:
        head["object"] = "chat.completion.chunk"
    for choice in answer.get("choices", []):
        index = choice.get("index", 0)
        for delta in (
            _deltas(choice["message"])
            if chat
            else ({"text": piece} for piece in _pieces(choice["text"]))
        ):
            yield {
                **head,
                "choices": [
                    {"index": index, **({"delta": delta} if chat else delta), "finish_reason": None}
                ],
            }
        end = {"delta": {}} if chat else {"text": ""}
        logprobs = choice.get("logprobs")
        finish = choice.get("finish_reason")
        yield {
            **head,
            "choices": [{"index": index, **end, "logprobs": logprobs, "finish_reason": finish}],
        }
    if usage and "usage" in answer:
        yield {**head, "choices": [], "usage": answer["usage"]}


def _deltas(message: JsonObject) -> Iterator[JsonObject]:
    yield {"role": "assistant", "content": ""}
    for key in ("reasoning_content", "reasoning", "content", "refusal"):
        yield from ({key: piece} for piece in _pieces(message.get(key) or ""))
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _message(answer: JsonObject) -> Iterator[JsonObject]:
    start = {
        **answer,
        "content": [],
        "stop_reason": None,
        "usage": {**answer["usage"], "output_tokens": 1},
    }
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(answer["content"]):
        kind = block["type"]
        empty, text = {**block, "input": {}}, _encode(block.get("input")).decode()
        if kind != "tool_use":
            empty, text = {**block, kind: ""}, block[kind]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        name, key = {"tool_use": ("input_json_delta", "partial_json")}.get(
            kind, (f"{kind}_delta", kind)
        )
        for piece in _pieces(text):
            yield {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": name, key: piece},
            }
        yield {"type": "content_block_stop", "index": index}
    stop = {key: answer.get(key) for key in ("stop_reason", "stop_sequence")}
    tokens = {"output_tokens": answer["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": stop, "usage": tokens}
    yield {"type": "message_stop"}
