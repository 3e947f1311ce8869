"""Answers of a server that is broken or means harm, to both HTTP clients, over a real connection.

Each case is an answer of its own, and a clean request after it on the same client. An answer or a classified error
comes in time; the class follows the status wherever the head is whole; the clean request gets its own answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.interfaces import Completion, Request
from assay.models._reqwest import ReqwestClient
from assay.models.anthropic import anthropic
from assay.models.openai import HttpModel, openai
from fuzz import Attack

PATIENCE = 0.002  # seconds until the server hangs up on a client that does not react
TIMEOUT = 2.0
SILENCE = 0.05
SLACK = 8.0  # a busy machine is not a fault
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
OVERLOADED, AGAIN, STOPPING = (429, 503, 529), (408, 500, 502), (301, 307, 401, 402, 403, 404)
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
LENGTHS = (b"-1", b"5, 5", b"5, 6", b"+5", b"99999999999", b"9" * 30, b"five", b"", b"0x5", b"1_0", b"5.0", b"\xb2")


class Script(NamedTuple):
    """What the server writes; `status` is None where the head may be broken, `text` is what a whole answer says."""

    pieces: list[bytes]
    status: int | None
    text: str | None
    ends: str  # "stays", "closes" or "silent"


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
    body = answer_of(text) if is_whole else chance.choice(bodies(text))
    fields = [b"Content-Type: application/json", *chance.choice([[], [b"retry-after: 7"], [b"x-b: \xe9\xff"]])]
    ends = "silent" if chance.random() < 0.004 else chance.choice(["stays", "closes"])
    framing = chance.choice(["length", "chunked", "end", "sizes", "lengths", "both", "cut", "bytes", "bytes", "bytes"])
    coded = chunked(body, chance)
    if framing in ("chunked", "sizes"):
        fields.append(b"Transfer-Encoding: chunked")
    elif framing in ("length", "cut", "bytes"):
        fields.append(b"Content-Length: %d" % len(body))
    elif framing == "lengths":
        fields += [b"Content-Length: " + chance.choice(LENGTHS) for _ in range(chance.randint(1, 2))]
    elif framing == "both":
        fields += [b"Content-Length: 5", b"Transfer-Encoding: " + chance.choice([b"chunked", b"gzip", b"chunked, x"])]
    if framing == "sizes":
        coded[chance.randrange(len(coded))] = chance.choice(SIZES) + b"\r\n" + body + b"\r\n"
    if framing == "end":
        ends = "closes"
    early = chance.choice([b""] * 6 + [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 3])
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
    return Script(cut(b"".join(whole), chance), status, text if is_sound and is_whole else None, ends)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """With a few bytes changed, left out, repeated or put in, mostly in the head."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(min(len(found), 200) if chance.random() < 0.8 else len(found)) if found else 0
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
                [b"\r\n", b"0\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", bytes(found)]
            )
        else:
            del found[at + 20 :]
    return bytes(found)


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    if chance.random() < 0.6:
        return [data]
    step = chance.choice([1, 7, 50]) if len(data) < 500 else len(data) // 5
    return [data[at : at + step] for at in range(0, len(data), step)]


class Server(asyncio.Protocol):
    """Answers a request whose prompt is a case with its script, any other with its prompt."""

    def __init__(self) -> None:
        self.buffer = b""
        self.transport: asyncio.Transport
        self.writing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if not end or len(body) < length:
            return
        self.buffer = b""
        prompt = json.loads(body)["messages"][0]["content"] if body else "clean"
        if prompt.startswith("clean"):
            answer = answer_of(prompt)
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer))
        else:
            self.writing = asyncio.ensure_future(self.play(script(int(prompt))))

    async def play(self, scripted: Script) -> None:
        for piece in scripted.pieces:
            if self.transport.is_closing():
                return
            self.transport.write(piece)
            if len(scripted.pieces) > 1:
                await asyncio.sleep(0)
        if scripted.ends == "closes":
            self.transport.close()
        elif scripted.ends == "stays":
            asyncio.get_running_loop().call_later(PATIENCE, self.hang_up, self.writing)

    def hang_up(self, played: object) -> None:
        if self.writing is played and not self.transport.is_closing():
            self.transport.close()


def problem(scripted: Script, result: Completion | BaseException) -> str | None:
    """What is wrong with the outcome of a case."""
    if isinstance(result, BaseException) and not isinstance(result, CallError):
        return f"{type(result).__name__}: {result}"
    if scripted.text is not None and scripted.status in (200, 201):
        return None if isinstance(result, Completion) and result.text == scripted.text else f"lost its answer: {result}"
    status = scripted.status
    if status is None:
        return None
    if status < 300:
        is_right = isinstance(result, (Completion, TransientError))
    elif status in OVERLOADED:
        is_right = isinstance(result, TransientError) and result.overload
    elif status in AGAIN:
        is_right = isinstance(result, TransientError) and not result.overload
    else:
        is_right = isinstance(result, LaneError if status in STOPPING else PermanentError)
    return None if is_right else f"HTTP {status} became {type(result).__name__}: {result}"


class Client:
    """Both clients with both providers, of one server."""

    def __init__(self, port: int) -> None:
        base = f"http://127.0.0.1:{port}/v1"
        self.models: list[HttpModel] = []
        for index, make in enumerate([openai, openai, openai, openai, openai, openai, anthropic, anthropic]):
            model = make("m", endpoint=base)
            assert isinstance(model, HttpModel)
            if index % 2:
                model._transport._client = ReqwestClient({"content-type": "application/json"}, 1 << 26, no_proxy=True)
            self.models.append(model)

    async def attack(self, case: int) -> str | None:
        model, scripted = self.models[case % len(self.models)], script(case)
        timeout = SILENCE if scripted.ends == "silent" else TIMEOUT
        started = time.monotonic()
        result = await self.ask(model, str(case), timeout)
        seconds = time.monotonic() - started
        if seconds > timeout + SLACK:
            return f"took {seconds:.1f} s"
        if wrong := problem(scripted, result):
            return wrong
        clean = await self.ask(model, f"clean {case}", TIMEOUT + SLACK)
        if isinstance(clean, TransientError) and clean.unreachable:  # its connection had just been closed
            clean = await self.ask(model, f"clean {case}", TIMEOUT + SLACK)
        if not isinstance(clean, Completion) or clean.text != f"clean {case}":
            return f"the next request got {clean!r}"
        return None

    async def close(self) -> None:
        for model in self.models:
            await model.close()

    async def ask(self, model: HttpModel, prompt: str, timeout: float) -> Completion | BaseException:
        try:
            return await model.complete(Request([{"role": "user", "content": prompt}], timeout=timeout))
        except Exception as error:
            return error


@contextmanager
def opened() -> Generator[Attack]:
    """A server and its clients in one event loop; an alarm ends what keeps the loop."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Server, "127.0.0.1", 0))
    client = Client(server.sockets[0].getsockname()[1])
    has_alarm = threading.current_thread() is threading.main_thread()

    def alarmed(*_: object) -> None:
        raise RuntimeError("the event loop hangs")

    def attack(case: int) -> str | None:
        if has_alarm:
            signal.setitimer(signal.ITIMER_REAL, TIMEOUT + 2 * SLACK)
        try:
            return loop.run_until_complete(client.attack(case))
        except RuntimeError as error:
            return str(error)

    before = signal.signal(signal.SIGALRM, alarmed) if has_alarm else None
    try:
        yield attack
    finally:
        if has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        loop.run_until_complete(client.close())
        server.close()
        loop.run_until_complete(asyncio.sleep(2 * PATIENCE))
        loop.close()
