"""A running mock server for the tests that need no options, and a plain way to talk to any."""

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from assay.server import running


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running() as url:
        yield url


@pytest.fixture(scope="session")
def send() -> Callable[..., tuple[int, dict[str, str], Any]]:
    def send(
        url: str, path: str, body: Any = None, method: str = ""
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers, and the answer's JSON (or its bytes where it is none)."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method or ("GET" if body is None else "POST"), path, data)
            answer = connection.getresponse()
            content = answer.read()
            headers = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        try:
            return answer.status, headers, json.loads(content)
        except ValueError:
            return answer.status, headers, content

    return send
