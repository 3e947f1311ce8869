"""What the chat API's requests and answers hold, for the APIs that call it otherwise."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from assay.errors import PermanentError
from assay.interfaces import Message
from assay.models._chat_answer import count
from assay.text.media import data_url
from assay.text.messages import content_text

FINISH = {  # what Anthropic's models stop for, also behind other APIs
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


def params_without(params: Mapping[str, Any], left_out: Collection[str]) -> dict[str, Any]:
    """Return the parameters that are sent under any name."""
    return {
        key: value for key, value in params.items() if key not in left_out and value is not None
    }


def without_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the system prompt, and the messages that remain."""
    system: list[str] = []
    rest: list[Message] = []
    for message in messages:
        if message.get("role") in ("system", "developer"):
            system.append(content_text(message.get("content")))
        else:
            rest.append(message)
    return "\n\n".join(filter(None, system)), rest


def function_in(entry: Any) -> dict[str, Any] | None:
    """Return the function of a tool or of a choice; None where it has another API's shape."""
    function: Any = entry.get("function") if isinstance(entry, dict) else None
    return function if isinstance(function, dict) else None


def name_and_description(function: Mapping[str, Any]) -> dict[str, Any]:
    return {key: function[key] for key in ("name", "description") if key in function}


def arguments(function: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments; what a model wrote wrongly must not end the conversation about it."""
    written = function.get("arguments") or "{}"
    try:
        decoded: Any = msgspec.json.decode(written)
    except (msgspec.DecodeError, TypeError):
        decoded = None
    return decoded if isinstance(decoded, dict) else {"arguments": written}


def inline(part: Mapping[str, Any]) -> tuple[str, str] | None:
    """Media type and base64 data of a part of the chat API: an image, audio or a file that is not an address."""
    image, audio, file = part.get("image_url"), part.get("input_audio"), part.get("file")
    if isinstance(audio, dict):
        return f"audio/{audio.get('format')}", str(audio.get("data"))
    url = image.get("url") if isinstance(image, dict) else image
    url = str(file.get("file_data")) if isinstance(file, dict) else url
    return data_url(url) if isinstance(url, str) and url.startswith("data:") else None


def refuse_audio(part: Any, where: str) -> None:
    if isinstance(part, dict) and part.get("type") in ("input_audio", "audio_url"):
        fix = "ask a model that hears, or leave such items out"
        raise PermanentError(f"{where} takes no audio", fix=fix)


# ---- what comes back


def mappings(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def texts_of(parts: list[dict[str, Any]], kind: str, key: str) -> str:
    """Return the text of all parts of a kind."""
    return "".join(str(part.get(key) or "") for part in parts if part.get("type") == kind)


def chat_call(id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Return a call of a tool; its arguments are those of the API, or their text."""
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments or {}).decode()
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def token_counts(asked: int | None, written: int | None, *cached: int | None) -> dict[str, Any]:
    """Return the numbers of tokens; those that come from a cache were asked, too."""
    prompt = None if asked is None else count(asked + sum(part or 0 for part in cached))
    answer = count(written)
    whole = None if prompt is None or answer is None else prompt + answer
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": whole}
