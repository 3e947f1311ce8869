"""A viewer in a thread of this process, and a client of it that can send anything."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from assay.viewer.experiments import Experiments
from assay.viewer.server import HOST, Server


class Client:
    """Asks as the viewer's own page does, unless it is told otherwise."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.port = server.server_port
        self.own = f"http://{HOST}:{self.port}"
        self.cookie = f"assay-{self.port}={server.token}"

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; a header that is None is not sent."""
        named = {
            "cookie": self.cookie,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=20)) as connection:
            connection.request(
                method,
                path,
                body,
                {name: value for name, value in named.items() if value is not None},
            )
            with closing(connection.getresponse()) as answer:
                return (
                    answer.status,
                    {name.lower(): value for name, value in answer.getheaders()},
                    answer.read(),
                )

    def page(self, name: str, **query: Any) -> Any:
        status, _, content = self.ask(f"/data/{name}?{urlencode(query, doseq=True)}")
        assert status == 200, content
        return json.loads(content)

    def label(self, value: dict[str, Any], **headers: str | None) -> tuple[int, Any]:
        allowed = {"origin": self.own, "content_type": "application/json"} | headers
        status, _, content = self.ask("/labels", "POST", json.dumps(value).encode(), **allowed)
        return status, json.loads(content)

    def raw(self, *parts: bytes, end: bool = True) -> bytes:
        """Everything that comes back when these bytes are sent and nothing more follows."""
        with closing(socket.create_connection((HOST, self.port), timeout=20)) as connection:
            received = b""
            try:
                for part in parts:
                    connection.sendall(part)
                if end:
                    connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    received += piece
            except OSError:  # it parted with us
                pass
            return received


@contextmanager
def viewing(*paths: Path, annotator: str = "", **options: Any) -> Iterator[Client]:
    experiments = Experiments(paths)
    experiments.annotator = annotator
    server = Server(experiments, port=0, **options)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Client(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
