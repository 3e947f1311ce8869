"""`assay view`: the pages over HTTP on loopback. One thread for each connection, and not many of them.

The address that is opened has a token, which becomes a cookie and leaves the address.
"""

import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from assay.errors import StoreError, UserError
from assay.store.files import state_folder, write_file
from assay.text.plain import plain
from assay.viewer.experiments import Experiments, experiments_below
from assay.viewer.live import Live
from assay.viewer.requests import Handler

HOST = "127.0.0.1"
PORT = 7860
MOST_CONNECTIONS = 64
MOST_STREAMS = 4  # a browser opens six connections: streams in many tabs must not take them all
LONGEST_REQUEST = 30.0  # seconds from the first byte, or the last answer, until a request is whole


def private_token() -> str:
    """The user's token, the same every time: open tabs and bookmarks outlive the server."""
    file = state_folder() / "view" / "token"
    with suppress(OSError, ValueError):
        token = file.read_text(encoding="ascii").strip()
        if (
            len(token) >= 32
            and not file.stat().st_mode & 0o077
            and token.replace("-", "").replace("_", "").isalnum()
        ):
            return token
    token = secrets.token_urlsafe(32)
    with suppress(StoreError):  # then it is good for this once
        write_file(file, token.encode() + b"\n")
        file.chmod(0o600)
    return token


class Server(ThreadingHTTPServer):
    """Listens as soon as it is made; `address` is what a browser is to open."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, experiments: Experiments, *, port: int = PORT, debug: bool = False) -> None:
        self.experiments = experiments
        self.live = Live(experiments)
        self.debug = debug
        self.token = private_token()
        self.closed = threading.Event()
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._due: dict[
            socket.socket, float
        ] = {}  # until when each connection's request must be whole
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            what = f"port {port} cannot be used: {error.strerror}"
            raise UserError(what, fix="choose another with --port; --port 0 takes any") from None
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.cookie = f"assay-{self.server_port}"  # cookies do not know ports: two viewers would replace each other's

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.send(
                    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                )
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.arrived(request)
            self._free.release()

    def expect(self, connection: socket.socket) -> None:
        self._due[connection] = time.monotonic() + LONGEST_REQUEST

    def arrived(self, connection: socket.socket) -> None:
        self._due.pop(connection, None)

    def service_actions(self) -> None:
        """Part with clients that send a byte now and then: a timeout of the socket does not notice them."""
        now = time.monotonic()
        for connection, due in [*self._due.items()]:
            if due < now:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def server_close(self) -> None:
        self.closed.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves is not an error."""
        if self.debug and not isinstance(sys.exception(), OSError):
            self.tell()

    def tell(self) -> None:
        if self.debug:
            print(plain(traceback.format_exc()), file=sys.stderr, flush=True)


def view(
    paths: Sequence[str | Path] = (".",),
    *,
    port: int = PORT,
    annotator: str = "",
    open: Callable[[str], Any] = print,
    debug: bool = False,
) -> None:
    """Show the experiments in and below some paths in the browser: serves them on loopback until it is interrupted.
    `open` is given the address; port 0 takes any. Labels are by `annotator`, or the page asks."""
    experiments = experiments_below(paths)
    experiments.annotator = annotator
    server = Server(experiments, port=port, debug=debug)
    try:
        open(server.address)
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
