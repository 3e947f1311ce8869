"""Messages of inspect_ai as those of OpenAI's chat API, which our rows have: calls of tools and media are rewritten,
what has no counterpart stays as it is. References to attachments are replaced where they stand."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from assay.engine.experiment.imports.values import Row, fields_of, list_of, rows_of
from assay.formats.inspect_ai.shapes import Part, is_filled
from assay.text.messages import content_text

_REFERENCE = "attachment://"
_MARK = _REFERENCE.encode()
_PLAIN = msgspec.json.Decoder().decode
_TEXTS = msgspec.json.Decoder(dict[str, str]).decode
Look = Callable[[str, str], str]


def lookup(attachments: Part) -> Look | None:
    """What finds the text of a reference. They are decoded for the first: most logs have references only in events."""
    if not is_filled(attachments):
        return None
    texts: dict[str, str] = {}

    def look(name: str, otherwise: str) -> str:
        if not texts:
            texts.update(_TEXTS(attachments))
        return texts.get(name, otherwise)

    return look


def resolved(value: Any, look: Look) -> Any:
    """The value with what its references refer to; an unknown reference stays."""
    if isinstance(value, str):
        return look(value[len(_REFERENCE) :], value) if value.startswith(_REFERENCE) else value
    if isinstance(value, list):
        return [resolved(inner, look) for inner in list_of(value)]
    if isinstance(value, dict):
        return {name: resolved(inner, look) for name, inner in fields_of(value).items()}
    return value


def settled(raw: Raw, look: Look | None) -> Any:
    """A part that is passed on: bytes as they are, unless they refer to attachments."""
    return resolved(_PLAIN(raw), look) if look is not None and _MARK in bytes(raw) else raw


def message_rows(messages: list[Row]) -> list[Row]:
    """Messages as our rows have them; those given are changed."""
    for row in messages:
        if type(content := row.get("content")) is list:
            row["content"] = [part_row(part) for part in content]
        if calls := row.get("tool_calls"):
            row["tool_calls"] = calls_row(calls)
    return messages


def part_row(part: Any) -> Any:
    """A part of a message: images and audio as OpenAI has them."""
    fields = fields_of(part)
    kind, media = fields.get("type"), fields.get(str(fields.get("type")))
    if kind == "image" and isinstance(media, str):
        rest = {name: value for name, value in fields.items() if name not in ("type", "image")}
        return {"type": "image_url", "image_url": {"url": media, **rest}}
    if kind == "audio" and isinstance(media, str):
        audio = {"data": media, "format": fields.get("format")}
        return {"type": "input_audio", "input_audio": audio}
    return part


def calls_row(calls: Any) -> list[Any]:
    """Calls of tools, with the name and the arguments in `function`; those given are changed."""
    for call in rows_of(calls):
        if isinstance(call.get("function"), str):
            call["function"] = {"name": call["function"], "arguments": call.pop("arguments", {})}
    return list_of(calls)


def thoughts(content: Any) -> str | None:
    """The reasoning in a message's content."""
    said = [
        str(part.get("reasoning") or part.get("summary") or "")
        for part in rows_of(content)
        if part.get("type") == "reasoning"
    ]
    return "\n".join(filter(None, said)) or None


def refuses(content: Any) -> bool:
    """Whether a part says that it is a refusal."""
    return any(part.get("refusal") is True for part in rows_of(content))


def input_text(input: Any) -> str:
    """The question as text: of messages, what the user said."""
    if isinstance(input, str):
        return input
    if not isinstance(input, list):
        return str(input)
    rows = rows_of(input)
    asked = [row for row in rows if row.get("role") == "user"] or rows
    return "\n\n".join(filter(None, (content_text(row.get("content")) for row in asked)))
