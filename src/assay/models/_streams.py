"""Answers that come as server-sent events: put together to the body that the same server sends at once, and timed.

Whatever reads an answer reads the joined body, so a streamed answer is what an unstreamed one would have been. A
stream without its end mark is not an answer, whatever came of it: it is worth another try. An event that reports an
error has the status that the server would have answered with.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from assay.models._failures import UNREADABLE, excerpt
from assay.models._plain_http import Arrivals
from assay.models._secrets import Secrets
from assay.sdk import JsonObject, TransientError, as_object
from assay.text.messages import content_text

_encode = msgspec.json.encode
_decode = msgspec.json.decode
_BOM = b"\xef\xbb\xbf"
_BEGINNING = re.compile(rb"(\xef\xbb\xbf)?[\r\n]*(data|event|id|retry|error)?:")
_LINE_ENDS = b"\r\n"
_MOST_LINES = 2_000_000  # an answer that is all line ends must not fill the memory
_DONE: JsonObject = {}
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_HEAD = ("id", "model", "system_fingerprint", "usage")
_STATUSES = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
}


class JoinedStream(NamedTuple):
    """The whole answer. `marks` are the places in the stream where events ended that brought some of it; `hidden` is
    how many of its tokens were counted and not sent."""

    status: int
    body: bytes
    marks: list[int] = []
    hidden: int = 0


Join = Callable[[bytes, Secrets], JoinedStream]


def is_stream(body: bytes) -> bool:
    """Return whether a body has events: some servers answer at once whatever they are asked."""
    return _BEGINNING.match(body) is not None


def events(body: bytes) -> Iterator[tuple[bytes, int]]:
    """The data of each event and where it ends. The last may lack its empty line: a torn one is not JSON anyway."""
    if body.count(b"\n") + body.count(b"\r") > 2 * _MOST_LINES:
        raise TransientError("the stream has too many lines")
    end = len(_BOM) if body.startswith(_BOM) else 0
    lines: list[bytes] = []
    for line in body[end:].splitlines(keepends=True):
        end += len(line)
        if line.startswith(b"data:"):
            lines.append(line[5:].strip(b" \r\n"))
        elif line.startswith(b"error:"):  # as llama.cpp reports one
            lines.append(b'{"error":%b}' % line[6:].strip())
        elif lines and line[0] in _LINE_ENDS:
            yield (lines[0] if len(lines) == 1 else b"\n".join(lines)), end
            lines = []
    if lines:
        yield b"\n".join(lines), end


def _decode_events(body: bytes, secrets: Secrets) -> Iterator[tuple[JsonObject, int]]:
    """Each event as JSON, up to and with `[DONE]`."""
    for data, end in events(body):
        if data == b"[DONE]":
            yield _DONE, end
            return
        try:
            event = _decode(data)
        except UNREADABLE:
            event = None
        if not isinstance(event, dict):
            raise TransientError(
                f"an event of the stream is not JSON: {excerpt(secrets.scrub(data))}"
            )
        yield event, end


def _ended_early() -> TransientError:
    return TransientError("the stream ended before the answer did")


def _body(answer: Any) -> bytes:
    try:
        return _encode(answer)
    except UNREADABLE:
        raise TransientError("the events of the stream are nested too deeply") from None


def _error_answer(event: JsonObject) -> JoinedStream:
    """The answer that an error event stands for."""
    error = as_object(event.get("error")) or event
    code = next(
        (error[key] for key in ("code", "status", "http_code") if isinstance(error.get(key), int)),
        0,
    )
    named = _STATUSES.get(str(error.get("type")), _STATUSES.get(str(error.get("code")), 500))
    return JoinedStream(code if 400 <= code < 600 else named, _body(event))


def join_chat(body: bytes, secrets: Secrets) -> JoinedStream:
    """The chunks of chat and text completions as one completion. Its end mark is `[DONE]` or a finish reason."""
    parts = _Parts()
    done = False
    marks: list[int] = []
    for chunk, end in _decode_events(body, secrets):
        if chunk.get("error"):
            return _error_answer(chunk)
        done = chunk is _DONE
        if parts.add(chunk):
            marks.append(end)
    if not done and parts.finish is None:
        raise _ended_early()
    is_told = any(key.startswith("reasoning") for key in parts.texts)
    hidden = 0 if is_told else _hidden(parts.head.get("usage"))
    return JoinedStream(200, _body(parts.whole()), marks, hidden)


class _Parts:
    """All that the chunks of one completion have brought."""

    def __init__(self) -> None:
        self.head: JsonObject = {}
        self.texts: dict[str, list[str]] = {}
        self.finish: str | None = None
        self._calls: dict[int, JsonObject] = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._is_chosen = False

    def add(self, chunk: JsonObject) -> bool:
        """Take up what one chunk brings, and return whether it is any of the answer."""
        self.head |= {key: chunk[key] for key in _HEAD if chunk.get(key) is not None}
        choice = _first_choice(chunk.get("choices"))
        if choice is None:
            return False
        self._is_chosen = True
        if isinstance(reason := choice.get("finish_reason"), str):
            self.finish = reason or self.finish
        for key, values in as_object(choice.get("logprobs")).items():
            if isinstance(values, list):
                self._logprobs.setdefault(key, []).extend(values)
        delta = as_object(choice.get("delta"))
        calls = delta.get("tool_calls")
        brought = [self._add_text(key, delta.get(key)) for key in _TEXTS]
        brought.append(self._add_text("text", choice.get("text")))
        parts = calls if isinstance(calls, list) else []
        brought += [_add_call(as_object(part), self._calls) for part in parts]
        return any(brought)

    def _add_text(self, key: str, value: Any) -> bool:
        if key == "content" and value is not None:
            value = content_text(value)
        if not isinstance(value, str):
            return False
        self.texts.setdefault(key, []).append(value)
        return bool(value)

    def whole(self) -> JsonObject:
        """Return the completion."""
        texts = {key: "".join(parts) for key, parts in self.texts.items()}
        calls = list(self._calls.values())
        for function in (call["function"] for call in calls if "function" in call):
            function["arguments"] = "".join(function["arguments"])
        choice: JsonObject = {
            "finish_reason": self.finish,
            "logprobs": self._logprobs or None,
        }
        if "text" in texts:
            choice["text"] = texts.pop("text")
        choice["message"] = {**texts, "tool_calls": calls or None}
        return {**self.head, "choices": [choice] if self._is_chosen else []}


def _first_choice(choices: Any) -> JsonObject | None:
    if isinstance(choices, list):
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                return choice
    return None


def _add_call(part: JsonObject, calls: dict[int, JsonObject]) -> bool:
    """Parts of a call have its `index`; servers that send whole calls may leave it out."""
    index: Any = part.get("index")
    if not isinstance(index, int):
        index = len(calls) if part.get("id") or not calls else next(reversed(calls))
    call = calls.setdefault(index, {})
    call |= {
        key: value
        for key, value in part.items()
        if key not in ("index", "function") and value is not None
    }
    if function := as_object(part.get("function")):
        own = call.setdefault("function", {"name": None, "arguments": []})
        own["name"] = own["name"] or function.get("name")
        own["arguments"].append(str(function.get("arguments") or ""))
    return bool(part)


def _hidden(usage: Any) -> int:
    """Tokens of reasoning that the server counts and keeps for itself."""
    count: Any = as_object(as_object(usage).get("completion_tokens_details")).get(
        "reasoning_tokens"
    )
    return count if isinstance(count, int) and count > 0 else 0


_PARTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def join_messages(body: bytes, secrets: Secrets) -> JoinedStream:
    """The events of Anthropic's API as one message. Its end mark is `message_stop`."""
    answer: JsonObject = {}
    blocks: dict[int, JsonObject] = {}
    parts: dict[tuple[int, str], list[str]] = {}
    done = False
    marks: list[int] = []
    for event, end in _decode_events(body, secrets):
        match event:
            case {"type": "error"}:
                return _error_answer(event)
            case {"type": "message_start", "message": dict(message)}:
                answer = message
            case {"type": "message_delta", "delta": dict(delta)}:
                usage = as_object(answer.get("usage")) | as_object(event.get("usage"))
                answer |= {**delta, "usage": usage}
            case {"type": "message_stop"}:
                done = True
            case _:
                marks += [end] if _add_block(event, blocks, parts) else []
    if not done:
        raise _ended_early()
    for (index, key), texts in parts.items():
        blocks[index] |= _block_of(key, "".join(texts))
    return JoinedStream(200, _body({**answer, "content": list(blocks.values())}), marks)


