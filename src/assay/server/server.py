"""What the mock server does with a request: route, count, delay, fail, answer."""

import asyncio
import socket
from collections import Counter
from typing import Any

import msgspec

from assay.errors import UserError
from assay.records import JsonObject
from assay.server.answers import MODEL, MockAnswers, MockReply, error_body, refusal
from assay.server.http import Connection
from assay.server.options import Faults, Options
from assay.server.streams import spoil

HOST = "127.0.0.1"
_INSTEAD = ("429", "500", "drop", "huge")  # faults in place of an answer


class MockServer:
    """A server of the OpenAI and Anthropic APIs in the running event loop: `await start()`, then it is at `url`."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.answers = MockAnswers(self.options)
        self.faults = Faults(self.options)
        self.connections: set[Connection] = set()
        self.port = 0
        self.requests = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.statuses: Counter[int] = Counter()
        self.failures: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._delay = self.options.latency_ms / 1000
        self._pause = self.options.token_ms / 1000
        self._loop: asyncio.AbstractEventLoop
        routes = {
            b"/chat/completions": self.answers.chat,
            b"/completions": self.answers.completions,
            b"/messages": self.answers.messages,
        }
        self._post = {
            prefix + path: handler for path, handler in routes.items() for prefix in (b"", b"/v1")
        }
        self._get = {
            b"/v1/models": self._models,
            b"/models": self._models,
            b"/health": self._health,
        }
        self._get[b"/stats"] = self._stats

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def start(self, *, share_port: bool = False) -> None:
        """Listen; with `share_port` several processes may listen on the same port."""
        self._loop = asyncio.get_running_loop()
        # named: asyncio sets no delay
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            listener.bind((HOST, self.options.port))
        except OSError as error:
            listener.close()
            raise UserError(
                f"port {self.options.port} cannot be used: {error.strerror}",
                fix="choose another --port, or 0 for any free one",
            ) from None
        self._server = await self._loop.create_server(
            lambda: Connection(self), sock=listener, backlog=4096
        )
        self.port = listener.getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.transport.abort()
            await self._server.wait_closed()
            self._server = None

    def count(self, status: int) -> None:
        self.statuses[status] += 1

    def handle(self, connection: Connection, method: bytes, path: bytes, body: bytes) -> None:
        """Answer one request now or, with a latency, later."""
        handler = self._post.get(path)
        if handler is None or method != b"POST":
            reply = self._other(method, path, known=handler is not None)
            self.count(reply.status)
            connection.write(reply)
            return
        number = self.requests
        self.requests = number + 1
        capacity = self.options.capacity
        if capacity and self.in_flight >= capacity:
            self._answer(connection, self._too_many())
            return
        self.in_flight += 1
        if self.in_flight > self.max_in_flight:
            self.max_in_flight = self.in_flight
        fault = self.faults.draw(number)
        if self._delay:
            self._loop.call_later(self._delay, self._finish_late, connection, handler, body, fault)
        else:
            self._finish(connection, handler, body, fault)

    def _finish_late(self, connection: Connection, handler: Any, body: bytes, fault: str) -> None:
        self._finish(connection, handler, body, fault)
        connection.resume()

    def _finish(self, connection: Connection, handler: Any, body: bytes, fault: str) -> None:
        reply = None if fault in _INSTEAD else handler(body)
        if reply is not None and reply.events and not connection.transport.is_closing():
            self._stream(connection, reply, fault)
            return
        self.in_flight -= 1
        if reply is None or fault == "torn":
            self._fail(connection, reply, fault)
        else:
            self._answer(connection, reply)

    def _stream(self, connection: Connection, reply: MockReply, fault: str) -> None:
        """Events count as one request in flight until the last was sent."""
        self.statuses[200] += 1
        self.failures.update([fault] if fault else [])

        def over() -> None:
            self.in_flight -= 1

        events = spoil(list(reply.events), fault) if fault else reply.events
        connection.stream(events, self._pause, over, tear=fault == "torn")

    def _answer(self, connection: Connection, reply: MockReply) -> None:
        self.statuses[reply.status] += 1
        connection.write(reply)

    def _fail(self, connection: Connection, reply: MockReply | None, fault: str) -> None:
        self.failures[fault] += 1
        if connection.transport.is_closing():
            return
        if fault == "429":
            self._answer(connection, self._too_many())
        elif fault == "500":
            self._answer(
                connection,
                MockReply(error_body("the mock server is set to fail", "server_error"), 500),
            )
        elif fault == "drop":
            connection.drop()
        elif reply is not None:
            connection.tear(reply)
        else:
            connection.flood()

    def _too_many(self) -> MockReply:
        headers = (("retry-after", f"{self.options.retry_after:g}"),)
        return MockReply(error_body("too many requests", "rate_limit_error"), 429, headers=headers)

    def _other(self, method: bytes, path: bytes, *, known: bool) -> MockReply:
        reader = self._get.get(path)
        if reader is None and not known:
            return refusal(f"there is nothing at {path.decode('latin-1')}", 404)
        allowed = b"POST" if known else b"GET"
        if reader is None or method != allowed:
            reply = refusal(f"use {allowed.decode()} here", 405)
            return reply._replace(headers=(("allow", allowed.decode()),))
        return MockReply(msgspec.json.encode(reader()))

    def _models(self) -> JsonObject:
        return {
            "object": "list",
            "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "assay"}],
        }

    def _health(self) -> JsonObject:
        return {"status": "ok"}

    def _stats(self) -> JsonObject:
        return {
            "requests": self.requests,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "faults": dict(sorted(self.failures.items())),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
        }
