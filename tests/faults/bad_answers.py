"""What strange servers say, by the name of the model that is asked: for `--answers bad_answers.py:answer`."""

from typing import Any

PAGE = "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>"


def answer(request: dict[str, Any]) -> Any:
    fixed: dict[str, Any] = {
        "html": {"headers": {"content-type": "text/html"}, "body": PAGE},
        "empty": b"",
        "no-choices": {"choices": []},
        "null-content": {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
        "wrong-usage": {
            "choices": [{"message": {"content": "7"}}],
            "usage": {"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": None},
        },
        "list": [1, 2, 3],
        "not-utf8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
        "lone-surrogate": b'{"choices": [{"message": {"content": "\\ud800"}}]}',
        "deep": b'{"choices": [{"message": {"content": ' + b"[" * 10_000 + b"]" * 10_000 + b"}}]}",
        "deep-tool": b'{"choices": [{"message": {"tool_calls": '
        + b"[" * 300
        + b"]" * 300
        + b"}}]}",
        "overflow": b'{"choices": [{"message": {"content": 1e999}}]}',
        "latin-500": {"status": 500, "body": b'{"error": {"message": "caf\xe9"}}'},
        "deep-500": {"status": 500, "body": b'{"error":' * 10_000},
        "latin-422": {"status": 422, "body": b'{"error": {"message": "caf\xe9"}}'},
        "bad-request": failure(400, "this prompt is too long"),
        "unauthorised": failure(401, "no such key"),
        "not-found": failure(404, "no such model"),
        "failing": failure(500, "out of order"),
        "redirecting": {
            "status": 307,
            "headers": {"location": "http://127.0.0.1:9/v1"},
            "body": "",
        },
    }
    if request["model"] == "half-bad":
        return fixed["bad-request"] if "1 + 1" in str(request["messages"]) else None
    return fixed.get(request["model"])


def failure(status: int, message: str) -> dict[str, Any]:
    return {"status": status, "body": {"error": {"message": message, "code": None}}}
