"""Requests of the viewer: who may ask what, and how they are answered.

Data and labels need the cookie that the token became. Every request must name this host, and where a browser tells
which page asks, that must be ours. The document itself holds nothing and is for all who ask, so that links from
elsewhere work: a strict cookie comes only with what our own page asks for.
"""

import hmac
import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from assay.sdk import AssayError, store_error
from assay.text.plain import plain
from assay.viewer.document import asset, document, policy
from assay.viewer.live import INTERVAL
from assay.viewer.pages import page

if TYPE_CHECKING:
    from assay.viewer.server import Server

LONGEST_ANSWER = 60.0
LARGEST_BODY = 256 * 1024
HEARTBEAT = 15.0
_OPEN = "open the address that `assay view` printed"


class Handler(BaseHTTPRequestHandler):
    server: "Server"  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    timeout = LONGEST_ANSWER
    disable_nagle_algorithm = True

    def version_string(self) -> str:
        return "assay"

    def handle_one_request(self) -> None:
        self.server.expect(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        self.server.arrived(self.connection)
        self.close_connection |= (
            "content-length" in self.headers or "transfer-encoding" in self.headers
        )
        if not self._is_ours():
            self._problem(403, "this host or origin is not allowed", _OPEN)
            return
        try:
            address = urlsplit(self.path)
            query = parse_qs(address.query, keep_blank_values=True, max_num_fields=1000)
        except ValueError:
            self._problem(400, "this address cannot be read", "go to /")
            return
        if address.path == "/" and "token" in query:
            self._enter(query["token"][-1])
        elif address.path == "/":
            self._answer(
                200,
                b"".join(document("Assay")),
                "text/html; charset=utf-8",
                policy=policy(served=True),
            )
        elif address.path == "/assets/rich.js":
            self._answer(200, asset("rich.js").encode(), "text/javascript; charset=utf-8")
        elif not self._is_known():
            self._problem(403, "the token is missing", _OPEN)
        elif address.path == "/events":
            self._events()
        elif address.path.startswith("/data/"):
            name = address.path.removeprefix("/data/")
            self._attempt(lambda: page(self.server.experiments, name, query))
        else:
            self._problem(404, "there is no such address", "go to /")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """A person's label. Only our own page can send one: it has the cookie, and a browser tells its origin."""
        body = self._body()
        self.server.arrived(self.connection)
        if body is None:
            return
        if not self._is_ours() or "origin" not in self.headers:
            self._problem(403, "this host or origin is not allowed", _OPEN)
        elif not self._is_known():
            self._problem(403, "the token is missing", _OPEN)
        elif self.path != "/labels":
            self._problem(404, "there is nothing to write at this address", "labels go to /labels")
        elif self.headers.get_content_type() != "application/json":
            self._problem(415, "a label is JSON", "send it as application/json")
        else:
            # with all of the analysis: the first page need not wait for it
            from assay.viewer.pages.review import save

            self._attempt(lambda: save(self.server.experiments, body))

    def _body(self) -> bytes | None:
        """The body; None where it was refused. A connection whose body was not read cannot be used again."""
        length = self.headers.get("content-length", "")
        if "transfer-encoding" in self.headers or not (length.isascii() and length.isdigit()):
            self.close_connection = True
            self._problem(411, "the body has no length", "send content-length")
        elif len(length) > len(str(LARGEST_BODY)) or int(length) > LARGEST_BODY:
            self.close_connection = True
            self._problem(
                413, "a label of so many bytes is too large", f"at most {LARGEST_BODY:,} bytes"
            )
        elif len(body := self.rfile.read(int(length))) == int(length):
            return body
        else:
            self.close_connection = True
        return None

    def _attempt(self, make: Callable[[], Any]) -> None:
        """Answer with a value, or with what is wrong; whatever happens, the server continues."""
        try:
            content = msgspec.json.encode(make())
        except OSError as error:
            self._refuse(store_error(error, Path(str(error.filename or ""))))
        except AssayError as error:
            self._refuse(error)
        except Exception as error:
            self.server.tell()
            what = f"internal error: {type(error).__name__}: {plain(str(error))[:500]}"
            self._problem(
                500, what, "this is a bug in Assay; start `assay view --debug` to see where"
            )
        else:
            self._answer(200, content, "application/json")

    def _refuse(self, error: AssayError) -> None:
        several = "\n".join(map(str, getattr(error, "problems", ())))
        self._problem(422, f"{error.what}\n{several}".strip(), error.fix, error.where)

    def _events(self) -> None:
        """What changes, as it changes; beyond the most streams, the news once, to be asked for again later."""
        self.close_connection = True
        lasting = self.server.streams.acquire(blocking=False)
        try:
            self._head(200, "text/event-stream")
            self.wfile.write(b"retry: %d\n\n" % (1000 if lasting else 5000))
            self.connection.settimeout(INTERVAL)
            news, sent = b"", time.monotonic()
            while self.command != "HEAD" and not self.server.closed.is_set():
                before, news = news, self.server.live.news()
                if news != before:
                    self.wfile.write(b"data: " + news + b"\n\n")
                    sent = time.monotonic()
                elif time.monotonic() - sent > HEARTBEAT:
                    self.wfile.write(b": still here\n\n")
                    sent = time.monotonic()
                if not lasting or self._has_left():
                    break
        except (
            AssayError
        ) as error:  # a folder that is gone, for example: whoever listens asks again
            self.wfile.write(b": " + msgspec.json.encode(error.what) + b"\n\n")
        finally:
            if lasting:
                self.server.streams.release()

    def _has_left(self) -> bool:
        """Waits for the interval, or until the client closes; one that sends more is not a listener."""
        try:
            self.connection.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        return True

    # ---- who asks

    def _is_ours(self) -> bool:
        """Whether the request names this server and comes from its own page: other sites' pages cannot ask."""
        hosts = self.headers.get_all("host", [])
        origins = self.headers.get_all("origin", [])
        named = len(hosts) == 1 and hosts[0] in self.server.hosts and self.path.startswith("/")
        return named and all(origin == f"http://{hosts[0]}" for origin in origins)

    def _is_known(self) -> bool:
        """Cookies of whatever else runs on this machine come along, and may be written anyhow."""
        cookies = "; ".join(self.headers.get_all("cookie", [])).split(";")
        parts = [cookie.strip().partition("=") for cookie in cookies]
        return any(name == self.server.cookie and self._is_token(value) for name, _, value in parts)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.server.token.encode())

    def _enter(self, token: str) -> None:
        """The token leaves the address; browsers keep what stands behind `#`."""
        if self._is_token(token):
            cookie = f"{self.server.cookie}={token}; HttpOnly; SameSite=Strict; Path=/"
            self._answer(303, b"", "text/plain", location="/", set_cookie=cookie)
        elif self._is_known():
            self._answer(303, b"", "text/plain", location="/")
        else:
            self._problem(403, "the token is not right", _OPEN)

    # ---- answers

    def _head(
        self, status: int, kind: str, *, policy: str = "default-src 'none'", **more: str
    ) -> None:
        self.send_response(status)
        headers = {
            "content-type": kind,
            "content-security-policy": f"{policy}; frame-ancestors 'none'",
            "cross-origin-resource-policy": "same-origin",
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            **({"connection": "close"} if self.close_connection else {}),
        }
        for name, value in (headers | more).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _answer(self, status: int, content: bytes, kind: str, **headers: str) -> None:
        self._head(status, kind, content_length=str(len(content)), **headers)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _problem(self, status: int, what: str, fix: str, where: str = "") -> None:
        problem = {"what": plain(what), "where": plain(where), "fix": plain(fix)}
        self._answer(status, msgspec.json.encode(problem), "application/json")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the parser has against a request, or a method that is not there."""
        self.server.arrived(self.connection)
        self.close_connection = True
        # an answer to what has no version would have no head
        self.request_version = self.protocol_version
        self._problem(
            code,
            plain(message or self.responses.get(code, ("not possible", ""))[0])[:200],
            "go to /",
        )

    def log_message(self, format: str, *args: Any) -> None:
        pass
