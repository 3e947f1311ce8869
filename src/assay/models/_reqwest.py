"""HTTPS, and whatever a proxy stands before: pyreqwest, outside Python's event loop, imported when it is used."""

import asyncio
import atexit
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from assay.models._in_flight import SMALL, Share, allowance
from assay.models._plain_http import (
    CONNECT_TIMEOUT,
    MAX_ERROR_BODY,
    AnswerTooLarge,
    Arrivals,
    BrokenConnection,
    Headers,
    HttpAnswer,
)
from assay.sdk import LaneError

_PEM_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.S)
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


class ReqwestClient:
    """The same as `PlainClient`, which see. ValueError: unusable headers or certificates."""

    def __init__(self, headers: Mapping[str, str], max_body: int, *, no_proxy: bool) -> None:
        from pyreqwest import exceptions
        from pyreqwest.client import ClientBuilder

        builder = (
            ClientBuilder()
            .max_connections(None)
            .pool_max_idle_per_host(4096)
            .follow_redirects(False)
        )
        builder = builder.connect_timeout(timedelta(seconds=CONNECT_TIMEOUT)).user_agent("assay")
        if no_proxy:
            builder = builder.no_proxy()
        for certificate in certificates():
            builder = builder.add_root_certificate_pem(certificate)
        settle_at_exit()
        self._max_body = max_body
        self._errors: Any = exceptions
        self._client: Any = builder.default_headers(dict(headers)).build()

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
        the size and the time of each piece. Raises TimeoutError, BrokenConnection, AnswerTooLarge or LaneError."""
        request = (
            self._client.post(url).body_bytes(body) if method == "POST" else self._client.get(url)
        )
        if headers:
            request = request.headers(dict(headers))
        # else a broken body would cost the status too
        request = request.streamed_read_buffer_limit(0)
        reading = _Reading(self._max_body, arrivals)
        try:
            async with asyncio.timeout(timeout) as deadline, request.build_streamed() as response:
                reading.begin(response)
                await reading.read_body(response, deadline)
        except (TimeoutError, AnswerTooLarge, self._errors.PyreqwestError) as error:
            if reading.status < 300:  # else it says enough
                raise self._failure(error, answered=reading.status > 0) from None
        finally:
            if reading.share is not None:
                allowance().give_back(reading.share)
        return HttpAnswer(reading.status, reading.headers, b"".join(reading.pieces))

    def _failure(self, error: Any, *, answered: bool) -> Exception:
        if isinstance(error, (TimeoutError, AnswerTooLarge)):
            return error
        if isinstance(error, (self._errors.RequestTimeoutError, self._errors.ConnectTimeoutError)):
            return TimeoutError()
        causes = (getattr(error, "details", None) or {}).get("causes") or []
        reason = causes[-1]["message"] if causes else error.message
        if "certificate" in reason:
            fix = "name the file of its certificate authority in SSL_CERT_FILE"
            return LaneError(f"the server's certificate is not trusted: {reason}", fix=fix)
        return BrokenConnection(
            reason, answered=answered or isinstance(error, self._errors.ReadError)
        )

    async def close(self) -> None:
        await self._client.close()


class _Reading:
    """What came of one answer."""

    def __init__(self, max_body: int, arrivals: Arrivals | None) -> None:
        self.status = 0
        self.arrivals = arrivals
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.share: Share | None = None
        self._max_body = max_body

    def begin(self, response: Any) -> None:
        self.status = response.status
        if self.status != 200:
            for name in response.headers:
                with suppress(ValueError):  # not a text
                    self.headers.append((name.encode(), response.get_header(name).encode()))

    async def read_body(self, response: Any, deadline: asyncio.Timeout) -> None:
        """The body, piece by piece: also one that is far larger when it is unpacked is never held."""
        stated = _stated_length(response) if self.status < 300 else 0
        most = self._max_body if self.status < 300 else MAX_ERROR_BODY
        if stated > most:
            raise AnswerTooLarge(stated)
        if self.status == 200 and 0 < stated <= SMALL and self.arrivals is None:
            self.pieces.append((await response.bytes()).to_bytes())
            return
        size = 0
        reader = response.body_reader
        await self._wait(size, stated, deadline)
        while (piece := await reader.read_chunk()) is not None:
            self.pieces.append(piece.to_bytes())
            size += len(piece)
            if self.arrivals is not None:
                self.arrivals.append((size, time.monotonic()))
            if size > most:
                raise AnswerTooLarge(size)
            await self._wait(size, stated, deadline)

    async def _wait(self, received: int, stated: int, deadline: asyncio.Timeout) -> None:
        """For the answers in flight to be fewer, if they are too much together; the deadline waits as well."""
        if max(received, stated) <= SMALL:
            return
        loop, room = asyncio.get_running_loop(), asyncio.Event()
        self.share = self.share or Share()
        self.share.proceed = lambda: loop.call_soon_threadsafe(room.set)
        if allowance().take(self.share, received, stated):
            return
        left = (deadline.when() or 0.0) - loop.time()
        deadline.reschedule(None)
        await room.wait()
        deadline.reschedule(loop.time() + left)


def _stated_length(response: Any) -> int:
    """0 if there is none. Where a body comes in chunks, the header may hold anything."""
    with suppress(ValueError):  # not a text, or too many digits
        length = response.get_header("content-length") or ""
        return int(length) if length.isdecimal() else 0
    return 0


def certificates() -> list[bytes]:
    """Further trusted certificates, one PEM block each, from the variables that other tools use for them."""
    for variable in _CA_VARIABLES:
        if path := os.environ.get(variable):
            try:
                return _PEM_BLOCK.findall(Path(path).read_bytes())
            except OSError as error:
                raise LaneError(
                    f"{variable} names a file that cannot be read: {error.strerror}", where=path
                ) from None
    return []


_TASKS = Path("/proc/self/task")
_PATIENCE = 1.0
_PAUSE = 0.002
_BLIND_PAUSE = 0.05


@cache
def settle_at_exit() -> None:
    """Arrange it, once for the process."""
    atexit.register(settle)


def settle() -> None:
    """Let pyreqwest's thread come to rest before the interpreter goes away.

    It gives Python objects back a moment after the last answer. If the interpreter is being torn down just then,
    CPython aborts the process (seen with pyreqwest 0.15 and Python 3.11: a third of short scripts died so). So the GIL
    is released until the thread slept through a whole pause and nothing of it waits for the GIL.
    """
    if not _TASKS.is_dir():
        time.sleep(_BLIND_PAUSE)
        return
    deadline = time.monotonic() + _PATIENCE
    before = None
    while time.monotonic() < deadline:
        now = _activity()
        if now == before and all(state == "S" for state, _ in now):
            return
        before = now
        time.sleep(_PAUSE)


def _activity() -> list[tuple[str, str]]:
    """State and number of context switches of each thread of pyreqwest."""
    threads: list[tuple[str, str]] = []
    for task in _TASKS.iterdir():
        try:
            fields = dict(
                line.split(":\t", 1)
                for line in (task / "status").read_text().splitlines()
                if ":\t" in line
            )
        except OSError:  # the thread has just ended
            continue
        if fields["Name"] == "pyreqwest":
            switches = fields["voluntary_ctxt_switches"] + fields["nonvoluntary_ctxt_switches"]
            threads.append((fields["State"][:1], switches))
    return threads
