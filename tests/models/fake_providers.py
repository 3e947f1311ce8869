"""All providers' hosts behind one proxy: it ends their TLS, writes down what was asked, and answers as each API."""

import asyncio
import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple


class Asked(NamedTuple):
    host: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


CHAT = {
    "choices": [{"message": {"content": "2"}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 1},
}
MESSAGE = {
    "content": [{"type": "text", "text": "2"}],
    "usage": {"input_tokens": 9, "output_tokens": 1},
}
RESPONSE = {
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "2"}]}],
    "status": "completed",
}
CANDIDATE = {"candidates": [{"content": {"parts": [{"text": "2"}]}, "finishReason": "STOP"}]}
CONVERSED = {"output": {"message": {"content": [{"text": "2"}]}}, "stopReason": "end_turn"}
ANSWERS = {
    "/chat/completions": CHAT,
    "/responses": RESPONSE,
    "/messages": MESSAGE,
    ":generateContent": CANDIDATE,
    "/converse": CONVERSED,
    "/token": {"access_token": "fetched-0123456789", "expires_in": 3600},
}


class Fake:
    """`answers` has, by how a path ends, the JSON of an answer, or its status and JSON."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.answers = answers or ANSWERS
        self.asked: list[Asked] = []
        self.tunnels: list[str] = []
        self.open: list[asyncio.StreamWriter] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.append(writer)
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            except (asyncio.IncompleteReadError, OSError):
                break
            method, path, _ = head[0].split(" ")
            headers = {
                name.lower(): value
                for name, _, value in (line.partition(": ") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.asked.append(Asked(headers["host"], method, path, headers, body))
            plain = path.partition("?")[0]
            found = next(
                (answer for end, answer in self.answers.items() if plain.endswith(end)), (404, {})
            )
            status, content = found if isinstance(found, tuple) else (200, found)
            data = json.dumps(content).encode()
            writer.write(
                b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(data), data)
            )
        writer.close()

    async def tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        _, target, _ = (
            (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].decode().split(" ")
        )
        self.tunnels.append(target)
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        self.open += [writer, outer]
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(_pump(reader, outer), _pump(inner, writer))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    except OSError:
        pass
    target.close()


@contextmanager
def faked(fake: Fake, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of the fake, or with TLS that of the proxy before it, for as long as the block lasts."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[list[asyncio.Server], int]:
        server = await asyncio.start_server(fake.answer, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        if tls is None:
            return [server], port
        proxy = await asyncio.start_server(lambda r, w: fake.tunnel(r, w, port), "127.0.0.1", 0)
        return [server, proxy], proxy.sockets[0].getsockname()[1]

    async def stop(servers: list[asyncio.Server]) -> None:
        for server in servers:
            server.close()
        for writer in fake.open:
            writer.close()
        await asyncio.gather(
            *asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True
        )
        for writer in fake.open:
            with suppress(OSError):
                await writer.wait_closed()

    servers, port = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(stop(servers), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def certified(folder: Path, hosts: list[str]) -> tuple[ssl.SSLContext, Path]:
    """A server's context for these hosts, and the file of the authority that signed its certificate."""

    def openssl(command: str) -> None:
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=folder)

    curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    names = ",".join(f"DNS:{host}" for host in hosts)
    (folder / "san").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
    openssl(f"req -x509 {curve} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem")
    openssl(f"req {curve} -subj /CN=fake -keyout server.key -out server.csr")
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out server.pem"
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return context, folder / "ca.pem"
