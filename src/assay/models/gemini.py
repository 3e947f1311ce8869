"""Gemini's own API (generateContent), with the same rows, errors and tool calls as every other model."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from assay.models._chat_answer import count, decode_answer
from assay.models._chat_form import (
    chat_call,
    function_in,
    mappings,
    media_of,
    name_and_description,
    own_params,
    tool_calls,
    turns,
)
from assay.models._failures import server_message
from assay.models._secrets import NO_SECRETS, Secrets
from assay.models.openai import Hosted, HttpModel, base_url
from assay.sdk import (
    Completion,
    JsonMapping,
    JsonObject,
    Message,
    Model,
    Request,
    TransientError,
    as_object,
    model,
)
from assay.text.messages import content_text

_encode = msgspec.json.encode
_FILTERS = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE")
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_FILTERS, "content_filter")}

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


# ---- what is sent


def generation(params: JsonMapping, sample_index: int, model_name: str) -> JsonObject:
    """The `generationConfig` of the chat API's parameters."""
    sent = own_params(params, _NAMES, _NOT_SENT)
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


def contents(messages: Sequence[Message]) -> tuple[str, list[JsonObject]]:
    """Return the system prompt, and the turns that remain."""
    names: dict[Any, Any] = {}  # of functions, by their calls
    system, said = turns(messages, lambda message: _parts_of(message, names))
    roles = {"user": "user", "assistant": "model"}
    return system, [
        {"role": roles[turn["role"]], "parts": turn["content"] or [{"text": ""}]} for turn in said
    ]


def _parts_of(message: Message, names: dict[Any, Any]) -> list[Any]:
    content = message.get("content")
    if message.get("role") == "tool":
        name = message.get("name") or names.get(message.get("tool_call_id"))
        result = {"result": content_text(content)}
        return [{"functionResponse": {"name": name, "response": result}}]
    said = content if isinstance(content, list) else []
    if isinstance(content, str) and content:
        said = [{"type": "text", "text": content}]
    parts = [_part(part) for part in said]
    for call, (id, name, arguments) in zip(
        message.get("tool_calls") or (), tool_calls(message), strict=True
    ):
        names[id] = name
        parts.append({"functionCall": {"name": name, "args": arguments}, **_signature(call)})
    return parts


def _signature(call: JsonMapping) -> JsonObject:
    """Return that of the thoughts before a call, which newer models want back."""
    extra = as_object(as_object(call.get("extra_content")).get("google"))
    signature = extra.get("thought_signature")
    return {"thoughtSignature": signature} if signature else {}


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "text":
        return {"text": part.get("text")}
    media_type, data = media_of(part) or ("", "")
    if media_type:
        return {"inlineData": {"mimeType": media_type, "data": data}}
    return {"fileData": {"fileUri": data}} if data and "image_url" in part else part


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
        functions.append({**name_and_description(function), **schema})
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


# ---- what comes back


class _Content(msgspec.Struct):
    parts: list[JsonObject] = []


class _GeminiCandidate(msgspec.Struct):
    content: _Content | None = None
    finishReason: str | None = None
    logprobsResult: Any = None


class _GeminiUsage(msgspec.Struct):
    promptTokenCount: int | None = None
    candidatesTokenCount: int | None = None
    thoughtsTokenCount: int | None = None
    totalTokenCount: int | None = None


class _GeminiBody(msgspec.Struct):
    candidates: list[_GeminiCandidate] = []
    promptFeedback: JsonObject | None = None
    usageMetadata: _GeminiUsage | None = None
    modelVersion: str | None = None
    responseId: str | None = None


_decode = msgspec.json.Decoder(_GeminiBody).decode


def _candidate(answer: _GeminiBody) -> _GeminiCandidate | None:
    """Return the first one; a prompt that was blocked has one that a filter stopped."""
    if answer.candidates:
        return answer.candidates[0]
    blocked = (answer.promptFeedback or {}).get("blockReason")
    return _GeminiCandidate(finishReason="SAFETY") if blocked else None


def _parts(candidate: _GeminiCandidate | None) -> list[JsonObject]:
    content = candidate and candidate.content
    return content.parts if content else []


def _free(answer: _GeminiBody) -> list[Any]:
    chosen = _candidate(answer)
    return [_parts(chosen), chosen and chosen.logprobsResult]


