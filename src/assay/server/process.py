"""The mock server as a process: in the foreground (`serve`), or as a child that dies with us (`running`)."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.request import ProxyHandler, build_opener

import msgspec

from assay.children import Process, end, start
from assay.errors import AssayError
from assay.records import JsonObject
from assay.server.options import Options
from assay.server.server import MockServer


def serve(
    options: Options,
    *,
    until_stdin_closes: bool = False,
    share_port: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM, or until stdin closes (the parent is gone). The first line that is printed has
    the URL."""
    asyncio.run(_serve(options, until_stdin_closes, share_port or options.processes > 1))


def mock_server(**options: Any) -> None:
    """Serve an OpenAI-compatible demo model on loopback until it is interrupted; options as those of the command."""
    serve(Options(**options))


async def _serve(options: Options, watch_stdin: bool, share_port: bool) -> None:
    server = MockServer(options)
    await server.start(share_port=share_port)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if watch_stdin:
        loop.add_reader(sys.stdin.fileno(), _when_closed, sys.stdin.fileno(), stop)
    with contextlib.ExitStack() as siblings:
        for place in range(1, options.processes):
            sibling = msgspec.structs.replace(
                options, port=server.port, processes=1, seed=options.seed + place * 1_000_003
            )
            siblings.enter_context(running(sibling, share_port=True))
        print(msgspec.json.encode({"url": server.url}).decode(), flush=True)
        await stop.wait()
        await server.close()


def _when_closed(descriptor: int, stop: asyncio.Event) -> None:
    if not os.read(descriptor, 4096):
        asyncio.get_running_loop().remove_reader(descriptor)
        stop.set()


@contextmanager
def running(options: Options | None = None, *, share_port: bool = False) -> Generator[str]:
    """The server in a child process, as its address; it ends with the block and with this process."""
    flags = ["--until-stdin-closes", *(["--share-port"] if share_port else [])]
    for name, value in msgspec.structs.asdict(options or Options()).items():
        flags += [f"--{name.replace('_', '-')}", str(value)]
    command = [sys.executable, "-m", "assay.server", *flags]
    child = start(command)
    try:
        yield _address(child)
    finally:
        end(child, 10)


def _address(child: Process) -> str:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise AssayError(
            f"the mock server did not start (exit code {child.wait()})", fix="see its message above"
        )
    return msgspec.json.decode(line)["url"]


def stats(url: str) -> JsonObject:
    """Return what a running server counted: requests, answers by status, faults, and how many were in flight."""
    opener = build_opener(ProxyHandler({}))
    with opener.open(f"{url.removesuffix('/v1')}/stats", timeout=10) as answer:
        return msgspec.json.decode(answer.read())
