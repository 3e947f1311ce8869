"""HTTP/1.1 on a raw asyncio protocol: keep-alive, pipelining, chunked request bodies, and nothing else.

Cut by hand because the server must never be what a benchmark measures: one `find` for the head, one for the
length, and a single write for the answer.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from assay.server.answers import Reply, refusal

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


def encode(reply: Reply, *, close: bool = False) -> bytes:
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


def header(head: bytes, name: bytes) -> bytes | None:
    """The value of a header; `head` is in lower case and begins with the request line."""
    start = head.find(b"\r\n" + name + b":")
    if start < 0:
        return None
    start += len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else len(head)].strip()


class Connection(asyncio.Protocol):
    """One client. Requests are answered in order: the next one is looked at when the last one is answered."""

    def __init__(self, server: "MockServer") -> None:
        self.server = server
        self.buffer = bytearray()
        self.waiting = False
        self.last = False
        self.huge_left = 0
        self.paused = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.connections.discard(self)
        self.huge_left = 0

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.waiting:
            self._next()

    def _next(self) -> None:
        """Handle requests until one has to wait or the buffer has no whole one."""
        while self.buffer and not self.waiting and not self.transport.is_closing():
            try:
                request = self._cut()
            except BadRequest as error:
                self.last = True
                self.server.count(error.status)
                self.write(refusal(str(error), error.status))
                return
            if request is None:
                return
            method, path, body = request
            self.waiting = True
            self.server.handle(self, method, path, body)

    def _cut(self) -> tuple[bytes, bytes, bytes] | None:
        """Take the first whole request off the buffer: method, path, body."""
        buffer = self.buffer
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > MAX_HEAD:
                raise BadRequest("the request's head is too large", 431)
            return None
        head = bytes(buffer[:end])
        low = head.lower()
        line = head[: head.find(b"\r\n")] if b"\r\n" in head else head
        parts = line.split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            raise BadRequest("the request line is not HTTP/1.1")
        body, after = self._body(low, end + 4)
        if body is None:
            if len(buffer) == end + 4 and header(low, b"expect") == b"100-continue":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        self.last = header(low, b"connection") == b"close" or parts[2] == b"HTTP/1.0"
        del buffer[:after]
        return parts[0], parts[1].partition(b"?")[0], body

    def _body(self, low: bytes, start: int) -> tuple[bytes | None, int]:
        """The body that starts there and where it ends; None while it is not complete."""
        length = header(low, b"content-length")
        if length is not None:
            if not length.isdigit():
                raise BadRequest("content-length is not a number")
            size = int(length)
            if size > MAX_BODY:
                raise BadRequest("the request's body is too large", 413)
            end = start + size
            return (
                (bytes(self.buffer[start:end]), end) if len(self.buffer) >= end else (None, start)
            )
        coding = header(low, b"transfer-encoding")
        if coding is None:
            return b"", start
        if coding != b"chunked":
            raise BadRequest("this transfer-encoding is not known", 501)
        return dechunk(self.buffer, start)

    def write(self, reply: Reply) -> None:
        """Send an answer and continue with what the client has sent meanwhile."""
        if not self.transport.is_closing():
            self.transport.write(encode(reply, close=self.last))
        self.done()

    def done(self) -> None:
        if self.last:
            self.transport.close()
        self.waiting = False

    def resume(self) -> None:
        """Continue after an answer that had to wait."""
        if self.buffer:
            self._next()

    def drop(self) -> None:
        self.last = True
        self.done()

    def tear(self, reply: Reply) -> None:
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


def dechunk(buffer: bytearray, start: int) -> tuple[bytes | None, int]:
    """A chunked body that starts there and where it ends; None while it is not complete."""
    body = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", start)
        if line_end < 0:
            return None, start
        try:
            size = int(bytes(buffer[start:line_end]).partition(b";")[0], 16)
        except ValueError:
            raise BadRequest("a chunk has no size") from None
        if size < 0 or len(body) + size > MAX_BODY:
            raise BadRequest("the request's body is too large", 413)
        start = line_end + 2
        if size == 0:
            return _trailer(buffer, start, bytes(body))
        if len(buffer) < start + size + 2:
            return None, start
        body += buffer[start : start + size]
        start += size + 2


def _trailer(buffer: bytearray, start: int, body: bytes) -> tuple[bytes | None, int]:
    """Skip the header lines that may follow the last chunk, up to an empty line."""
    while True:
        end = buffer.find(b"\r\n", start)
        if end < 0:
            return None, start
        if end == start:
            return body, end + 2
        start = end + 2