def read_answer(body: bytes, secrets: Secrets = NO_SECRETS) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    answer = decode_answer(_decode, body, secrets, "Gemini's", _free)
    chosen = _candidate(answer)
    if chosen is None:
        message = server_message(secrets.scrub(body))[1]
        raise TransientError(f"the server's answer has no candidates: {message}")
    parts = _parts(chosen)
    usage = answer.usageMetadata or _GeminiUsage()
    called = (part for part in enumerate(parts) if isinstance(part[1].get("functionCall"), dict))
    calls = [_tool_call(part, number) for number, part in called]
    finish = _FINISH.get(chosen.finishReason or "", chosen.finishReason)
    if calls and finish == "stop":
        finish = "tool_calls"
    return Completion(
        text=_text_of(parts, thought=False),
        finish_reason=finish,
        response_id=answer.responseId,
        prompt_tokens=count(usage.promptTokenCount),
        completion_tokens=count(_tokens_of_answer(usage)),
        total_tokens=count(usage.totalTokenCount),
        served_model=answer.modelVersion,
        reasoning=_text_of(parts, thought=True) or None,
        tool_calls=calls or None,
        refused=finish == "content_filter",
        logprobs=_logprobs(chosen.logprobsResult),
    )


def _tokens_of_answer(usage: _GeminiUsage) -> int | None:
    counts = [usage.candidatesTokenCount, usage.thoughtsTokenCount]
    return None if counts == [None, None] else sum(number or 0 for number in counts)


def _text_of(parts: list[JsonObject], *, thought: bool) -> str:
    texts = (part for part in parts if "text" in part and bool(part.get("thought")) is thought)
    return "".join(str(part["text"]) for part in texts)


def _tool_call(part: JsonMapping, number: int) -> JsonObject:
    call: Any = part["functionCall"]
    made = chat_call(call.get("id") or f"call_{number}", call.get("name"), call.get("args"))
    if signature := part.get("thoughtSignature"):
        made["extra_content"] = {"google": {"thought_signature": signature}}
    return made


def _logprobs(found: Any) -> list[Any] | None:
    """Token by token, as the chat API gives them."""
    fields = as_object(found)
    tops = map(_tops, mappings(fields.get("topCandidates")))
    return [
        {**_token(token), "top_logprobs": next(tops, [])}
        for token in mappings(fields.get("chosenCandidates"))
    ] or None


def _tops(entry: JsonMapping) -> list[JsonObject]:
    return [_token(candidate) for candidate in mappings(entry.get("candidates"))]


def _token(entry: JsonMapping) -> JsonObject:
    return {"token": entry.get("token"), "logprob": entry.get("logProbability")}


# ---- the model


@model(params=Hosted)
def gemini(
    name: str,
    *,
    endpoint: str = "https://generativelanguage.googleapis.com/v1beta",
    **settings: Any,
) -> Model:
    """A model behind Gemini's API; `extra_body` may hold `safetySettings`, `generationConfig` and whatever it has."""
    base = base_url(endpoint, where=f"model {name!r}", version="/v1beta")
    return GeminiModel(name, Hosted(**settings), f"{base}/models", type="gemini")


class GeminiModel(HttpModel):
    """`base` is the address of the list of models: a model's own is below it."""

    owned = frozenset({"contents", "systemInstruction", "model"})
    schemas = True
    key_fix = (
        "set the variable GEMINI_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
    )
    prefix = "models/"
    read_answer = staticmethod(read_answer)

    def __init__(self, name: str, settings: Hosted, base: str, type: str) -> None:
        super().__init__(name, settings, type=type)
        self.listing = f"{base}?pageSize=1000"
        path = f"/{quote(self.model_name, safe='')}:generateContent"
        self.reach(base, path, self.with_key())

    def with_key(self) -> dict[str, str]:
        """Return the headers, with that of the key."""
        return {**({"x-goog-api-key": self._key} if self._key else {}), **self._headers}

    def body(self, request: Request) -> bytes:
        """The JSON of a request; the parameters of the chat API are given their names here."""
        system, messages = contents(request.messages)
        extra = dict(self._extra)
        config = generation(request.params, request.sample_index, self.model_name) | extra.pop(
            "generationConfig", {}
        )
        sent: JsonObject = {"generationConfig": config} if config else {}
        if offered := request.params.get("tools"):
            sent["tools"] = tools(offered)
        if (choice := request.params.get("tool_choice")) is not None:
            sent["toolConfig"] = tool_choice(choice)
        if system:
            sent["systemInstruction"] = {"parts": [{"text": system}]}
        return _encode({**sent, **extra, "contents": messages})
