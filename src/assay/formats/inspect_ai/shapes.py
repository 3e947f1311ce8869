"""The parts of a log as inspect_ai 0.3.285 writes them, as far as they are looked into: what is only passed on stays
bytes. The decoders refuse unknown fields, so that a log with some is noticed; it is then read without refusing."""

from operator import attrgetter
from typing import Any, TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from assay.engine.experiment.imports.values import Row, json_value

VERSION = 2
Part = Raw | UnsetType
Text = str | None


class Usage(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What a model read and wrote."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_cache_write: int | None = None
    input_tokens_cache_read: int | None = None
    reasoning_tokens: int | None = None
    total_cost: float | None = None


class Message(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A message of a conversation; `content` is a text or parts."""

    role: str = ""
    content: Any = ""
    id: Text = None
    source: Text = None
    metadata: Row | None = None
    model: Text = None
    tool_calls: list[Row] | None = None
    tool_call_id: Any = None
    function: Text = None
    error: Any = None
    internal: Any = None


class Choice(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One of the answers of a call."""

    message: Message
    stop_reason: str = "unknown"
    stop_details: Row | None = None
    logprobs: Row | None = None
    prompt_logprobs: Part = UNSET


class Output(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What the model said last."""

    model: str = ""
    choices: list[Choice] = []
    completion: Text = ""
    usage: Usage | None = None
    input_context_tokens: Part = UNSET
    fallback: Part = UNSET
    time: float | None = None
    metadata: Part = UNSET
    error: Text = None
    response_id: Text = None


class Mark(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """What a scorer gave."""

    value: Any = None
    answer: Any = None
    explanation: Any = None
    reason: Text = None
    metadata: Row | None = None
    history: list[Any] = []


class Failure(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Why a sample, or a run, stopped."""

    message: str = ""
    traceback: str = ""
    traceback_ansi: str = ""


class Pools(msgspec.Struct, gc=False):
    """Messages that events refer to."""

    messages: list[Raw] = []
    calls: list[Raw] = []


class Sample(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One answer to one item. All that follows `events_data` is kept as it is."""

    id: int | str
    epoch: int = 1
    input: Any = ""
    choices: list[Any] | None = None
    target: Any = None
    messages: list[Row] = []
    output: Output = msgspec.field(default_factory=Output)
    scores: dict[str, Mark] | None = None
    score: Mark | None = None
    metadata: Row = {}
    events: Part = UNSET
    model_usage: dict[str, Usage] = {}
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


def is_filled(part: Part) -> TypeGuard[Raw]:
    """Whether there is something in a part that is kept as bytes."""
    return part is not UNSET and (memoryview(part).nbytes > _LONGEST or bytes(part) not in _EMPTY)


def _lenient(strict: type[msgspec.Struct], **inner: Any) -> type[msgspec.Struct]:
    """The same shape that takes unknown fields."""
    fields: list[Any] = []
    for field in msgspec.structs.fields(strict):
        kind = inner.get(field.name, field.type)
        if field.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(default_factory=field.default_factory, name=field.encode_name)
        elif field.default is not msgspec.NODEFAULT:
            default = msgspec.field(default=field.default, name=field.encode_name)
        else:
            fields.append((field.name, kind))
            continue
        fields.append((field.name, kind, default))
    return msgspec.defstruct(
        strict.__name__, fields, gc=False, bases=(strict,), forbid_unknown_fields=False
    )


class Decoder:
    """Decodes samples; fields that are not known are counted by `unknown` and given with the sample."""

    def __init__(self) -> None:
        self._strict = msgspec.json.Decoder(Sample)
        self._plain: Any = None
        self._fields = msgspec.json.Decoder(dict[str, Raw])

    def __call__(self, data: bytes | Raw) -> tuple[Sample, Row]:
        """A sample and its unknown fields, by their places; ValueError if it is not a sample."""
        try:
            return self._decoded(data)
        except msgspec.ValidationError:
            raise
        except (ValueError, RecursionError):
            return self._decoded(finite(bytes(data)))

    def _decoded(self, data: bytes | Raw) -> tuple[Sample, Row]:
        if self._plain is None:
            try:
                return self._strict.decode(data), {}
            except msgspec.ValidationError:
                self._plain = msgspec.json.Decoder(_plain_sample())
        return self._plain.decode(data), self._unknown(data)

    def _unknown(self, data: bytes | Raw) -> Row:
        fields = self._fields.decode(data)
        found = _others(fields, Sample)
        if (output := fields.get("output")) is not None:
            inner = self._fields.decode(output)
            found |= {f"output.{name}": value for name, value in _others(inner, Output).items()}
        for name, mark in (
            self._fields.decode(fields["scores"]).items()
            if _is_object(fields.get("scores"))
            else ()
        ):
            rest = _others(self._fields.decode(mark), Mark)
            found |= {f"scores.{name}.{field}": value for field, value in rest.items()}
        return found


def _is_object(raw: Raw | None) -> bool:
    return raw is not None and bytes(raw).startswith(b"{")


def _others(fields: dict[str, Raw], known: type[msgspec.Struct]) -> Row:
    names = known.__struct_encode_fields__
    return {name: msgspec.json.decode(value) for name, value in fields.items() if name not in names}


def _plain_sample() -> type[msgspec.Struct]:
    usage, message = _lenient(Usage), _lenient(Message)
    choice = _lenient(Choice, message=message)
    output = _lenient(Output, choices=list[choice], usage=usage | None)
    mark = _lenient(Mark)
    return _lenient(
        Sample,
        output=output,
        scores=dict[str, mark] | None,
        score=mark | None,
        model_usage=dict[str, usage],
        error=_lenient(Failure) | None,
    )


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

    def __call__(self, source: msgspec.Struct) -> Row:
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
