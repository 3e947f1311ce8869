"""What the mock server says to the three tasks: fixed answers, some of them wrong, so that reports are worth reading.

assay mock-server --port 8000 --answers answers.py:answer
"""

import json

TOPICS = {
    "88 keys": "Music",
    "violin": "music",
    "Norway": "Politics",
    "Portugal": "Other",
    "Tetris": "Video games",
}
ANSWERS = {
    "88 keys": "The piano",
    "violin": "four",
    "Norway": "Oslo",
    "Portugal": "two",
    "Tetris": "the O-piece",
}
STEPS = {  # by the user's text: the tool calls of the first attempt and of those after it
    "Open the first article.": (
        ("click_tool", {"x": 120, "y": 210}),
        ("click_tool", {"x": 120, "y": 210}),
    ),
    "Search for tea.": (("click_tool", {"x": 500, "y": 60}), ("type_tool", {"text": "green tea"})),
    "See more results.": (
        ("scroll_tool", {"direction": "up"}),
        ("scroll_tool", {"direction": "up"}),
    ),
}


def answer(request: dict) -> object:
    """The text or the tool call for a request; None where this is not one of the tasks."""
    said = "\n".join(text_of(message["content"]) for message in request["messages"])
    if "tools" in request:
        first, later = STEPS[
            max(STEPS, key=said.rfind)
        ]  # the latest of them: earlier steps are in the history
        return called(*(later if "Attempt" in said else first))
    known, key = (TOPICS, "predicted_topic") if "topic" in said else (ANSWERS, "predicted_answer")
    found = next((value for words, value in known.items() if words in said), None)
    return None if found is None else json.dumps({key: found})


def text_of(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return str(content or "")


def called(name: str, arguments: dict) -> dict:
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    return {
        "id": "mock",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
