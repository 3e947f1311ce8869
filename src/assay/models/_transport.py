"""The one HTTP seam of all models: send bytes, get bytes, every failure as a CallError.

Servers without TLS that no proxy stands before are spoken to by `_plain_http`, all others by `_reqwest`. An answer
that is not 2xx is never lost to what is wrong with its body: its status decides what the failure is. Nothing here
knows what a language model is.
"""

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from assay.models._plain_http import (
    AnswerTooLarge,
    Arrivals,
    BrokenConnection,
    Headers,
    PlainClient,
)
from assay.models._reqwest import ReqwestClient
from assay.sdk import LaneError, PermanentError, TransientError

MAX_BODY = 64 * 1024 * 1024
_WANTED = ("retry-after", "retry-after-ms", "location")
_PROXY_VARIABLES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


class HttpReply(NamedTuple):
    """An HTTP answer; `headers` has the few that tell something and came, by their name in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Transport:
    """Connections to one server, opened at the first request and kept for all that follow."""

    def __init__(self, url: str, headers: Mapping[str, str], *, max_body: int = MAX_BODY) -> None:
        self.url = url
        self.shown = shown_url(url)
        self.max_body = max_body
        self._headers = dict(headers)
        self._client: PlainClient | ReqwestClient | None = None

    async def post(
        self,
        body: bytes,
        *,
        timeout: float,
        url: str = "",
        headers: Headers = None,
        arrivals: Arrivals | None = None,
    ) -> HttpReply:
        """Send a body to the server's address, or another of its, and read the whole answer, if it is of a sane size.
        `headers` are those of this request alone; `arrivals` gets how much had come, and when, for each piece."""
        return await self._exchange("POST", url or self.url, body, timeout, headers, arrivals)

    async def get(self, url: str, *, timeout: float, headers: Headers = None) -> HttpReply:
        """Read another address of the same server."""
        return await self._exchange("GET", url, b"", timeout, headers)

    async def _exchange(
        self,
        method: str,
        url: str,
        body: bytes,
        timeout: float,
        headers: Headers,
        arrivals: Arrivals | None = None,
    ) -> HttpReply:
        try:
            client = self._client or self._open()
            answer = await client.send(method, url, body, timeout, headers, arrivals)
        except ValueError:  # its text may hold the value of a header
            raise self._unusable() from None
        except AnswerTooLarge as error:
            raise self._too_large(error.size) from None
        except TimeoutError:
            raise self._late(timeout) from None
        except (BrokenConnection, OSError) as error:
            raise self._broken(error) from None
        except LaneError as error:
            error.where = error.where or self.shown
            raise
        if answer.status == 200:
            return HttpReply(200, {}, answer.body)
        came = ((name, answer.header(name.encode())) for name in _WANTED)
        named = {name: value.decode("latin-1") for name, value in came if value is not None}
        return HttpReply(answer.status, named, answer.body)

    def _open(self) -> PlainClient | ReqwestClient:
        if is_plain(self.url):
            self._client = PlainClient(self.url, self._headers, self.max_body)
        else:
            self._client = ReqwestClient(
                self._headers, self.max_body, no_proxy=is_loopback(self.url)
            )
        return self._client

    def _late(self, timeout: float) -> TransientError:
        what = f"no answer within {timeout:g} s"
        return TransientError(
            what, where=self.shown, fix="raise `timeout`", overload=True, timed_out=True
        )

    def _broken(self, error: BrokenConnection | OSError) -> TransientError:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        if isinstance(error, BrokenConnection) and error.answered:
            return TransientError(f"the answer broke off: {reason}", where=self.shown)
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

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def is_plain(url: str) -> bool:
    """Return whether the server is spoken to without TLS and without a proxy."""
    if not url.startswith("http://"):
        return False
    return is_loopback(url) or not any(os.environ.get(name) for name in _PROXY_VARIABLES)


def reason_of(error: OSError) -> str:
    """Why a connection failed, in the system's words; of several addresses that were tried, for the first one."""
    number = error.errno if isinstance(error.errno, int) and error.errno > 0 else None
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        number = int(found[1])
    return os.strerror(number) if number else (error.strerror or str(error))


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
    scheme, separator, rest = url.partition("?")[0].partition("#")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"
