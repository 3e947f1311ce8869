"""HTTP/1.1 without TLS or a proxy, on raw asyncio: what local servers speak, twice as fast as a general client.

Such a server is next door, so the client is what one waits for. A connection carries one request at a time and is kept
for the next; whatever is unusual (an answer without a length, a chunked one, `connection: close`) is read, and whatever
breaks is a `Broken`. Nothing is sent twice here: trying again is the lane's decision.
"""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

CONNECT_TIMEOUT = 30.0
MAX_HEAD = 256 * 1024


class Broken(Exception):
    """The connection ended; `answered` tells whether an answer had begun."""

    def __init__(self, reason: str, *, answered: bool) -> None:
        super().__init__(reason)
        self.answered = answered


class TooLarge(Exception):
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
        if any(not (name + value).isprintable() for name, value in lines.items()):  # a line end would begin a new field
            raise ValueError("a header holds characters that it must not")
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode("latin-1")

    async def send(self, method: str, path: str, body: bytes, timeout: float) -> "tuple[int, bytes, bytes]":
        """(status, head in lower case, body) of the answer. Raises TimeoutError, OSError, Broken or TooLarge."""
        connection = self._free() or await self._connect()
        request = b"%b %b HTTP/1.1\r\n%bcontent-length: %d\r\n\r\n%b" % (
            method.encode(),
            path.encode(),
            self._fields,
            len(body),
            body,
        )
        answer = connection.send(request)
        timer = asyncio.get_running_loop().call_later(timeout, connection.expire)
        try:
            result = await answer
        except BaseException:
            connection.abort()
            self._all.discard(connection)
            raise
        finally:
            timer.cancel()
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.abort()
            self._all.discard(connection)
        return result

    def _free(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
            self._all.discard(connection)
        return None

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, connection = await loop.create_connection(lambda: _Connection(self._max_body), self._host, self._port)
        self._all.add(connection)
        return connection

    def close(self) -> None:
        for connection in self._all:
            connection.abort()
        self._all.clear()
        self._idle.clear()


class _Connection(asyncio.Protocol):
    """One request at a time; the answer is cut by its length, its chunks, or the end of the connection."""

    def __init__(self, max_body: int) -> None:
        self.closed = False
        self.reusable = False
        self._max_body = max_body
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[tuple[int, bytes, bytes]] | None = None
        self._buffer = bytearray()
        self._body = bytearray()  # of a chunked answer
        self._status = 0
        self._head = b""
        self._length: int | None = None
        self._chunked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, request: bytes) -> "asyncio.Future[tuple[int, bytes, bytes]]":
        self._answer = asyncio.get_running_loop().create_future()
        self._buffer.clear()
        self._body.clear()
        self._head = b""
        self._transport.write(request)
        return self._answer

    def expire(self) -> None:
        self._fail(TimeoutError())

    def abort(self) -> None:
        self.closed = True
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():  # nobody asked: such a connection is not to be trusted
            self.abort()
            return
        self._buffer += data
        try:
            if not self._head and not self._read_head():
                return
            if len(self._buffer) > self._max_body:
                raise TooLarge(len(self._buffer))
            self._read_body()
        except (TooLarge, Broken) as error:
            self._fail(error)
        except (ValueError, IndexError):
            self._fail(Broken("the answer is not HTTP", answered=True))

    def _read_head(self) -> bool:
        """Cut the head off the buffer once it is there; interim answers (1xx) are skipped."""
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._buffer[:end])
            if not head.startswith(b"HTTP/1."):
                raise Broken("the answer is not HTTP", answered=True)
            del self._buffer[: end + 4]
            self._status = int(head[9:12])
            if self._status >= 200:
                self._head = head.lower() + b"\r\n"
                self._plan_body()
                return True
        if len(self._buffer) > MAX_HEAD:
            raise Broken("the head of the answer is too large", answered=True)
        return False

    def _plan_body(self) -> None:
        self._chunked = b"chunked" in (header(self._head, b"transfer-encoding") or b"")
        length = header(self._head, b"content-length")
        self._length = None if self._chunked or length is None else int(length)
        if self._status in (204, 304):
            self._length = 0
        if self._length is not None and self._length > self._max_body:
            raise TooLarge(self._length)
        has_end = self._chunked or self._length is not None
        kept = header(self._head, b"connection") != b"close" and self._head.startswith(b"http/1.1")
        self.reusable = has_end and kept

    def _read_body(self) -> None:
        if self._length is not None:
            if len(self._buffer) >= self._length:
                self.reusable = self.reusable and len(self._buffer) == self._length
                self._done(bytes(self._buffer[: self._length]))
        elif self._chunked:
            self._read_chunks()

    def _read_chunks(self) -> None:
        """Move whole chunks from the buffer to the body; lines after the last one (trailers) are passed over."""
        buffer = self._buffer
        while (line_end := buffer.find(b"\r\n")) >= 0:
            size = int(bytes(buffer[:line_end]).partition(b";")[0], 16)
            if len(self._body) + size > self._max_body:
                raise TooLarge(len(self._body) + size)
            if size == 0:
                if buffer.find(b"\r\n\r\n", line_end) >= 0:
                    self._done(bytes(self._body))
                return
            if len(buffer) < line_end + 2 + size + 2:
                return
            self._body += buffer[line_end + 2 : line_end + 2 + size]
            del buffer[: line_end + 2 + size + 2]

    def _done(self, body: bytes) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._status, self._head, body))

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._head and self._length is None and not self._chunked and exc is None:
            self._done(bytes(self._buffer))
            return
        reason = str(exc) if exc is not None else "the connection was closed"
        self._fail(Broken(reason, answered=bool(self._head or self._buffer)))


def header(head: bytes, name: bytes) -> bytes | None:
    """The value of a header; `head` is in lower case, begins with the status line and ends with a line end."""
    start = head.find(b"\r\n" + name + b":")
    if start < 0:
        return None
    start += len(name) + 3
    return head[start : head.find(b"\r\n", start)].strip()
