"""Amazon Bedrock's Converse API, with the same rows, errors and tool calls as every other model."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from assay.models._chat_answer import decode_answer
from assay.models._chat_form import (
    FINISH,
    chat_call,
    function_in,
    media_of,
    name_and_description,
    own_params,
    params_without,
    refuse_audio,
    token_counts,
    tool_calls,
    turns,
)
from assay.models._secrets import NO_SECRETS, Secrets
from assay.models._sigv4 import Keys, signature_headers
from assay.models.openai import Hosted, HttpModel, base_url
from assay.sdk import (
    Completion,
    JsonMapping,
    JsonObject,
    Message,
    Model,
    PermanentError,
    Request,
    StoreError,
    UserError,
    model,
)
from assay.store.shared.aws_profile import FROM_PROGRAMS, aws_profile
from assay.text.messages import content_text

_SERVICE = "bedrock"
_NAMES = {
    "max_tokens": "maxTokens",
    "max_completion_tokens": "maxTokens",
    "top_p": "topP",
    "stop": "stopSequences",
}
_INFERENCE = {"maxTokens", "temperature", "topP", "stopSequences"}
_NOT_SENT = {"num_samples", "think", "seed", "tools", "tool_choice"}
_FINISH = {
    **FINISH,
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
_CHOICES = {"auto": "auto", "required": "any"}
_KEYS_FIX = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or AWS_BEARER_TOKEN_BEDROCK; those that a program "
    'makes: eval "$(aws configure export-credentials --format env)"'
)
_encode = msgspec.json.encode


# ---- what is sent


def _content(message: Message) -> list[Any]:
    content = message.get("content")
    if message.get("role") == "tool":
        text = {"text": content_text(content)}
        return [{"toolResult": {"toolUseId": message.get("tool_call_id"), "content": [text]}}]
    parts = content if isinstance(content, list) else [content or ""]
    said = [block for block in map(_block, parts) if block != {"text": ""}]
    calls = [
        {"toolUse": {"toolUseId": id, "name": name, "input": arguments}}
        for id, name, arguments in tool_calls(message)
    ]
    return [*said, *calls]


def _block(part: Any) -> JsonObject:
    if isinstance(part, str):
        return {"text": part}
    refuse_audio(part, "Bedrock")
    if not isinstance(part, dict) or part.get("type") not in ("text", "image_url", "file"):
        return part
    if part["type"] == "text":
        return {"text": part.get("text")}
    media_type, data = media_of(part) or ("", "")
    if not media_type:
        raise PermanentError("Bedrock takes no media by address", fix="give the file by its path")
    form, source = media_type.rpartition("/")[2], {"bytes": data}
    if part["type"] == "image_url":
        return {"image": {"format": form, "source": source}}
    return {"document": {"format": form, "name": "document", "source": source}}


def tools(offered: Sequence[Any], choice: Any) -> JsonObject:
    """The `toolConfig`; a tool that already has this API's shape stays."""
    specs: list[Any] = []
    for entry in offered:
        function = function_in(entry)
        if function is not None:
            schema = {"inputSchema": {"json": function.get("parameters") or {"type": "object"}}}
            entry = {"toolSpec": {**name_and_description(function), **schema}}
        specs.append(entry)
    if (chosen := function_in(choice)) is not None:
        choice = {"tool": {"name": chosen.get("name")}}
    elif isinstance(choice, str):
        choice = {_CHOICES.get(choice, choice): {}}
    return {"tools": specs, **({"toolChoice": choice} if choice is not None else {})}


# ---- what comes back


class _ConverseMessage(msgspec.Struct):
    content: list[JsonObject]


class _ConverseOutput(msgspec.Struct):
    message: _ConverseMessage


class _ConverseUsage(msgspec.Struct):
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheWriteInputTokens: int | None = None


class _ConverseBody(msgspec.Struct):
    output: _ConverseOutput
    stopReason: str | None = None
    usage: _ConverseUsage | None = None


_decode = msgspec.json.Decoder(_ConverseBody).decode


def read_answer(body: bytes, secrets: Secrets = NO_SECRETS) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    answer = decode_answer(
        _decode, body, secrets, "a message", lambda answer: answer.output.message.content
    )
    blocks = answer.output.message.content
    usage = answer.usage or _ConverseUsage()
    cached = usage.cacheReadInputTokens, usage.cacheWriteInputTokens
    finish = _FINISH.get(answer.stopReason or "", answer.stopReason)
    calls = [block["toolUse"] for block in blocks if isinstance(block.get("toolUse"), dict)]
    return Completion(
        text="".join(str(block["text"]) for block in blocks if "text" in block),
        finish_reason=finish,
        reasoning="".join(map(_thought, blocks)) or None,
        tool_calls=[
            chat_call(call.get("toolUseId"), call.get("name"), call.get("input")) for call in calls
        ]
        or None,
        refused=finish == "content_filter",
        **token_counts(usage.inputTokens, usage.outputTokens, *cached),
    )


