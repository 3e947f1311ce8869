"""HTTP/1.1 on asyncio's sockets and llhttp's parser: keep-alive, pipelining, chunked request bodies, and nothing else.

The server must never be what a benchmark measures: an answer is a single write.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from assay.server.answers import MockReply, refusal

if TYPE_CHECKING:
    from assay.server.server import MockServer

MAX_HEAD = 64 * 1024
MAX_BODY = 256 * 1024 * 1024
HUGE_BODY = 200 * 1000 * 1000
_PIECE = b"a" * 65536
_OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n%b\r\n"
)
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """What the client sent is not HTTP that this server reads; the connection is closed after the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def encode(reply: MockReply, *, close: bool = False) -> bytes:
    """The bytes of an answer."""
    if (
        reply.status == 200
        and not reply.headers
        and not close
        and reply.content_type == b"application/json"
    ):
        return _OK % (len(reply.body), reply.body)
    extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers).encode()
    if close:
        extra += b"connection: close\r\n"
    reason = _REASONS.get(reply.status, "Unknown").encode()
    head = b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n"
    return head % (reply.status, reason, reply.content_type, len(reply.body), extra) + reply.body


class Connection(asyncio.Protocol):
    """One client. Requests are answered in order: the next one is looked at when the last one is answered."""

    def __init__(self, server: "MockServer") -> None:
        self.server = server
        self.waiting = False
        self.last = False
        self.huge_left = 0
        self.paused = False
        self.transport: asyncio.Transport
        self._parser = HttpRequestParser(self)
        self._requests: deque[tuple[bytes, bytes, bytes, bool]] = deque()
        self._bad: BadRequest | None = None  # what came after them
        self._head = self._size = 0
        self.on_message_begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self.huge_left = 0

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            cause = error.__context__
            is_ours = isinstance(cause, BadRequest)
            self._bad = cause if is_ours else BadRequest(f"the request is not HTTP/1.1: {error}")
        if self._head > MAX_HEAD:
            self._bad = self._bad or BadRequest("the request's head is too large", 431)
        if not self.waiting:
            self.resume()

    def on_message_begin(self) -> None:
        self._url = b""
        self._pieces: list[bytes] = []
        self._size = 0
        self._expects = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name, value = name.lower(), value.lower()
        if name == b"expect":
            self._expects = value == b"100-continue"
        elif name == b"content-length" and value.isdigit():
            self._grow(int(value))
        elif name == b"transfer-encoding" and value != b"chunked":
            raise BadRequest("this transfer-encoding is not known", 501)

    def on_headers_complete(self) -> None:
        self._head = self._size = 0
        if self._expects:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, piece: bytes) -> None:
        self._head = 0
        self._grow(len(piece))
        self._pieces.append(piece)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_BODY:
            raise BadRequest("the request's body is too large", 413)

    def on_message_complete(self) -> None:
        self._head = 0
        path, body = self._url.partition(b"?")[0], b"".join(self._pieces)
        last = not self._parser.should_keep_alive()
        self._requests.append((self._parser.get_method(), path, body, last))

    def resume(self) -> None:
        """Handle requests until one has to wait or there is no whole one."""
        while self._requests and not self.waiting and not self.transport.is_closing():
            method, path, body, self.last = self._requests.popleft()
            self.waiting = True
            self.server.handle(self, method, path, body)
        if self._bad is not None and not self.waiting and not self.transport.is_closing():
            self.last = True
            self.server.count(self._bad.status)
            self.write(refusal(str(self._bad), self._bad.status))

    def write(self, reply: MockReply) -> None:
        """Send an answer and continue with what the client has sent meanwhile."""
        if not self.transport.is_closing():
            self.transport.write(encode(reply, close=self.last))
        self.done()

    def done(self) -> None:
        if self.last:
            self.transport.close()
        self.waiting = False

    def drop(self) -> None:
        self.last = True
        self.done()

    def tear(self, reply: MockReply) -> None:
        """Promise the whole answer, send half of it, hang up."""
        whole = encode(reply)
        self.transport.write(whole[: len(whole) - len(reply.body) // 2 - 1])
        self.drop()

    def stream(
        self, events: Sequence[bytes], pause: float, then: Callable[[], None], *, tear: bool = False
    ) -> None:
        """Send events as chunks, with a pause before each but the first; with `tear` hang up in place of the end."""
        self.transport.write(_STREAM % (b"connection: close\r\n" if self.last else b""))
        chunks = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
        if not pause:
            self.transport.write(b"".join(chunks))
            self._end_stream(then, tear)
        else:
            self._send_next(iter(chunks), pause, then, tear)

    def _send_next(
        self, chunks: Iterator[bytes], pause: float, then: Callable[[], None], tear: bool
    ) -> None:
        chunk = None if self.transport.is_closing() else next(chunks, None)
        if chunk is None:
            self._end_stream(then, tear)
            self.resume()
            return
        self.transport.write(chunk)
        asyncio.get_running_loop().call_later(pause, self._send_next, chunks, pause, then, tear)

    def _end_stream(self, then: Callable[[], None], tear: bool) -> None:
        then()
        if tear:
            self.drop()
        else:
            self.transport.write(b"0\r\n\r\n")
            self.done()

    def flood(self) -> None:
        """A well-formed answer of 200 MB, made while it is sent, so that it is never held."""
        opening = (
            b'{"id":"huge","object":"chat.completion","choices":[{"index":0,"message":{"content":"'
        )
        self.transport.write(_OK % (HUGE_BODY, opening))
        self.huge_left = HUGE_BODY - len(opening)
        self._pour()

    def _pour(self) -> None:
        closing = b'"}}]}'
        while self.huge_left > 0 and not self.paused and not self.transport.is_closing():
            size = min(len(_PIECE), self.huge_left - len(closing))
            self.transport.write(_PIECE[:size] if size > 0 else closing)
            self.huge_left -= size if size > 0 else len(closing)
            if self.huge_left == 0:
                self.done()
                self.resume()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        if self.huge_left:  # not now: asyncio calls this in the middle of a write of its own
            asyncio.get_running_loop().call_soon(self._pour)
