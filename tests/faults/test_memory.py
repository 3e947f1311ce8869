"""Many large answers at once: bounded together, in both clients, and none waits for ever."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings, strategies as st

from assay.models._in_flight import Allowance, Share

CALLS, SIZE, LIMIT = 48, 8_000_000, 24  # bytes of an answer, megabytes of all
CLIENT = """
import asyncio, re, sys
from assay.errors import TransientError
from assay.interfaces import Request
from assay.models import _transport
from assay.models.openai import openai

def peak():  # not ru_maxrss, which begins with that of the parent process
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1000

async def main(url, kind, calls, timeout):
    if kind == "reqwest":
        _transport.is_plain = lambda url: False
    model = openai("m", endpoint=url)
    small = len((await model.complete(Request([{"role": "user", "content": "small"}]))).text)
    before = peak()

    async def ask():
        try:
            return len((await model.complete(Request([{"role": "user", "content": "x"}], timeout=timeout))).text)
        except TransientError:
            return 0

    sizes = await asyncio.gather(*(ask() for _ in range(calls)))
    await model.close()
    print(peak() - before, *sorted(set(sizes)))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
"""


@contextmanager
def serving(framing: str, stops_after: int | None = None) -> Iterator[str]:
    """A server of large answers; `stops_after`: bytes after which it sends no more, and stays."""
    start, end = b'{"choices":[{"message":{"content":"', b'"}}]}'
    piece = b"a" * 100_000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                size = 100 if b"small" in await reader.readexactly(length) else SIZE
                whole = len(start) + size + len(end)
                field = (
                    b"transfer-encoding: chunked"
                    if framing == "chunked"
                    else b"content-length: %d" % whole
                )
                writer.write(b"HTTP/1.1 200 OK\r\n" + field + b"\r\n\r\n")
                sent = 0
                while sent < size:
                    part = piece[: size - sent]
                    send(
                        writer,
                        (start if sent == 0 else b"")
                        + part
                        + (end if sent + len(part) == size else b""),
                    )
                    sent += len(part)
                    await writer.drain()
                    if stops_after is not None and size == SIZE and sent >= stops_after:
                        await asyncio.Event().wait()
                if framing == "chunked":
                    writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def send(writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data) if framing == "chunked" else data)

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def stop() -> None:
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def ask(url: str, kind: str, calls: int, timeout: float) -> tuple[int, list[int]]:
    """Megabytes at the peak, and the sizes of the answers; 0 is a transient failure."""
    command = [sys.executable, "-c", CLIENT, url, kind, str(calls), str(timeout)]
    environ = {"ASSAY_BODY_MEMORY": str(LIMIT), "PATH": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environ, timeout=60
    )
    peak, *sizes = map(int, done.stdout.split())
    return peak, sizes


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "reqwest"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_answers_are_bounded_together(kind: str, framing: str) -> None:
    with serving(framing) as url:
        peak, sizes = ask(url, kind, CALLS, 20)
    assert sizes == [SIZE]
    assert peak < 4 * LIMIT + CALLS * 0.5, f"{peak} MB for {CALLS} answers of {SIZE / 1e6:.0f} MB"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "reqwest"])
def test_those_that_have_begun_do_not_wait_for_each_other(kind: str) -> None:
    """All of them together are too much, none ever ends: each fails by its own deadline."""
    with serving("chunked", stops_after=6_000_000) as url:
        _, sizes = ask(url, kind, 8, 0.5)
    assert sizes == [0]


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 300),
    st.lists(st.tuples(st.integers(1, 200), st.booleans()), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_everybody_is_served_in_the_end(
    limit: int, sizes: list[tuple[int, bool]], chance: object
) -> None:
    """Bodies that arrive in pieces of 10, in any order, some of a known size; one beyond the limit at a time."""
    allowance = Allowance(limit)
    shares = [Share() for _ in sizes]
    waiting, received = set[int](), [0] * len(sizes)
    for number, share in enumerate(shares):
        share.proceed = lambda number=number: waiting.discard(number)
    unfinished = set(range(len(sizes)))
    largest = max(size for size, _ in sizes)
    while unfinished:
        ready = sorted(unfinished - waiting)
        assert ready, "all of them wait"
        number = chance.choice(ready)  # type: ignore[attr-defined]
        size, is_stated = sizes[number]
        received[number] = min(size, received[number] + 10)
        if received[number] == size:
            unfinished.discard(number)
            allowance.give_back(shares[number])
        elif not allowance.take(shares[number], received[number], size if is_stated else 0):
            waiting.add(number)
        assert allowance.held <= limit + largest + 10 * len(sizes)
    assert allowance.held == 0
