"""The one HTTP seam of all models: send bytes, get bytes, every failure as a CallError.

Servers without TLS that no proxy stands before are spoken to by `_plain_http`, all others by pyreqwest, outside
Python's event loop. Nothing here knows what a language model is.
"""

import atexit
import os
import re
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.models._plain_http import Broken, PlainClient, TooLarge, header

MAX_BODY = 64 * 1024 * 1024
_PEM_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.S)
_PROXY_VARIABLES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


class Reply(NamedTuple):
    """An HTTP answer; `headers` has the few that were asked for and came, by their name in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Transport:
    """Connections to one server, opened at the first request and kept for all that follow."""

    def __init__(
        self, url: str, headers: Mapping[str, str], *, wanted: Sequence[str] = (), max_body: int = MAX_BODY
    ) -> None:
        self.url = url
        self.shown = shown_url(url)
        self._path = path_of(url)
        self.max_body = max_body
        self._headers = dict(headers)
        self._wanted = ("content-type", *wanted)
        self._plain: PlainClient | None = None
        self._client: Any = None
        self._timeouts: dict[float, timedelta] = {}
        self._errors: Any = None

    async def post(self, body: bytes, *, timeout: float) -> Reply:
        """Send a body to the server's address and read the whole answer, if it is of a sane size."""
        if self._plain is not None or is_plain(self.url):
            return await self._exchange_plainly("POST", self._path, body, timeout)
        client = self._client or self._open()
        return await self._exchange(client.post(self.url).body_bytes(body), timeout)

    async def get(self, url: str, *, timeout: float) -> Reply:
        """Read another address of the same server."""
        if self._plain is not None or is_plain(self.url):
            return await self._exchange_plainly("GET", path_of(url), b"", timeout)
        client = self._client or self._open()
        return await self._exchange(client.get(url), timeout)

    async def _exchange_plainly(self, method: str, path: str, body: bytes, timeout: float) -> Reply:
        try:
            if self._plain is None:
                self._plain = PlainClient(self.url, self._headers, self.max_body)
            status, head, content = await self._plain.send(method, path, body, timeout)
        except ValueError:  # its text may hold the value of a header
            raise self._unusable() from None
        except TooLarge as error:
            raise self._too_large(error.size) from None
        except TimeoutError:
            raise self._late(timeout) from None
        except Broken as error:
            if error.answered:
                raise TransientError(f"the answer broke off: {error}", where=self.shown) from None
            raise self._no_answer(str(error)) from None
        except OSError as error:
            raise self._no_answer(reason_of(error)) from None
        if status == 200:
            return Reply(status, {}, content)
        headers = ((name, header(head, name.encode())) for name in self._wanted)
        return Reply(status, {name: value.decode("latin-1") for name, value in headers if value is not None}, content)

    async def _exchange(self, request: Any, timeout: float) -> Reply:
        limit = self._timeouts.get(timeout)
        if limit is None:
            limit = self._timeouts[timeout] = timedelta(seconds=timeout)
        try:
            async with request.timeout(limit).build_streamed() as response:
                status: int = response.status
                content = await self._read(response)
                if status == 200:
                    return Reply(status, {}, content)
                headers = ((name, response.get_header(name)) for name in self._wanted)
                return Reply(status, {name: value for name, value in headers if value is not None}, content)
        except self._errors.RequestTimeoutError:
            raise self._late(timeout) from None
        except self._errors.PyreqwestError as error:
            raise self._failure(error) from None

    async def _read(self, response: Any) -> bytes:
        """The body; a stated or an actual length beyond the limit is refused without being held."""
        length = response.get_header("content-length")
        if length is not None and length.isdigit():
            if int(length) > self.max_body:
                raise self._too_large(int(length))
            return (await response.bytes()).to_bytes()
        pieces: list[bytes] = []
        size = 0
        reader = response.body_reader
        while (piece := await reader.read_chunk()) is not None:
            size += len(piece)
            if size > self.max_body:
                raise self._too_large(size)
            pieces.append(piece.to_bytes())
        return b"".join(pieces)

    def _late(self, timeout: float) -> TransientError:
        what = f"no answer within {timeout:g} s"
        return TransientError(what, where=self.shown, fix="raise `timeout`", overload=True, timed_out=True)

    def _no_answer(self, reason: str) -> TransientError:
        return TransientError(
            f"no answer from the server: {reason}",
            where=self.shown,
            fix="check that the server runs and that `endpoint` is its address",
            unreachable=True,
        )

    def _unusable(self) -> LaneError:
        return LaneError(
            "the headers or certificates of this model cannot be used",
            where=self.shown,
            fix="check `headers`, the API key, and the file named by SSL_CERT_FILE",
        )

    def _too_large(self, size: int) -> PermanentError:
        most = f"at most {self.max_body / 1e6:.0f} MB are read"
        return PermanentError(
            f"the answer is too large: {size / 1e6:.0f} MB or more, {most}",
            where=self.shown,
            fix="check that the endpoint is a model server; lower `max_tokens`",
        )

    def _failure(self, error: Any) -> CallError:
        causes = (getattr(error, "details", None) or {}).get("causes") or []
        reason = causes[-1]["message"] if causes else error.message
        if isinstance(error, (self._errors.BodyDecodeError, self._errors.ReadError)):
            return TransientError(f"the answer broke off: {reason}", where=self.shown)
        if "certificate" in reason:
            return LaneError(
                f"the server's certificate is not trusted: {reason}",
                where=self.shown,
                fix="name the file of its certificate authority in SSL_CERT_FILE",
            )
        return self._no_answer(reason)

    def _open(self) -> Any:
        from pyreqwest import exceptions
        from pyreqwest.client import ClientBuilder

        builder = ClientBuilder().max_connections(None).pool_max_idle_per_host(4096).follow_redirects(False)
        builder = builder.connect_timeout(timedelta(seconds=30)).user_agent("assay")
        if is_loopback(self.url):
            builder = builder.no_proxy()
        for certificate in certificates():
            builder = builder.add_root_certificate_pem(certificate)
        self._errors = exceptions
        settle_at_exit()
        try:
            self._client = builder.default_headers(self._headers).build()
        except ValueError:  # its text may hold the value of a header
            raise self._unusable() from None
        return self._client

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        plain, self._plain = self._plain, None
        if plain is not None:
            plain.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def is_plain(url: str) -> bool:
    """Whether the server is spoken to without TLS and without a proxy."""
    if not url.startswith("http://"):
        return False
    return is_loopback(url) or not any(os.environ.get(name) for name in _PROXY_VARIABLES)


def reason_of(error: OSError) -> str:
    """Why a connection failed, in the system's words; of several addresses that were tried, for the first one."""
    number = error.errno if isinstance(error.errno, int) and error.errno > 0 else None
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        number = int(found[1])
    return os.strerror(number) if number else (error.strerror or str(error))


def path_of(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def certificates() -> list[bytes]:
    """Further trusted certificates, one PEM block each, from the variables that other tools use for them."""
    for variable in _CA_VARIABLES:
        if path := os.environ.get(variable):
            try:
                return _PEM_BLOCK.findall(Path(path).read_bytes())
            except OSError as error:
                raise LaneError(f"{variable} names a file that cannot be read: {error.strerror}", where=path) from None
    return []


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def shown_url(url: str) -> str:
    """The address without user, password and query: safe to print."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"


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
            fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        except OSError:  # the thread has just ended
            continue
        if fields["Name"] == "pyreqwest":
            switches = fields["voluntary_ctxt_switches"] + fields["nonvoluntary_ctxt_switches"]
            threads.append((fields["State"][:1], switches))
    return threads
