"""Reads the answer of an OpenAI-compatible server: fast where it is as promised, tolerant where it is not.

The typed decoder handles the answers that keep to the API. Anything else is decoded freely, and what is sane
is picked out of it; only an answer without a choice is an error, and worth another try.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from assay.models._failures import UNREADABLE, excerpt, server_message
from assay.models._secrets import NO_SECRETS, Secrets
from assay.sdk import Completion, JsonObject, TransientError, as_object
from assay.text.messages import content_text

S = TypeVar("S", bound=msgspec.Struct)


class _ChatMessage(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None


class _Choice(msgspec.Struct):
    message: _ChatMessage | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: Any = None


class ChatUsage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class _ChatBody(msgspec.Struct):
    choices: list[_Choice]
    id: str | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    usage: ChatUsage | None = None


_decode = msgspec.json.Decoder(_ChatBody).decode
_DEEPEST = 100
_PLAIN = (str, int, float)
_LARGEST = 2**53  # of a count
_NO_USAGE = ChatUsage()
_NO_MESSAGE = _ChatMessage()


def read_answer(body: bytes, secrets: Secrets = NO_SECRETS) -> Completion:
    """The completion in the body of a 2xx answer. Raises TransientError, which holds no secret, if there is none."""
    try:
        answer = _answer(body)
    except UNREADABLE:
        raise _not_json(body, secrets) from None
    if not answer.choices:
        raise TransientError(
            f"the server's answer has no choices: {server_message(secrets.scrub(body))[1]}"
        )
    choice = answer.choices[0]
    message = choice.message or _NO_MESSAGE
    usage = answer.usage or _NO_USAGE
    text = choice.text if message.content is None else message.content
    return Completion(
        text=text or (message.refusal or ""),
        finish_reason=choice.finish_reason,
        response_id=answer.id,
        prompt_tokens=count(usage.prompt_tokens),
        completion_tokens=count(usage.completion_tokens),
        total_tokens=count(usage.total_tokens),
        served_model=answer.model,
        served_fingerprint=answer.system_fingerprint,
        reasoning=message.reasoning_content or message.reasoning or None,
        tool_calls=message.tool_calls or None,
        refused=bool(message.refusal) or choice.finish_reason == "content_filter",
        logprobs=_logprobs(choice.logprobs),
    )


def _answer(body: bytes) -> _ChatBody:
    try:
        answer = _decode(body)
    except msgspec.ValidationError:
        answer = _pick(body)
    for choice in answer.choices[:1]:
        tool_calls = choice.message.tool_calls if choice.message else None
        if tool_calls or choice.logprobs:
            check_depth([tool_calls, choice.logprobs])
    return answer


def decode_answer(
    decode: Callable[[bytes], S],
    body: bytes,
    secrets: Secrets,
    noun: str,
    inner: Callable[[S], list[Any]],
) -> S:
    """The body of a 2xx answer of another API, whose free parts are `inner`. Raises TransientError, which holds no
    secret, if it is not what the `noun` says."""
    try:
        answer = decode(body)
        check_depth(inner(answer))
    except msgspec.ValidationError:
        message = server_message(secrets.scrub(body))[1]
        raise TransientError(f"the server's answer is not {noun}: {message}") from None
    except UNREADABLE:
        raise _not_json(body, secrets) from None
    return answer


def _not_json(body: bytes, secrets: Secrets) -> TransientError:
    message = excerpt(secrets.scrub(body)) or "it is empty"
    return TransientError(f"the server's answer is not JSON: {message}")


def check_depth(values: list[Any]) -> None:
    """RecursionError for what no later reader of the row could be sure to read."""
    for _ in range(_DEEPEST):
        inner = (value.values() if isinstance(value, dict) else value for value in values)
        values = [
            part for parts in inner if parts and not isinstance(parts, _PLAIN) for part in parts
        ]
        if not values:
            return
    raise RecursionError


def _logprobs(given: Any) -> list[Any] | None:
    """Token by token, as the chat API gives them; the lists of the completions API are put into that shape."""
    match given:
        case {"content": list(content)}:
            return content or None
        case {"tokens": list(tokens), "token_logprobs": list(values), **others}:
            tops = others.get("top_logprobs")
            tops = map(as_object, tops if isinstance(tops, list) else [None] * len(tokens))
            return [
                {"token": token, "logprob": value, "top_logprobs": _entries(top)}
                for token, value, top in zip(tokens, values, tops, strict=False)
            ] or None
        case _:
            return None


def _entries(top: JsonObject) -> list[Any]:
    return [{"token": token, "logprob": value} for token, value in top.items()]


def count(value: int | None) -> int | None:
    """A number of tokens, if it can be one."""
    return value if value is not None and 0 <= value < _LARGEST else None


def total(counts: Sequence[int | None]) -> int | None:
    """The sum; unknown if a part of it is."""
    numbers = [number for number in counts if number is not None]
    return sum(numbers) if len(numbers) == len(counts) else None


def _pick(body: bytes) -> _ChatBody:
    """Whatever is usable in JSON that does not keep to the API: fields of another type are left out."""
    answer = as_object(msgspec.json.decode(body))
    choices: Any = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return _ChatBody([])
    message = as_object(choice.get("message"))
    if message.get("content") is not None:
        message["content"] = content_text(message["content"])
    sane = {**choice, "message": _sane(_ChatMessage, message)}
    whole = {
        **answer,
        "choices": [_sane(_Choice, sane)],
        "usage": _sane(ChatUsage, as_object(answer.get("usage"))),
    }
    return _sane(_ChatBody, whole)


def _sane(struct: type[S], values: JsonObject) -> S:
    sane: JsonObject = {}
    for field in msgspec.structs.fields(struct):
        with suppress(msgspec.ValidationError):
            sane[field.name] = msgspec.convert(values.get(field.name), field.type)
    return struct(**sane)
