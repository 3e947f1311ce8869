"""`assay view`: the pages over HTTP on loopback. One thread for each connection; nothing is kept but what is cached.

The address that is opened has a token, which becomes a cookie; every request needs it, names this host and comes from
this page.
"""

import hmac
import secrets
from collections.abc import Callable, Sequence
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from assay.errors import AssayError, UserError
from assay.viewer.document import asset, document, policy
from assay.viewer.experiments import Experiments
from assay.viewer.pages import page

HOST = "127.0.0.1"
PORT = 7860
_COOKIE = "assay"


class Server(ThreadingHTTPServer):
    """Listens as soon as it is made; `address` is what a browser is to open."""

    daemon_threads = True

    def __init__(self, experiments: Experiments, *, port: int = PORT) -> None:
        self.experiments = experiments
        self.token = secrets.token_urlsafe(24)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise UserError(f"port {port} cannot be used: {error.strerror}", fix="choose another with --port") from None

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves is not an error."""


class Handler(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version = "assay"
    sys_version = ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        if not self._is_ours():
            self._problem(403, "this host or origin is not allowed", "open the address that `assay view` printed")
        elif address.path == "/" and "token" in query:
            self._enter(query["token"][-1])
        elif not self._is_known():
            self._problem(403, "the token is missing", "open the address that `assay view` printed")
        elif address.path == "/":
            content = b"".join(document("Assay"))
            self._answer(200, content, "text/html; charset=utf-8", policy=policy(served=True))
        elif address.path == "/assets/rich.js":
            self._answer(200, asset("rich.js").encode(), "text/javascript; charset=utf-8")
        elif address.path.startswith("/data/"):
            self._page(address.path.removeprefix("/data/"), query)
        else:
            self._problem(404, "there is no such address", "go to /")

    def _page(self, name: str, query: dict[str, list[str]]) -> None:
        try:
            value = page(self.server.experiments, name, query)
        except AssayError as error:
            self._problem(422, str(error), getattr(error, "fix", "") or "")
        else:
            self._answer(200, msgspec.json.encode(value), "application/json")

    # ---- who asks

    def _is_ours(self) -> bool:
        """Whether the request names this server and comes from its own page: other sites' pages cannot ask."""
        own = f"{HOST}:{self.server.server_port}"
        origin = self.headers.get("origin")
        return self.headers.get("host") == own and origin in (None, f"http://{own}")

    def _is_known(self) -> bool:
        try:
            cookie = SimpleCookie(self.headers.get("cookie", "")).get(_COOKIE)
        except CookieError:
            cookie = None
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.server.token.encode())

    def _enter(self, token: str) -> None:
        if not self._is_token(token):
            self._problem(403, "the token is not right", "open the address that `assay view` printed")
            return
        self.send_response(303)
        self.send_header("location", "/")
        self.send_header("set-cookie", f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/")
        self.send_header("content-length", "0")
        self.end_headers()

    # ---- answers

    def _answer(self, status: int, content: bytes, kind: str, *, policy: str = "default-src 'none'") -> None:
        self.send_response(status)
        headers = {
            "content-type": kind,
            "content-length": str(len(content)),
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _problem(self, status: int, what: str, fix: str) -> None:
        self._answer(status, msgspec.json.encode({"what": what, "fix": fix}), "application/json")

    def log_message(self, format: str, *args: Any) -> None:
        pass


def view(paths: Sequence[str | Path] = (".",), *, port: int = PORT, open: Callable[[str], Any] | None = None) -> None:
    """Serve the experiments below some paths until it is interrupted; `open` is given the address."""
    server = Server(Experiments(paths), port=port)
    if open is not None:
        open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
