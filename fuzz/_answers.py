"""Answers of HTTP servers, sound and broken, by number."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

STATUSES = (
    200,
    200,
    200,
    200,
    201,
    204,
    301,
    307,
    400,
    401,
    402,
    403,
    404,
    408,
    413,
    422,
    429,
    429,
    500,
    502,
    503,
    529,
)
SIZES = (
    b"-6",
    b"-1",
    b"+5",
    b"0x5",
    b"",
    b" ",
    b"5 ",
    b" 5",
    b"ffffffffffffffff",
    b"f" * 40,
    b"5;",
    b"g",
    b"1_0",
    b"\x00",
)
LENGTHS = (
    b"-1",
    b"5, 5",
    b"5, 6",
    b"+5",
    b"99999999999",
    b"9" * 30,
    b"9" * 5000,
    b"five",
    b"",
    b"0x5",
    b"1_0",
    b"5.0",
    b"\xb2",
)


CLIENTS = 12
STREAMED = 8  # clients from here on ask for events


class Script(NamedTuple):
    """What the server writes; `status` is None where the head may be broken, `text` is what a whole answer says. What
    `fails` came whole and is no whole stream."""

    pieces: list[bytes]
    status: int | None
    text: str | None
    ends: str  # "stays", "closes" or "silent"
    fails: bool = False


def answer_of(text: str) -> bytes:
    """Good for both providers."""
    content: Any = [{"type": "text", "text": text}]
    return json.dumps({"choices": [{"message": {"content": text}}], "content": content}).encode()


def bodies(text: str) -> list[bytes]:
    whole = answer_of(text)
    deep = b"[" * 10_000 + b"]" * 10_000
    return [
        whole.replace(b"case", b"\xe9"),
        whole.replace(b"case", b"\\ud800"),
        b'{"choices":[{"message":{"content":' + deep + b'}}],"content":' + deep + b"}",
        b'{"choices":[{"message":{"tool_calls":' + b'[{"a":' * 300 + b"1" + b"}]" * 300 + b"}}]}",
        b'{"error":' * 950 + b"1" + b"}" * 950,
        b'{"error":{"message":"caf\xe9"}}',
        b'{"error":{"message":1e999},"choices":1e999}',
        b'{"choices":[],"x":' + b"9" * 5000 + b"}",
        b'{"choices":[{"message":{"content":1e400}}]}',
        b"\xff\xfe\x00",
        b"",
        b"<html>",
        whole[: len(whole) // 2],
        b"null",
    ]


def stream_of(text: str, chance: random.Random) -> list[bytes]:
    """The same as events, good for both providers."""
    events: list[Any] = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": letter},
            "choices": [{"delta": {"content": letter}}],
        }
        for letter in text
    ]
    events.append({"type": "message_stop", "choices": [{"delta": {}, "finish_reason": "stop"}]})
    end = chance.choice([b"\n", b"\r\n", b"\r"])
    said = [b"data: " + json.dumps(event).encode() for event in events] + [b"data: [DONE]"]
    noise = [
        b"",
        b"",
        b": ping" + end + end,
        b"id: 7" + end,
        b"event: odd" + end,
        b"retry: 1" + end,
    ]
    return [chance.choice(noise) + event + end + end for event in said]


def broken_stream(text: str, chance: random.Random) -> bytes:
    """One that ends before its end mark, or has something else in the middle."""
    events = stream_of(text, chance)
    half = events[: chance.randrange(len(events) - 1)]
    error = b'data: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
    rest = chance.choice(
        [[], [], [b"data: {garbage\n\n", *events[len(half) :]], [error], [events[len(half)][:-20]]]
    )
    return b"".join([*half, *rest])


def chunked(body: bytes, chance: random.Random) -> list[bytes]:
    parts: list[bytes] = []
    while body:
        size = chance.randint(1, max(1, len(body)))
        extension = chance.choice([b"", b"", b";x=1", b';n="y"'])
        parts.append(b"%x%b\r\n%b\r\n" % (size, extension, body[:size]))
        body = body[size:]
    return [*parts, b"0\r\n", chance.choice([b"", b"x-check: 1\r\n"]), b"\r\n"]


def script(case: int) -> Script:
    chance = random.Random(case)
    text = f"case {case}"
    status = chance.choice(STATUSES)
    is_whole = chance.random() < 0.5
    is_streamed = case % CLIENTS >= STREAMED
    if is_streamed:
        body = b"".join(stream_of(text, chance)) if is_whole else broken_stream(text, chance)
    else:
        body = answer_of(text) if is_whole else chance.choice(bodies(text))
    fields = [
        b"Content-Type: application/json",
        *chance.choice([[], [b"retry-after: 7"], [b"x-b: \xe9\xff"]]),
    ]
    ends = "silent" if chance.random() < 0.004 else chance.choice(["stays", "closes"])
    framing = chance.choice(
        ["length", "chunked", "end", "sizes", "lengths", "both", "cut", "bytes", "bytes", "bytes"]
    )
    coded = chunked(body, chance)
    if framing in ("chunked", "sizes"):
        fields.append(b"Transfer-Encoding: chunked")
    elif framing in ("length", "cut", "bytes"):
        fields.append(b"Content-Length: %d" % len(body))
    elif framing == "lengths":
        fields += [
            b"Content-Length: " + chance.choice(LENGTHS) for _ in range(chance.randint(1, 2))
        ]
    elif framing == "both":
        fields += [
            b"Content-Length: " + chance.choice(LENGTHS),
            b"Transfer-Encoding: " + chance.choice([b"chunked", b"gzip", b"chunked, x"]),
        ]
    if framing == "sizes":
        coded[chance.randrange(len(coded))] = chance.choice(SIZES) + b"\r\n" + body + b"\r\n"
    if framing == "end":
        ends = "closes"
    early = chance.choice(
        [b""] * 6 + [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 3]
    )
    head = early + b"\r\n".join([b"HTTP/1.1 %d Said So" % status, *fields, b"", b""])
    if status == 204:
        coded, body = [], b""
    whole = [head, *(coded if framing in ("chunked", "sizes") else [body])]
    if framing == "cut":
        ends, whole = "closes", [head, body[: len(body) // 2]]
    if framing == "bytes":
        return Script(cut(mutated(b"".join(whole), chance), chance), None, None, ends)
    is_sound = framing in ("length", "chunked", "end") and ends != "silent"
    if framing in ("lengths", "both"):
        return Script(cut(b"".join(whole), chance), None, None, ends)
    fails = is_streamed and not is_whole
    return Script(
        cut(b"".join(whole), chance), status, text if is_sound and is_whole else None, ends, fails
    )


def mutated(data: bytes, chance: random.Random) -> bytes:
    """With a few bytes changed, left out, repeated or put in, mostly in the head."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = (
            chance.randrange(min(len(found), 200) if chance.random() < 0.8 else len(found))
            if found
            else 0
        )
        kind = chance.randrange(6)
        if kind == 0 and found:
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del found[at : at + chance.randint(1, 20)]
        elif kind == 2:
            found[at:at] = found[at : at + chance.randint(1, 60)]
        elif kind == 3:
            found[at:at] = chance.choice(
                [b"\r\n", b"\n", b"\x00", b"\r\n\r\n", b" ", b":", b"HTTP/1.1 200 OK\r\n", b"\xff"]
            )
        elif kind == 4:
            found += chance.choice(
                [
                    b"\r\n",
                    b"0\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
                    bytes(found),
                ]
            )
        else:
            del found[at + 20 :]
    return bytes(found)


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    if chance.random() < 0.6:
        return [data]
    step = chance.choice([1, 7, 50]) if len(data) < 500 else len(data) // 5
    return [data[at : at + step] for at in range(0, len(data), step)]
