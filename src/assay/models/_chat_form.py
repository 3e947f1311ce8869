"""What the chat API's requests and answers hold, for the APIs that call it otherwise."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from assay.models._chat_answer import count
from assay.sdk import JsonMapping, JsonObject, Message, PermanentError
from assay.text.media import data_url
from assay.text.messages import content_text

FINISH = {  # what Anthropic's models stop for, also behind other APIs
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
_LIMITS = {"maxTokens", "maxOutputTokens"}


def params_without(params: JsonMapping, left_out: Collection[str]) -> JsonObject:
    """Return the parameters that are sent under any name."""
    return {
        key: value for key, value in params.items() if key not in left_out and value is not None
    }


def own_params(
    params: JsonMapping, names: Mapping[str, str], left_out: Collection[str]
) -> JsonObject:
    """Return the parameters under an API's own names: texts to stop at are a list, and no limit is none."""
    sent = {names.get(key, key): value for key, value in params_without(params, left_out).items()}
    for limit in _LIMITS & sent.keys() & {*names.values()}:
        if isinstance(sent[limit], int | float) and sent[limit] <= 0:
            del sent[limit]
    if isinstance(stop := sent.get("stopSequences"), str):
        sent["stopSequences"] = [stop]
    return sent


def turns(
    messages: Sequence[Message], content_of: Callable[[Message], Any], *, alternate: bool = False
) -> tuple[str, list[Message]]:
    """Return the system prompt, and the turns that remain, with the content that an API wants. Results of tools that
    follow one another are one turn of the user; with `alternate`, so is all that one side says."""
    system: list[str] = []
    made: list[Message] = []
    before = ""
    for message in messages:
        role = message.get("role") or ""
        if role in ("system", "developer"):
            system.append(content_text(message.get("content")))
            continue
        content = content_of(message)
        speaker = "assistant" if role == "assistant" else "user"
        continues = made and made[-1]["role"] == speaker if alternate else role == before == "tool"
        if continues:
            made[-1]["content"] += content
        else:
            made.append({"role": speaker, "content": content})
        before = role
    return "\n\n".join(filter(None, system)), made


def tool_calls(message: Message) -> list[tuple[Any, Any, JsonObject]]:
    """Return identifier, name and arguments of each call; what a model wrote wrongly must not end the conversation."""
    calls: list[tuple[Any, Any, JsonObject]] = []
    for call in message.get("tool_calls") or ():
        function: Any = call.get("function") or {}
        written = function.get("arguments") or "{}"
        try:
            decoded: Any = msgspec.json.decode(written)
        except (msgspec.DecodeError, TypeError):
            decoded = None
        arguments = decoded if isinstance(decoded, dict) else {"arguments": written}
        calls.append((call.get("id"), function.get("name"), arguments))
    return calls


def function_in(entry: Any) -> JsonObject | None:
    """Return the function of a tool or of a choice; None where it has another API's shape."""
    function: Any = entry.get("function") if isinstance(entry, dict) else None
    return function if isinstance(function, dict) else None


def name_and_description(function: JsonMapping) -> JsonObject:
    return {key: function[key] for key in ("name", "description") if key in function}


def media_of(part: JsonMapping) -> tuple[str, str] | None:
    """Return media type and base64 data of an image, audio or a file of the chat API, or its address without a type;
    None for another part."""
    match part:
        case {"input_audio": dict(audio)}:
            return f"audio/{audio.get('format')}", str(audio.get("data"))
        case (
            {"image_url": {"url": str(url)}}
            | {"image_url": str(url)}
            | {"file": {"file_data": str(url)}}
        ):
            return data_url(url) if url.startswith("data:") else ("", url)
        case _:
            return None


def refuse_audio(part: Any, where: str) -> None:
    if isinstance(part, dict) and part.get("type") in ("input_audio", "audio_url"):
        fix = "ask a model that hears, or leave such items out"
        raise PermanentError(f"{where} takes no audio", fix=fix)


# ---- what comes back


def mappings(value: Any) -> list[JsonObject]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def texts_of(parts: list[JsonObject], kind: str, key: str) -> str:
    """Return the text of all parts of a kind."""
    return "".join(str(part.get(key) or "") for part in parts if part.get("type") == kind)


def chat_call(id: Any, name: Any, arguments: Any) -> JsonObject:
    """Return a call of a tool; its arguments are those of the API, or their text."""
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments or {}).decode()
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def token_counts(asked: int | None, written: int | None, *cached: int | None) -> JsonObject:
    """Return the numbers of tokens; those that come from a cache were asked, too."""
    prompt = None if asked is None else count(asked + sum(part or 0 for part in cached))
    answer = count(written)
    whole = None if prompt is None or answer is None else prompt + answer
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": whole}
