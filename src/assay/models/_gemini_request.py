"""What is sent to Gemini, and parts of it to Bedrock: the chat API's messages, parameters and tools in their terms."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from assay.interfaces import Message
from assay.text.messages import content_text

_NAMES = {  # of the chat API's parameters in `generationConfig`; others are sent as they are called
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
}
_NOT_SENT = {"num_samples", "think", "tools", "tool_choice", "response_format", "reasoning_effort"}
# as Google translates efforts
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def generation(params: Mapping[str, Any], sample_index: int, model_name: str) -> dict[str, Any]:
    """The `generationConfig` of the chat API's parameters."""
    sent = {
        _NAMES.get(key, key): value
        for key, value in params.items()
        if key not in _NOT_SENT and value is not None
    }
    if isinstance(limit := sent.get("maxOutputTokens"), int | float) and limit <= 0:
        del sent["maxOutputTokens"]
    if isinstance(stop := sent.get("stopSequences"), str):
        sent["stopSequences"] = [stop]
    if isinstance(seed := sent.get("seed"), int):
        sent["seed"] = seed + sample_index
    form = params.get("response_format")
    if isinstance(form, dict) and form.get("type") in ("json_object", "json_schema"):
        sent["responseMimeType"] = "application/json"
        if isinstance(schema := form.get("json_schema"), dict):
            sent["responseJsonSchema"] = schema.get("schema")
    if (effort := params.get("reasoning_effort")) is not None:
        budget = model_name.startswith("gemini-2") and effort in _BUDGETS
        sent["thinkingConfig"] = (
            {"thinkingBudget": _BUDGETS[effort]} if budget else {"thinkingLevel": effort}
        )
    return sent


def turns(messages: Sequence[Message]) -> tuple[str, list[dict[str, Any]]]:
    """The system prompt, and the turns that remain; results of tools that follow one another are one turn."""
    system: list[str] = []
    contents: list[dict[str, Any]] = []
    called: dict[Any, Any] = {}
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role in ("system", "developer"):
            system.append(content_text(content))
            continue
        if role == "tool":
            parts = [_tool_result(message, called)]
            if (
                contents
                and contents[-1]["role"] == "user"
                and "functionResponse" in contents[-1]["parts"][-1]
            ):
                contents[-1]["parts"] += parts
                continue
        else:
            parts = [_part(part) for part in content] if isinstance(content, list) else []
            parts += [{"text": content}] if isinstance(content, str) and content else []
        for call in message.get("tool_calls") or ():
            function: Any = call.get("function") or {}
            called[call.get("id")] = function.get("name")
            parts.append(_function_call(call, function))
        contents.append(
            {"role": "model" if role == "assistant" else "user", "parts": parts or [{"text": ""}]}
        )
    return "\n\n".join(filter(None, system)), contents


def _function_call(call: Mapping[str, Any], function: Mapping[str, Any]) -> dict[str, Any]:
    """With the signature of the thoughts before it, which newer models want back."""
    part: dict[str, Any] = {
        "functionCall": {"name": function.get("name"), "args": arguments(function)}
    }
    extra: Any = call.get("extra_content")
    signature = (
        extra.get("google", {}).get("thought_signature") if isinstance(extra, dict) else None
    )
    return {**part, "thoughtSignature": signature} if signature else part


def arguments(function: Mapping[str, Any]) -> dict[str, Any]:
    """A call's arguments; what a model wrote wrongly must not end the conversation about it."""
    written = function.get("arguments") or "{}"
    try:
        decoded: Any = msgspec.json.decode(written)
    except (msgspec.DecodeError, TypeError):
        decoded = None
    return decoded if isinstance(decoded, dict) else {"arguments": written}


def _tool_result(message: Message, called: Mapping[Any, Any]) -> dict[str, Any]:
    name = message.get("name") or called.get(message.get("tool_call_id"))
    return {
        "functionResponse": {
            "name": name,
            "response": {"result": content_text(message.get("content"))},
        }
    }


def inline(part: Mapping[str, Any]) -> tuple[str, str] | None:
    """Media type and base64 data of a part of the chat API: an image, audio or a file that is not an address."""
    image, audio, file = part.get("image_url"), part.get("input_audio"), part.get("file")
    if isinstance(audio, dict):
        return f"audio/{audio.get('format')}", str(audio.get("data"))
    url = image.get("url") if isinstance(image, dict) else image
    url = str(file.get("file_data")) if isinstance(file, dict) else url
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    head, _, data = url.partition(",")
    return head.removeprefix("data:").partition(";")[0], data


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "text":
        return {"text": part.get("text")}
    if found := inline(part):
        return {"inlineData": {"mimeType": found[0], "data": found[1]}}
    if image := part.get("image_url"):
        return {"fileData": {"fileUri": image.get("url") if isinstance(image, dict) else image}}
    return part


def tools(offered: Sequence[Any]) -> list[Any]:
    """Functions become one declaration; what already has this API's shape stays."""
    functions: list[Any] = []
    others: list[Any] = []
    for entry in offered:
        function: Any = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict):
            others.append(entry)
            continue
        kept = {key: function[key] for key in ("name", "description") if key in function}
        schema = (
            {"parametersJsonSchema": function["parameters"]} if function.get("parameters") else {}
        )
        functions.append({**kept, **schema})
    return [*([{"functionDeclarations": functions}] if functions else []), *others]


def tool_choice(choice: Any) -> Any:
    if isinstance(choice, str):
        return {"functionCallingConfig": {"mode": _MODES.get(choice, choice)}}
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict):
        return {
            "functionCallingConfig": {
                "mode": "ANY",
                "allowedFunctionNames": [choice["function"].get("name")],
            }
        }
    return choice
