import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.interfaces import Completion
from assay.models._reqwest import ReqwestClient
from assay.models._transport import HttpReply, Transport, is_loopback, shown_url
from assay.models.openai import openai
from assay.server import Options, running, stats

Ask = Callable[..., Completion]
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def exchange(
    handler: Handler,
    *,
    timeout: float = 5,
    max_body: int = 1 << 20,
    tls: ssl.SSLContext | None = None,
    plain: bool = True,
) -> HttpReply:
    """POST once to a server that handles its connection so."""

    open_ends: list[tuple[asyncio.Task[Any], asyncio.StreamWriter]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ends.append((task, writer))
        await reader.readuntil(b"\r\n\r\n")
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        writer.close()

    async def go() -> HttpReply:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        transport = Transport(
            f"{'https' if tls else 'http'}://localhost:{port}/x", {}, max_body=max_body
        )
        if not plain:
            transport._client = ReqwestClient({}, max_body, no_proxy=True)
        try:
            return await transport.post(b"{}", timeout=timeout)
        finally:
            await transport.close()
            server.close()
            for task, writer in open_ends:
                task.cancel()
                writer.transport.abort()
            await asyncio.gather(*(task for task, _ in open_ends), return_exceptions=True)
            await server.wait_closed()

    return asyncio.run(go())


def test_refused_connections_and_unknown_hosts_are_unreachable(ask: Ask) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for endpoint in (f"http://127.0.0.1:{port}", "http://no-such-host.invalid"):
        with pytest.raises(TransientError) as caught:
            ask(openai("m", endpoint=endpoint), "x")
        assert caught.value.unreachable
        assert not caught.value.overload
        assert endpoint in str(caught.value)


def test_a_dropped_connection_is_no_answer_at_all(ask: Ask) -> None:
    with (
        running(Options(rate_drop=1.0)) as url,
        pytest.raises(TransientError, match="no answer") as caught,
    ):
        ask(openai("m", endpoint=url), "x")
    assert caught.value.unreachable


def test_a_torn_body_is_transient_but_the_server_is_there(ask: Ask) -> None:
    with (
        running(Options(rate_torn=1.0)) as url,
        pytest.raises(TransientError, match="broke off") as caught,
    ):
        ask(openai("m", endpoint=url), "x")
    assert not caught.value.unreachable


def test_a_timeout_slows_the_lane_down(ask: Ask) -> None:
    with (
        running(Options(latency_ms=5000)) as url,
        pytest.raises(TransientError, match=r"within 0\.1 s") as caught,
    ):
        ask(openai("m", endpoint=url), "x", timeout=0.1)
    assert caught.value.overload
    assert not caught.value.unreachable


def test_a_body_that_never_ends_times_out() -> None:
    async def slow(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
        await writer.drain()
        await asyncio.Event().wait()

    with pytest.raises(TransientError) as caught:
        exchange(slow, timeout=0.2)
    assert caught.value.overload


def test_what_is_not_http_is_transient() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-server\r\n")

    with pytest.raises(TransientError):
        exchange(greet)


@pytest.mark.parametrize("length", [b"\xff5", b"9" * 5000, b"\xb2", b"-1", b"1e9"])
@pytest.mark.parametrize(
    "rest", [b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"\r\nok"]
)
@pytest.mark.parametrize("plain", [True, False])
def test_no_stated_length_stops_a_lane(length: bytes, rest: bytes, plain: bool) -> None:
    """It is one answer that cannot be read, or can be without it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: " + length + b"\r\n" + rest)
        await writer.drain()

    try:
        assert exchange(answer, plain=plain).body == b"ok"
    except TransientError:
        assert plain or rest == b"\r\nok"


def test_a_body_of_unknown_length_is_read_up_to_the_limit() -> None:
    async def chunked(_: asyncio.StreamReader, writer: asyncio.StreamWriter, count: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _number in range(count):
            writer.write(b"10000\r\n" + b"a" * 65536 + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    assert len(exchange(lambda r, w: chunked(r, w, 3), max_body=3 * 65536).body) == 3 * 65536
    with pytest.raises(PermanentError, match="too large"):
        exchange(lambda r, w: chunked(r, w, 10_000), max_body=3 * 65536)


HUGE = """
import asyncio, re, sys
from assay.errors import PermanentError
from assay.interfaces import Request
from assay.models.openai import openai

def peak():  # not ru_maxrss, which begins with that of the parent process
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

async def main():
    model = openai("m", endpoint=sys.argv[1])
    for attempt in range(5):
        try:
            await model.complete(Request([{"role": "user", "content": "x"}]))
        except PermanentError as error:
            assert "too large" in str(error), error
        else:
            raise SystemExit("a huge body was accepted")
        if attempt == 0:
            before = peak()
    await model.close()
    print(before, peak())

asyncio.run(main())
"""


def test_a_huge_body_is_refused_in_little_memory() -> None:
    with running(Options(rate_huge=1.0)) as url:
        done = subprocess.run(
            [sys.executable, "-c", HUGE, url], capture_output=True, text=True, check=True
        )
        assert stats(url)["faults"] == {"huge": 5}
    first, last = map(int, done.stdout.split())
    assert last < 150_000, f"{last} kB at the peak"
    assert last - first < 20_000, f"{last - first} kB more after four more"


SHORT = """
import asyncio, sys
from assay.errors import TransientError
from assay.interfaces import Request
from assay.models.openai import openai

async def main():
    model = openai("m", endpoint=sys.argv[1])
    for _ in range(3):
        try:
            await model.complete(Request([{"role": "user", "content": "x"}]))
        except TransientError:
            pass
    await model.close()

asyncio.run(main())
"""


def test_a_process_that_ends_right_after_an_answer_ends_well() -> None:
    """Without `_settle`, CPython aborts about half of these."""
    with running(Options(rate_torn=1.0)) as url:
        command = [sys.executable, "-c", SHORT, url]
        children = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(4)]
        codes = [child.wait(timeout=30) for child in children]
        codes += [
            subprocess.run(command, capture_output=True, check=False).returncode for _ in range(4)
        ]
    assert codes == [0] * 8


def test_one_model_serves_several_event_loops(honest: str, ask: Ask) -> None:
    model = openai("m", endpoint=honest)
    assert [ask(model, "What is 2+2?").text for _ in range(2)] == ["4", "4"]


def test_many_requests_at_once(ask: Ask) -> None:
    async def go(url: str) -> set[str]:
        from assay.interfaces import Request

        model = openai("m", endpoint=url)
        request = Request([{"role": "user", "content": "What is 2+2?"}])
        answers = await asyncio.gather(*(model.complete(request) for _ in range(400)))
        await model.close()
        return {answer.text for answer in answers}

    with running(Options(latency_ms=400, skill=1.0)) as url:
        assert asyncio.run(go(url)) == {"4"}
        assert stats(url)["max_in_flight"] > 300


def test_loopback_never_goes_through_a_proxy(
    honest: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert ask(openai("m", endpoint=honest), "What is 2+2?").text == "4"


def test_other_hosts_go_through_the_proxy_of_the_environment(honest: str) -> None:
    """In a process of its own: the variables are read once."""
    script = (
        "import asyncio\nfrom assay.interfaces import Request\nfrom assay.models.openai import openai\n"
        "asyncio.run(openai('m', endpoint='http://model.example').complete(Request([{'role': 'user', 'content': ''}])))"
    )
    environment = {**os.environ, "http_proxy": honest, "HTTP_PROXY": honest, "no_proxy": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert "HTTP 404: there is nothing at http://model.example/v1/chat/completions" in done.stderr


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs the openssl command to make a certificate"
)
def test_a_certificate_file_of_the_environment_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
        " -addext basicConstraints=critical,CA:FALSE"
    )
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(LaneError, match="not trusted"):
        exchange(answer, tls=tls)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert exchange(answer, tls=tls).body == b"ok"
    certificate.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(LaneError, match="SSL_CERT_FILE"):
        exchange(answer, tls=tls)


def test_a_missing_certificate_file_is_named(monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    with pytest.raises(CallError, match="SSL_CERT_FILE"):
        ask(openai("m", endpoint="https://localhost:9/v1"), "x")


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8", True),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
    ],
)
def test_loopback(url: str, loopback: bool) -> None:
    assert is_loopback(url) == loopback


def test_shown_addresses_hold_no_secrets() -> None:
    assert shown_url("https://user:pass@host:8/v1/x?key=1") == "https://host:8/v1/x"
    assert shown_url("http://[::1]:8/v1") == "http://[::1]:8/v1"
