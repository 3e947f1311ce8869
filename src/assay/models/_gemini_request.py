"""What is sent to Gemini, and parts of it to Bedrock: the chat API's messages, parameters and tools in their terms."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.interfaces import Message
from assay.models._chat_form import arguments, described, function_in, given, inline, without_system
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
    sent = {_NAMES.get(key, key): value for key, value in given(params, _NOT_SENT).items()}
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
    system, rest = without_system(messages)
    contents: list[dict[str, Any]] = []
    called: dict[Any, Any] = {}
    for message in rest:
        role, content = message.get("role"), message.get("content")
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
    return system, contents


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


def _tool_result(message: Message, called: Mapping[Any, Any]) -> dict[str, Any]:
    name = message.get("name") or called.get(message.get("tool_call_id"))
    return {
        "functionResponse": {
            "name": name,
            "response": {"result": content_text(message.get("content"))},
        }
    }


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
        function = function_in(entry)
        if function is None:
            others.append(entry)
            continue
        parameters = function.get("parameters")
        schema = {"parametersJsonSchema": parameters} if parameters else {}
        functions.append({**described(function), **schema})
    return [*([{"functionDeclarations": functions}] if functions else []), *others]


def tool_choice(choice: Any) -> Any:
    function = function_in(choice)
    if function is not None:
        config = {"mode": "ANY", "allowedFunctionNames": [function.get("name")]}
    elif isinstance(choice, str):
        config = {"mode": _MODES.get(choice, choice)}
    else:
        return choice
    return {"functionCallingConfig": config}
