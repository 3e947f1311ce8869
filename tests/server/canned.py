"""Answers that the tests give to `--answers canned.py:function`."""

from typing import Any


def answer(request: dict[str, Any]) -> Any:
    text = request["messages"][-1]["content"]
    if text == "raw":
        return b"<html>"
    if text == "http":
        return {
            "status": 418,
            "headers": {"X-Tea": "green", "Content-Type": "text/plain"},
            "body": "short and stout",
        }
    if text == "dict":
        return {"choices": []}
    if text == "boom":
        raise ValueError("boom")
    return None if text == "What is 2+2?" else f"said {text}"
