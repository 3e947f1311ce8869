"""Proxies and certificate authorities, end to end: a host that only the proxy knows, in the clear and behind TLS."""

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from assay.server import MockServer, Options

HOST = "model.example"
CLIENT = """
import asyncio, sys
from assay.interfaces import Request
from assay.models.openai import openai

async def main():
    model = openai("m", endpoint=sys.argv[1])
    print((await model.complete(Request([{"role": "user", "content": "What is 17 * 23?"}]))).text)
    await model.close()

asyncio.run(main())
"""


class Proxy:
    """Knows one host: requests in absolute form go to the mock server at `port`, CONNECT to the TLS end of it."""

    def __init__(self, port: int, tls_port: int = 0) -> None:
        self.port = port
        self.tls_port = tls_port
        self.seen: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        self.seen.append(f"{method} {target}")
        if method == "CONNECT":
            inner, outer = await asyncio.open_connection("127.0.0.1", self.tls_port)
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            inner, outer = await asyncio.open_connection("127.0.0.1", self.port)
            outer.write(head.replace(f"http://{HOST}".encode(), b"", 1))
        await join(reader, writer, inner, outer)


async def join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    inner: asyncio.StreamReader,
    outer: asyncio.StreamWriter,
) -> None:
    """Pass everything on, both ways, until one side ends."""

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(65536):
                target.write(piece)
                await target.drain()
        except ConnectionError:
            pass
        target.close()

    await asyncio.gather(pump(reader, outer), pump(inner, writer))


async def ask_through(
    endpoint: str, environment: dict[str, str], tls: ssl.SSLContext | None = None
) -> tuple[str, list[str]]:
    """What a client in a process of its own prints, and what the proxy saw: the variables are read once a process."""
    mock = MockServer(Options(skill=1.0))
    await mock.start()
    proxy = Proxy(mock.port)

    async def unwrapped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await join(reader, writer, *await asyncio.open_connection("127.0.0.1", mock.port))

    behind = await asyncio.start_server(unwrapped, "127.0.0.1", 0, ssl=tls)
    proxy.tls_port = behind.sockets[0].getsockname()[1]
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    hidden = {"no_proxy", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}
    outer = {name: value for name, value in os.environ.items() if name not in hidden}
    named = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"), address)
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, endpoint),
        env={**outer, **named, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await client.communicate()
    for server in (listener, behind):
        server.close()
    await mock.close()
    await asyncio.sleep(0)
    return printed.decode(), proxy.seen


def test_a_proxy_in_the_clear() -> None:
    printed, seen = asyncio.run(ask_through(f"http://{HOST}", {}))
    assert (printed, seen) == ("391\n", [f"POST http://{HOST}/v1/chat/completions"])


def test_a_host_that_needs_no_proxy() -> None:
    printed, seen = asyncio.run(ask_through(f"http://{HOST}", {"no_proxy": HOST, "NO_PROXY": HOST}))
    assert "no answer from the server" in printed
    assert seen == []


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs the openssl command to make certificates"
)
def test_a_tunnel_to_a_server_of_a_private_authority(tmp_path: Path) -> None:
    tls, authority = certified(tmp_path)
    printed, seen = asyncio.run(
        ask_through(f"https://{HOST}", {"SSL_CERT_FILE": str(authority)}, tls)
    )
    assert (printed, seen) == ("391\n", [f"CONNECT {HOST}:443"])
    printed, _ = asyncio.run(ask_through(f"https://{HOST}", {}, tls))
    assert "certificate is not trusted" in printed


def certified(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context, and the file of the authority that signed its certificate."""

    def openssl(command: str) -> None:
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=folder)

    curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    (folder / "san").write_text(f"subjectAltName=DNS:{HOST}\nbasicConstraints=CA:FALSE\n")
    openssl(f"req -x509 {curve} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem")
    openssl(f"req {curve} -subj /CN={HOST} -keyout server.key -out server.csr")
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem"
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return context, folder / "ca.pem"
