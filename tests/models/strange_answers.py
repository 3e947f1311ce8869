"""What real servers and proxies have been seen to answer, by name of the prompt that asks for it."""

import json
from typing import Any

KEY = "sk-secret-0123456789"


def choice(message: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"} | more]}


def status(code: int, message: str = "", **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": code, "headers": named, "body": {"error": {"message": message, "type": "x"}}}


ANSWERS: dict[str, Any] = {
    "html": b"<!DOCTYPE html>\n<html>\x1b[31m<body>Bad gateway</body>" + b"x" * 5000,
    "empty": b"",
    "array": b"[1, 2]",
    "number": b"7",
    "half": b'{"choices": [{"message"',
    "not-utf8": b'{"choices":[{"message":{"content":"\xff\xfe"}}]}',
    "no-choices": {"choices": []},
    "choices-null": {"choices": None},
    "choices-text": {"choices": ["hello"]},
    "error-with-200": {"error": {"message": f"upstream failed for {KEY}"}},
    "null-content": choice({"role": "assistant", "content": None}),
    "no-message": choice(),
    "parts": choice(
        {
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image"},
                {"type": "text", "text": "two"},
            ]
        }
    ),
    "number-content": choice({"content": 42}),
    "usage-strings": choice({"content": "ok"})
    | {"usage": {"prompt_tokens": "7", "completion_tokens": "x"}},
    "usage-negative": choice({"content": "ok"})
    | {"usage": {"prompt_tokens": -7, "total_tokens": 3}},
    "usage-floats": choice({"content": "ok"})
    | {"usage": {"prompt_tokens": 7.5, "completion_tokens": 2}},
    "usage-list": choice({"content": "ok"}) | {"usage": [1]},
    "id-number": choice({"content": "ok"}) | {"id": 12, "model": None},
    "refusal": choice({"content": None, "refusal": "I will not."}),
    "filtered": choice({"content": ""}, finish_reason="content_filter"),
    "tools": choice(
        {"content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}
    ),
    "reasoning": choice({"content": "4", "reasoning_content": "two and two"}),
    "reasoning-2": choice({"content": "4", "reasoning": "two and two"}),
    "429": status(429, "slow down", retry_after="7"),
    "429-ms": status(429, "slow down", retry_after="9", retry_after_ms="1500"),
    "429-date": status(429, "slow down", retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
    "429-nonsense": status(429, "slow down", retry_after="soon"),
    "429-quota": {
        "status": 429,
        "body": {"error": {"message": "pay", "code": "insufficient_quota"}},
    },
    "408": status(408),
    "500": status(500, "oops"),
    "502-html": {
        "status": 502,
        "headers": {"content-type": "text/html"},
        "body": "<html>\x07 bad </html>",
    },
    "503": status(503, "busy", retry_after="3"),
    "529": status(529, "overloaded"),
    "400": status(400, "context length exceeded"),
    "400-code": {
        "status": 400,
        "body": {"error": {"message": "no", "code": "context_length_exceeded"}},
    },
    "500-llama": status(500, "the request exceeds the available context size"),
    "400-long": status(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "400-credit": status(400, "Your credit balance is too low"),
    "400-model": status(400, "Invalid model name passed in model=m"),
    "400-filter": {
        "status": 400,
        "body": {"error": {"message": "filtered", "code": "content_filter"}},
    },
    "logprobs": choice(
        {"content": "4"},
        logprobs={"content": [{"token": "4", "logprob": -0.1, "top_logprobs": []}]},
    ),
    "logprobs-odd": choice({"content": "4"}, logprobs=7),
    "think-text": choice({"content": "<think>two and two</think>4"}),
    "422-detail": {"status": 422, "body": {"detail": "temperature must be a number"}},
    "401": status(401, f"Incorrect API key provided: {KEY}"),
    "403": status(403, "no"),
    "404": status(404, "no such model"),
    "301": status(301, location="https://elsewhere.example/v1"),
}


COMPLETION: dict[str, Any] = {
    "tokens": ["4", "."],
    "token_logprobs": [-0.1, -0.2],
    "top_logprobs": [{"4": -0.1, "5": -3.0}, None],
}


def answer(request: dict[str, Any]) -> Any:
    if "prompt" in request:
        return {"choices": [{"text": "4.", "logprobs": COMPLETION, "finish_reason": "stop"}]}
    text = request["messages"][0]["content"]
    return ANSWERS[text] if text in ANSWERS else json.dumps(request, sort_keys=True)
