"""HTTP/1.1 without TLS or a proxy, on asyncio's sockets and llhttp's parser: what local servers speak, and nearly twice
as fast as a general client.

Such a server is next door, so the client is what one waits for. A connection carries one request at a time and is kept
for the next if the answer left no doubt about its end. Whatever breaks is a `BrokenConnection`; where the head of the answer had
come, it has that. Nothing is sent twice here: trying again is the lane's decision.
"""

import asyncio
import select
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from assay.models._in_flight import SMALL, Share, allowance

CONNECT_TIMEOUT = 30.0
MAX_HEAD = 256 * 1024
MAX_ERROR_BODY = 1024 * 1024  # of an answer that is not 2xx; the rest is left unread

Headers = Mapping[str, str] | None
Arrivals = list[tuple[int, float]]  # how much of the body had come, and when


class HttpAnswer(NamedTuple):
    """What came; names of headers are in lower case."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)


class BrokenConnection(Exception):
    """The connection ended, or what came is not HTTP; `answered` tells whether an answer had begun."""

    def __init__(self, reason: str, *, answered: bool) -> None:
        super().__init__(reason)
        self.answered = answered


class AnswerTooLarge(Exception):
    """The answer has at least `size` bytes, more than may be held."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class PlainClient:
    """Connections to one server. Belongs to the event loop of its first request. ValueError: unusable headers."""

    def __init__(self, url: str, headers: Mapping[str, str], max_body: int) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "localhost", parts.port or 80
        self._max_body = max_body
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        host = parts.netloc.rpartition("@")[2]
        lines = {"host": host, "user-agent": "assay", "accept": "*/*", **headers}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            lines.setdefault("authorization", f"Basic {b64encode(pair).decode()}")
        self._starts: dict[tuple[str, str], bytes] = {}
        self._fields = _fields(lines)

    async def send(
        self,
        method: str,
        url: str,
        body: bytes,
        timeout: float,
        headers: Headers = None,
        arrivals: Arrivals | None = None,
    ) -> HttpAnswer:
        """The answer; of one that is not 2xx as much as came. `headers` are those of this request only; `arrivals` gets
        the size and the time of each piece. Raises TimeoutError, OSError, BrokenConnection or AnswerTooLarge."""
        more = _fields(headers) if headers else b""
        connection = self._free() or await self._connect(min(timeout, CONNECT_TIMEOUT))
        start = (self._starts.get((method, url)) or self._start(method, url)) + more
        request = b"%bcontent-length: %d\r\n\r\n%b" % (start, len(body), body)
        answer = connection.send(request, timeout, arrivals)
        try:
            result = await answer
        except BaseException:
            connection.abort()
            raise
        finally:
            connection.settle()
            if connection.closed:
                self._all.discard(connection)
            else:
                self._idle.append(connection)
        return result

    def _start(self, method: str, url: str) -> bytes:
        """Of a request: its first line and the fields that all have."""
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        start = self._starts[method, url] = f"{method} {path} HTTP/1.1\r\n".encode() + self._fields
        return start

    def _free(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet():
                return connection
            connection.abort()
            self._all.discard(connection)
        return None

    async def _connect(self, timeout: float) -> "_Connection":
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            _, connection = await loop.create_connection(
                lambda: _Connection(self._max_body), self._host, self._port
            )
        self._all.add(connection)
        return connection

    async def close(self) -> None:
        for connection in self._all:
            connection.abort()
        self._all.clear()
        self._idle.clear()


def _fields(headers: Mapping[str, str]) -> bytes:
    # a line end would begin a new field
    if any(not (name + value).isprintable() for name, value in headers.items()):
        raise ValueError("a header holds characters that it must not")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")


class _Connection(asyncio.Protocol):
    """One request at a time. The methods `on_…` are called by the parser."""

    def __init__(self, max_body: int) -> None:
        self.closed = False
        self._max_body = self._most = max_body
        self._loop = asyncio.get_running_loop()
        self._parser = HttpResponseParser(self)
        self._socket = select.poll()
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left = self._now = 0.0
        self._share: Share | None = None
        self._arrivals: Arrivals | None = None
        self._begin()

    def _begin(self) -> None:
        self._status = 0  # of the last head, once it is complete and not an interim one
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._stated = 0  # the size that the head tells
        self._overhead = 0  # bytes since the last one of a body
        self._kept = False
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._socket.register(transport.get_extra_info("socket"), select.POLLIN)

    def is_quiet(self) -> bool:
        """Return whether nothing came since the last answer: neither an end, nor bytes that the next one would begin with."""
        return not self.closed and not self._socket.poll(0)

    def send(
        self, request: bytes, timeout: float, arrivals: Arrivals | None
    ) -> "asyncio.Future[HttpAnswer]":
        self._begin()
        self._arrivals = arrivals
        self._answer = self._loop.create_future()
        self._timer = self._loop.call_later(timeout, self._fail, TimeoutError())
        self._transport.write(request)
        return self._answer

    def settle(self) -> None:
        """The answer was taken over, or is not wanted any more."""
        if self._timer is not None:
            self._timer.cancel()
        if not (self._ended and self._kept):
            self.abort()
        if self._share is not None:
            allowance().give_back(self._share)
            self._share = None
        self._answer = None

    def abort(self) -> None:
        self.closed = True
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        # nobody asked: such a connection is not to be trusted
        if self._answer is None or self._answer.done():
            self.abort()
            return
        before = self._size
        self._now = self._loop.time()  # pieces that come together have one time
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._kept = False
            self._fail(BrokenConnection("it is not HTTP", answered=True))
            return
        if self._ended:
            return
        self._overhead = 0 if self._size > before else self._overhead + len(data)
        if self._overhead > MAX_HEAD:
            self._fail(BrokenConnection("its head is too large", answered=True))
        elif self._size > self._most or (self._stated > self._most and self._status < 300):
            self._fail(AnswerTooLarge(max(self._stated, self._size)))
        elif self._status and max(self._stated, self._size) > SMALL:
            self._hold()

    def on_message_begin(self) -> None:
        if self._ended:
            self._kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._status:  # trailers of a body, or the head of what nobody asked for
            return
        name = name.lower()
        self._headers.append((name, value))
        if name == b"content-length" and value.isdigit():
            self._stated = int(value)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._ended:
            return
        if status < 200:
            self._headers, self._stated = [], 0
            return
        self._status = status
        self._kept = self._parser.should_keep_alive()
        self._most = self._max_body if status < 300 else MAX_ERROR_BODY

    def on_body(self, piece: bytes) -> None:
        if not self._ended:
            self._size += len(piece)
            self._pieces.append(piece)
            if self._arrivals is not None:
                self._arrivals.append((self._size, self._now))

    def on_message_complete(self) -> None:
        if self._status and not self._ended and self._size <= self._most:
            self._ended = True
            self._done()

    def _hold(self) -> None:
        """Wait before reading on if the answers in flight are too much together; the deadline waits as well."""
        if self._share is None:
            self._share = Share()
            self._share.proceed = lambda: self._loop.call_soon_threadsafe(self._read_on)
        if self._timer is not None and not allowance().take(
            self._share, self._size, min(self._stated, self._most)
        ):
            self._left = self._timer.when() - self._loop.time()
            self._timer.cancel()
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._answer is not None and not self._answer.done() and not self.closed:
            self._timer = self._loop.call_later(self._left, self._fail, TimeoutError())
            self._transport.resume_reading()

    def _done(self) -> None:
        if self._answer is not None and not self._answer.done():
            pieces, self._pieces = self._pieces, []
            self._answer.set_result(HttpAnswer(self._status, self._headers, b"".join(pieces)))

    def _fail(self, error: Exception) -> None:
        if self._status >= 300:  # it says enough
            self._done()
        elif self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        names = {name for name, _ in self._headers}
        if self._status and exc is None and not names & {b"content-length", b"transfer-encoding"}:
            self._done()  # its end is that of the connection
            return
        reason = str(exc) if exc is not None else "the connection was closed"
        self._fail(BrokenConnection(reason, answered=bool(self._status or self._overhead)))
