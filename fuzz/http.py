"""Answers of a server that is broken or means harm, to both HTTP clients, over a real connection.

Each case is an answer of its own, and a clean request after it on the same client. An answer or a classified error
comes in time; the class follows the status wherever the head is whole; the clean request gets its own answer.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar

from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.interfaces import Completion, Request
from assay.models._reqwest import ReqwestClient
from assay.models.anthropic import anthropic
from assay.models.openai import HttpModel, openai
from fuzz import Attack
from fuzz._answers import CLIENTS, STREAMED, Script, answer_of, script

PATIENCE = 0.002  # seconds until the server hangs up on a client that does not react
TIMEOUT = 2.0
SILENCE = 0.05
SLACK = 8.0  # a busy machine is not a fault
OVERLOADED, AGAIN, STOPPING = (429, 503, 529), (408, 500, 502), (301, 307, 401, 402, 403, 404)


class Server(asyncio.Protocol):
    """Answers a request whose prompt is a case with its script, any other with its prompt."""

    open: ClassVar[set[asyncio.Transport]] = set()

    def __init__(self) -> None:
        self.buffer = b""
        self.transport: asyncio.Transport
        self.writing: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if not end or len(body) < length:
            return
        self.buffer = b""
        if self.writing is not None and not self.writing.done():
            # the rest of a script would be mixed with the next answer, which no client can tell apart
            self.transport.abort()
            return
        prompt = json.loads(body)["messages"][0]["content"] if body else "clean"
        if prompt.startswith("clean"):
            answer = answer_of(prompt)
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer)
            )
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
    if isinstance(result, LaneError) and "cannot be used" in result.what:
        return f"our own headers are blamed: {result}"
    if scripted.text is not None and scripted.status in (200, 201):
        return (
            None
            if isinstance(result, Completion) and result.text == scripted.text
            else f"lost its answer: {result}"
        )
    status = scripted.status
    if status is None:
        return None
    if scripted.fails and isinstance(result, Completion):
        return f"half a stream became an answer: {result}"
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
        for index in range(CLIENTS):
            make = anthropic if index in (6, 7, 10, 11) else openai
            model = make("m", endpoint=base, stream=index >= STREAMED)
            assert isinstance(model, HttpModel)
            if index % 2:
                model._transport._client = ReqwestClient(
                    {"content-type": "application/json"}, 1 << 26, no_proxy=True
                )
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
        if not isinstance(clean, Completion) or clean.text != f"clean {case}":
            return f"the next request got {clean!r}"
        return None

    async def close(self) -> None:
        for model in self.models:
            await model.close()

    async def ask(
        self, model: HttpModel, prompt: str, timeout: float, *, again: bool = True
    ) -> Completion | BaseException:
        try:
            return await model.complete(
                Request([{"role": "user", "content": prompt}], timeout=timeout)
            )
        except Exception as error:
            # a kept connection had just been closed
            if again and isinstance(error, TransientError) and error.unreachable:
                return await self.ask(model, prompt, timeout, again=False)
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
        for transport in list(Server.open):
            transport.abort()
        loop.run_until_complete(asyncio.sleep(2 * PATIENCE))
        loop.close()