def _add_block(
    event: JsonObject,
    blocks: dict[int, JsonObject],
    parts: dict[tuple[int, str], list[str]],
) -> bool:
    """Take up what an event says of a block, and return whether it brings any text."""
    match event:
        case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
            blocks[index] = block
        case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
            key = _PARTS.get(str(delta.get("type")), "")
            if text := delta.get(key):
                blocks.setdefault(index, {"type": key})
                parts.setdefault((index, key), []).append(str(text))
                return True
        case _:  # a ping, and what a later version adds
            pass
    return False


def _block_of(key: str, text: str) -> JsonObject:
    if key != "partial_json":
        return {key: text}
    try:
        return {"input": _decode(text)}
    except UNREADABLE:  # a call that was cut off by the limit of tokens
        return {"input": {"arguments": text}}


def times(
    joined: JoinedStream, arrivals: Arrivals, sent: float, tokens: int | None
) -> dict[str, float]:
    """Return what a stream tells about time, in seconds; what it cannot tell is left out. A piece may hold several tokens, so
    those are counted by the server where it does."""
    moments: list[float] = []
    coming = iter(arrivals)
    size, moment = 0, sent
    for mark in joined.marks:
        while size < mark:
            size, moment = next(coming)
        moments.append(moment)
    measured: dict[str, float] = {"seconds": arrivals[-1][1] - sent, "pieces": len(moments)}
    if moments:
        measured["ttft"] = moments[0] - sent
        count = (
            tokens - joined.hidden
            if tokens is not None and tokens > joined.hidden
            else len(moments)
        )
        generation = moments[-1] - moments[0]
        if count > 1 and generation > 0:
            measured["time_between_tokens"] = generation / (count - 1)
            measured["generation_speed"] = (count - 1) / generation
            measured["longest_pause"] = max(late - early for early, late in pairwise(moments))
    return {name: round(value, 6) for name, value in measured.items()}
