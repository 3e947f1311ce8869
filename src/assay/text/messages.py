"""The plain text of chat messages: for a completions server, the demo solver and a log line."""

from collections.abc import Sequence
from typing import Any

from assay.records import JsonMapping


def content_text(content: Any) -> str:
    """A message's content as text; of a list of parts, the text parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts: list[Any] = content
        return "\n".join(
            str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
        )
    return "" if content is None else str(content)


def messages_text(messages: Sequence[JsonMapping]) -> str:
    """All messages as one prompt, roles left out."""
    if len(messages) == 1:
        return content_text(messages[0].get("content"))
    return "\n\n".join(
        text for message in messages if (text := content_text(message.get("content")))
    )
