"""Events of a sample as spans, made when somebody looks at them: an import stores them as they stand in the log.

Spans of inspect_ai keep their nesting, every other event is a step inside of its span. A model call has only the
messages that no earlier call of the sample had: conversations are sent again and again, and are shown once."""

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from assay.foreign import seconds_of
from assay.formats.inspect_ai.shapes import Part, Pools, is_filled
from assay.sdk import JsonObject, as_object, list_of, rows_of
from assay.text.messages import content_text

_REFERENCE = "attachment://"
_MARK = _REFERENCE.encode()
_PLAIN = msgspec.json.Decoder().decode
_TEXTS = msgspec.json.Decoder(dict[str, str]).decode
Look = Callable[[str, str], str]


def lookup(attachments: Part) -> Look | None:
    """Return what finds the text of a reference. They are decoded for the first: most logs have references only in events."""
    if not is_filled(attachments):
        return None
    texts: dict[str, str] = {}

    def look(name: str, otherwise: str) -> str:
        if not texts:
            texts.update(_TEXTS(attachments))
        return texts.get(name, otherwise)

    return look


def resolve(value: Any, look: Look) -> Any:
    """Return the value with what its references refer to; an unknown reference stays."""
    if isinstance(value, str):
        return look(value[len(_REFERENCE) :], value) if value.startswith(_REFERENCE) else value
    if isinstance(value, list):
        return [resolve(inner, look) for inner in list_of(value)]
    if isinstance(value, dict):
        return {name: resolve(inner, look) for name, inner in as_object(value).items()}
    return value


def settle(raw: Raw, look: Look | None) -> Any:
    """Return a part that is passed on: bytes as they are, unless they refer to attachments."""
    return resolve(_PLAIN(raw), look) if look is not None and _MARK in bytes(raw) else raw


def message_rows(messages: list[JsonObject]) -> list[JsonObject]:
    """Return messages as our rows have them; those given are changed."""
    for row in messages:
        if type(content := row.get("content")) is list:
            row["content"] = [part_row(part) for part in content]
        if calls := row.get("tool_calls"):
            row["tool_calls"] = calls_row(calls)
    return messages


def part_row(part: Any) -> Any:
    """Return a part of a message: images and audio as OpenAI has them."""
    fields = as_object(part)
    kind, media = fields.get("type"), fields.get(str(fields.get("type")))
    if kind == "image" and isinstance(media, str):
        rest = {name: value for name, value in fields.items() if name not in ("type", "image")}
        return {"type": "image_url", "image_url": {"url": media, **rest}}
    if kind == "audio" and isinstance(media, str):
        audio = {"data": media, "format": fields.get("format")}
        return {"type": "input_audio", "input_audio": audio}
    return part


def calls_row(calls: Any) -> list[Any]:
    """Return calls of tools, with the name and the arguments in `function`; those given are changed."""
    for call in rows_of(calls):
        if isinstance(call.get("function"), str):
            call["function"] = {"name": call["function"], "arguments": call.pop("arguments", {})}
    return list_of(calls)


def thoughts(content: Any) -> str | None:
    """Return the reasoning in a message's content."""
    said = [
        str(part.get("reasoning") or part.get("summary") or "")
        for part in rows_of(content)
        if part.get("type") == "reasoning"
    ]
    return "\n".join(filter(None, said)) or None


def refuses(content: Any) -> bool:
    """Return whether a part says that it is a refusal."""
    return any(part.get("refusal") is True for part in rows_of(content))


def input_text(input: Any) -> str:
    """Return the question as text: of messages, what the user said."""
    if isinstance(input, str):
        return input
    if not isinstance(input, list):
        return str(input)
    rows = rows_of(input)
    asked = [row for row in rows if row.get("role") == "user"] or rows
    return "\n\n".join(filter(None, (content_text(row.get("content")) for row in asked)))


RESTATED = frozenset({"state", "sample_init"})  # they repeat what the rows have
_OWN = frozenset({"uuid", "span_id", "timestamp", "working_start", "event", "completed", "pending"})
_OF_SPAN = _OWN | {"id", "parent_id", "name"}
_text = msgspec.json.Decoder(str).decode
_value = msgspec.json.Decoder().decode
_REFS = msgspec.json.Decoder(list[tuple[int, int]]).decode
_CALL = msgspec.json.Decoder(dict[str, Raw]).decode
_NAMED = {
    "tool": "function",
    "score": "scorer",
    "subtask": "name",
    "step": "name",
    "model": "model",
    "info": "source",
}


