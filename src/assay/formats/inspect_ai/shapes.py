"""The parts of a log as inspect_ai 0.3.285 writes them, as far as they are looked into: what is only passed on stays
bytes. The decoder refuses unknown fields where they are noticed; the sample is then read without them."""

from operator import attrgetter
from typing import Any, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from assay.foreign import json_value
from assay.sdk import JsonObject, as_object

VERSION = 2
Part = Raw | UnsetType
Text = str | None


class ModelUsage(msgspec.Struct, gc=False):
    """What a model read and wrote."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_cache_write: int | None = None
    input_tokens_cache_read: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None


class Message(msgspec.Struct, gc=False, omit_defaults=True):
    """A message of a conversation; `content` is a text or parts."""

    role: str = ""
    content: Any = ""
    id: Text = None
    source: Text = None
    metadata: JsonObject | None = None
    model: Text = None
    tool_calls: list[JsonObject] | None = None
    tool_call_id: Any = None
    function: Text = None
    error: Any = None
    internal: Any = None


class OutputChoice(msgspec.Struct, gc=False):
    """One of the answers of a call."""

    message: Message
    stop_reason: str = "unknown"
    stop_details: JsonObject | None = None
    logprobs: JsonObject | None = None
    prompt_logprobs: Part = UNSET


class ModelOutput(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What the model said last."""

    model: str = ""
    choices: list[OutputChoice] = []
    completion: Text = ""
    usage: ModelUsage | None = None
    input_context_tokens: Part = UNSET
    fallback: Part = UNSET
    time: float | None = None
    metadata: Part = UNSET
    error: Text = None
    response_id: Text = None


class GivenScore(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What a scorer gave."""

    value: Any = None
    answer: Any = None
    explanation: Any = None
    reason: Text = None
    metadata: JsonObject | None = None
    history: list[Any] = []


class Failure(msgspec.Struct, gc=False):
    """Why a sample, or a run, stopped."""

    message: str = ""
    traceback: str = ""
    traceback_ansi: str = ""


class Pools(msgspec.Struct, gc=False):
    """Messages that events refer to."""

    messages: list[Raw] = []
    calls: list[Raw] = []


class LogSample(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One answer to one item. All that follows `events_data` is kept as it is."""

    id: int | str
    epoch: int = 1
    input: Any = ""
    choices: list[Any] | None = None
    target: Any = None
    messages: list[JsonObject] = []
    output: ModelOutput = msgspec.field(default_factory=ModelOutput)
    scores: dict[str, GivenScore] | None = None
    score: GivenScore | None = None
    metadata: JsonObject = {}
    events: Part = UNSET
    model_usage: dict[str, ModelUsage] = {}
    started_at: Text = None
    completed_at: Text = None
    total_time: float | None = None
    working_time: float | None = None
    error: Failure | None = None
    attachments: Part = UNSET
    events_data: Part = UNSET
    description: Part = UNSET
    sandbox: Part = UNSET
    files: Part = UNSET
    setup: Part = UNSET
    store: Part = UNSET
    timelines: Part = UNSET
    role_usage: Part = UNSET
    model_fallbacks: Part = UNSET
    uuid: Part = UNSET
    invalidation: Part = UNSET
    error_retries: Part = UNSET
    limit: Part = UNSET
    turn_count: int | None = None
    token_limit: Part = UNSET
    token_limit_type: Part = UNSET
    token_limit_usage: Part = UNSET
    message_limit: Part = UNSET
    time_limit: Part = UNSET


_EMPTY = {b"null", b"{}", b"[]", b'""'}
_LONGEST = 4  # bytes of these
_fields: Any = msgspec.json.Decoder(dict[str, Raw]).decode


def is_filled(part: Part) -> TypeGuard[Raw]:
    """Return whether there is something in a part that is kept as bytes."""
    return part is not UNSET and (memoryview(part).nbytes > _LONGEST or bytes(part) not in _EMPTY)


class Decoder:
    """Decodes samples, and gives their unknown fields by their places."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(LogSample).decode

    def __call__(self, data: bytes | Raw) -> tuple[LogSample, JsonObject]:
        """A sample and its unknown fields; ValueError if it is not a sample."""
        try:
            return self._sample_of(data)
        except msgspec.ValidationError:
            raise
        except (ValueError, RecursionError):
            return self._sample_of(finite(bytes(data)))

    def _sample_of(self, data: bytes | Raw) -> tuple[LogSample, JsonObject]:
        try:
            return self._decode(data), {}
        except msgspec.ValidationError:
            known, unknown = _without_unknown(data)
            return self._decode(known), unknown


def _without_unknown(data: bytes | Raw) -> tuple[bytes, JsonObject]:
    """The sample without its unknown fields, and these."""
    fields: JsonObject = _fields(data)
    found = _take_unknown(fields, LogSample, "")
    for name in ("output", "scores"):
        if _is_object(fields.get(name)):
            fields[name] = _fields(fields[name])
    if isinstance(output := fields.get("output"), dict):
        found |= _take_unknown(as_object(output), ModelOutput, "output.")
    for name, mark in as_object(fields.get("scores")).items():
        if _is_object(mark):
            fields["scores"][name] = known = _fields(mark)
            found |= _take_unknown(known, GivenScore, f"scores.{name}.")
    return msgspec.json.encode(fields), found


def _take_unknown(fields: JsonObject, shape: type[msgspec.Struct], place: str) -> JsonObject:
    others = [name for name in fields if name not in shape.__struct_encode_fields__]
    return {f"{place}{name}": msgspec.json.decode(fields.pop(name)) for name in others}


def _is_object(raw: Any) -> bool:
    return isinstance(raw, Raw) and bytes(raw).startswith(b"{")


def finite(data: bytes) -> bytes:
    """The JSON without NaN and Infinity, which inspect_ai writes: they become null."""
    return msgspec.json.encode(json_value(data))


def finite_value(data: bytes) -> Any:
    """The value of JSON, with null for NaN and Infinity."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return msgspec.json.decode(finite(data))


class Kept:
    """Takes those of these fields from a part of a log that are not empty, as they are."""

    def __init__(self, *names: str) -> None:
        self._names, self._values, self._none = names, attrgetter(*names), (UNSET,) * len(names)

    def __call__(self, source: msgspec.Struct) -> JsonObject:
        values = self._values(source)
        if values == self._none:  # most are
            return {}
        fields = zip(self._names, values, strict=True)
        return {name: value for name, value in fields if is_filled(value)}


kept_of_item = Kept("description", "sandbox", "files", "setup")
kept_of_response = Kept(
    "store",
    "timelines",
    "role_usage",
    "model_fallbacks",
    "uuid",
    "invalidation",
    "error_retries",
    "limit",
    "token_limit",
    "token_limit_type",
    "token_limit_usage",
    "message_limit",
    "time_limit",
)
kept_of_output = Kept("fallback", "metadata")