def _thought(block: JsonMapping) -> str:
    content: Any = block.get("reasoningContent")
    text: Any = content.get("reasoningText") if isinstance(content, dict) else None
    return str(text.get("text") or "") if isinstance(text, dict) else ""


# ---- the model


@model(params=Hosted)
def bedrock(
    name: str,
    *,
    region: str | None = None,
    profile: str | None = None,
    endpoint: str | None = None,
    access_key_id: str | None = None,
    secret_access_key: str | None = None,
    session_token: str | None = None,
    **settings: Any,
) -> Model:
    """A model or inference profile of Bedrock; `api_key` is one of Bedrock's own, otherwise requests are signed with
    the access key of the environment, or of the `profile` in AWS's files."""
    where, hosted = f"model {name!r}", Hosted(**settings)
    keys = (
        Keys(access_key_id, secret_access_key, session_token)
        if access_key_id and secret_access_key
        else None
    )
    is_keyless = not hosted.api_key
    if (keys is None and is_keyless) or not region:
        keys, region = _of_profile(profile, keys, region, is_keyless=is_keyless, where=where)
    base = base_url(
        endpoint or f"https://bedrock-runtime.{region}.amazonaws.com", where=where, version=""
    )
    listing = base if endpoint else f"https://bedrock.{region}.amazonaws.com"
    signer = (keys, region) if keys is not None and is_keyless else None
    made = BedrockModel(name, hosted, base, signer)
    made.listing = f"{listing}/foundation-models?byOutputModality=TEXT"
    return made


def _of_profile(
    profile: str | None, keys: Keys | None, region: str | None, *, is_keyless: bool, where: str
) -> tuple[Keys | None, str]:
    """Return keys and region, with what is missing taken from AWS's files."""
    try:
        name, values = aws_profile(profile)
    except StoreError as error:
        raise UserError(error.what, where=f"{where}, {error.where}", fix=error.fix) from None
    if keys is None and "aws_access_key_id" in values and "aws_secret_access_key" in values:
        session = values.get("aws_session_token")
        keys = Keys(values["aws_access_key_id"], values["aws_secret_access_key"], session)
    if keys is None and is_keyless:
        what = "Bedrock needs credentials, and AWS_ACCESS_KEY_ID is not set"
        if FROM_PROGRAMS & values.keys():
            what = f"the keys of the profile {name!r} come from a program"
        raise UserError(what, where=where, fix=_KEYS_FIX)
    region = region or values.get("region")
    if not region:
        what = "Bedrock needs the region, and AWS_REGION is not set"
        raise UserError(what, where=where, fix="set AWS_REGION, or write `region:`")
    return keys, region


class BedrockModel(HttpModel):
    """The API has no seed: samples differ by its own randomness."""

    owned = HttpModel.owned | {"system"}
    key_fix = _KEYS_FIX
    names_key = False
    read_answer = staticmethod(read_answer)

    def __init__(
        self, name: str, settings: Hosted, base: str, signer: tuple[Keys, str] | None
    ) -> None:
        super().__init__(name, settings, type="bedrock")
        self._signer = signer
        keys = signer[0]._asdict() if signer else {}
        secrets = {f"{part} secret": value for part, value in keys.items() if value}
        bearer = {"authorization": f"Bearer {self._key}"} if self._key else {}
        path = f"/model/{quote(self.model_name, safe='')}/converse"
        self.reach(base, path, {**bearer, **self._headers}, secrets)

    def body(self, request: Request) -> bytes:
        """The JSON of a request; the parameters of the chat API are given their names here."""
        params = request.params
        named = own_params(params, _NAMES, _NOT_SENT)
        # users and assistants must take turns
        system, messages = turns(request.messages, _content, alternate=True)
        common = {key: value for key, value in named.items() if key in _INFERENCE}
        others = params_without(named, common)
        sent: JsonObject = {"inferenceConfig": common} if common else {}
        if others:
            sent["additionalModelRequestFields"] = others
        if (offered := params.get("tools")) and params.get("tool_choice") != "none":
            sent["toolConfig"] = tools(offered, params.get("tool_choice"))
        if system:
            sent["system"] = [{"text": system}]
        return _encode({**sent, **self._extra, "messages": messages})

    async def own_headers(self, method: str, url: str, body: bytes) -> dict[str, str] | None:
        if self._signer is None:
            return None
        keys, region = self._signer
        return signature_headers(method, url, body, keys, region=region, service=_SERVICE)