class Packed(msgspec.Struct, gc=False):
    """All events of a sample, with what they refer to."""

    packed: str
    events: Part
    events_data: Part = UNSET
    attachments: Part = UNSET


def unpacked(span: JsonObject) -> list[JsonObject]:
    """Return the spans of packed events, each after its parent; the packed ones again, if they are not what they should be."""
    try:
        packed = msgspec.json.decode(msgspec.json.encode(span), type=_Unpacking)
        made = _spans(packed)
    except (ValueError, RecursionError):
        return [span]
    return msgspec.json.decode(msgspec.json.encode(made))


class _Unpacking(msgspec.Struct):
    events: list[dict[str, Raw]]
    events_data: Pools | None = None
    attachments: dict[str, str] = {}


def _spans(packed: _Unpacking) -> list[JsonObject]:
    spans: list[JsonObject] = []
    places: dict[bytes, int] = {}
    look = packed.attachments.get if packed.attachments else None
    pooled = _PooledMessages(packed.events_data or Pools(), look)
    for event in packed.events:
        kind = _text(event["event"]) if "event" in event else ""
        if kind in RESTATED:
            continue
        if kind == "span_end":
            place = places.get(bytes(event.get("id", b"")))
            if place is not None:
                spans[place]["end"] = _time(event.get("timestamp"))
            continue
        begins = kind == "span_begin"
        if begins and "id" in event:
            places[bytes(event["id"])] = len(spans)
        parent = places.get(bytes(event.get("parent_id" if begins else "span_id", b"")))
        spans.append(_span(event, kind, parent, pooled))
    return spans


def _span(
    event: Mapping[str, Raw], kind: str, parent: int | None, pooled: "_PooledMessages"
) -> JsonObject:
    begins = kind == "span_begin"
    start = _time(event.get("timestamp"))
    end = None if begins else start
    if "completed" in event:
        end = _time(event["completed"])
    left_out = _OF_SPAN if begins else _OWN
    data: JsonObject = {name: raw for name, raw in event.items() if name not in left_out}
    if pooled.look is not None:
        data = {name: settle(raw, pooled.look) for name, raw in data.items()}
    if kind == "model":
        pooled.fill(event, data)
    named = {"name": _name(event, kind), "parent": parent, "start": start, "end": end}
    return {**named, "error": _error(event), "data": data}


class _PooledMessages:
    """The messages that events share, given to the first that refers to them."""

    def __init__(self, pools: Pools, look: Look | None) -> None:
        self.look = look
        self._pools = pools
        self._messages: set[int] = set()
        self._calls: set[int] = set()

    def fill(self, event: Mapping[str, Raw], data: JsonObject) -> None:
        """Put the messages that an event refers to into its data."""
        if "input_refs" in event and (refs := _refs(event["input_refs"])):
            del data["input_refs"]
            new = self._new(refs, self._pools.messages, self._messages)
            data["input"], data["earlier_messages"] = new
        if "call" in event and b'"call_refs"' in bytes(event["call"]):
            call: JsonObject = {**_CALL(event["call"])}
            if refs := _refs(call.pop("call_refs")):
                new = self._new(refs, self._pools.calls, self._calls)
                call["messages"], call["earlier_messages"] = new
            data["call"] = {
                name: settle(part, self.look) if isinstance(part, Raw) else part
                for name, part in call.items()
            }

    def _new(
        self, refs: list[tuple[int, int]], pool: list[Raw], seen: set[int]
    ) -> tuple[list[Any], int]:
        ranges = [range(max(start, 0), min(stop, len(pool))) for start, stop in refs]
        numbers = [*chain.from_iterable(ranges)]
        new = [number for number in numbers if number not in seen]
        seen.update(new)
        return [settle(pool[number], self.look) for number in new], len(numbers) - len(new)


def _refs(raw: Raw) -> list[tuple[int, int]]:
    return _REFS(raw) if bytes(raw) != b"null" else []


def _name(event: Mapping[str, Raw], kind: str) -> str:
    """Return what an event is called: a span by its name, a step by its kind and what it is about."""
    if kind == "span_begin":
        return _plain_text(event.get("name")) or "span"
    about = _plain_text(event.get(_NAMED[kind])) if kind in _NAMED else ""
    return f"{kind} {about}" if about else kind


def _plain_text(raw: Raw | None) -> str:
    return _text(raw) if raw is not None and bytes(raw).startswith(b'"') else ""


def _error(event: Mapping[str, Raw]) -> str | None:
    raw = event.get("error")
    if raw is None or bytes(raw) == b"null":
        return None
    error = _value(raw)
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)


def _time(raw: Raw | None) -> float | None:
    return seconds_of(_plain_text(raw))
