"""Streamed answers against a bare loop that reads the same events and decodes each: the time that each client works, as
both wait for the server that makes them."""

import asyncio
import json
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.interfaces import Request
from assay.models.openai import openai
from assay.server import Options, running
from benchmarks.measure import Line, child

CONCURRENCY = 16
WORDS = 400  # of each answer: as many tokens, and events
MESSAGES = [{"role": "user", "content": "x"}]


def answer(request: dict[str, Any]) -> str:
    """For the mock server: its pieces have four characters."""
    return "abc " * WORDS


def run_ours(url: str, requests: int) -> float:
    async def go() -> float:
        model = openai("m", endpoint=url, stream=True)
        numbers = iter(range(requests))

        async def work() -> None:
            for _ in numbers:
                completion = await model.complete(Request(MESSAGES))
                assert completion.completion_tokens == WORDS
                assert isinstance(completion.stream, dict)

        began = time.process_time()
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        seconds = time.process_time() - began
        await model.close()
        return seconds

    return asyncio.run(go())


def run_bare(url: str, requests: int) -> float:
    """Streams of asyncio, chunk by chunk, each event decoded and its text kept; no limit, no timeout, no error."""
    parts = urlsplit(url)
    asked = {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": MESSAGES,
    }
    body = json.dumps(asked).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    decode = msgspec.json.decode

    async def read(reader: asyncio.StreamReader) -> None:
        await reader.readuntil(b"\r\n\r\n")
        texts: list[str] = []
        while size := int(await reader.readline(), 16):
            event = await reader.readexactly(size + 2)
            data = event[6:].strip()
            if data == b"[DONE]":
                continue
            choices = decode(data)["choices"]
            if choices and (text := choices[0]["delta"].get("content")):
                texts.append(text)
        await reader.readline()
        assert len("".join(texts)) == 4 * WORDS

    async def go() -> float:
        numbers = iter(range(requests))

        async def work() -> None:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            for _ in numbers:
                writer.write(head % len(body) + body)
                await read(reader)
            writer.close()

        began = time.process_time()
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        return time.process_time() - began

    return asyncio.run(go())


def streaming() -> list[Line]:
    """The same streams, alternating, best of five each."""
    requests, ours, bare = 300, list[float](), list[float]()
    with running(Options(answers=f"{__file__}:answer", processes=2)) as url:
        for _ in range(5):
            bare.append(child(run_bare, url, requests)["result"])
            ours.append(child(run_ours, url, requests)["result"])
    events = requests * WORDS
    detail = (
        f"{events / min(ours):,.0f} events/s, joined and timed; bare {events / min(bare):,.0f}/s"
    )
    return [
        Line(
            "streamed answers / bare read and decode of their events, CPU",
            min(ours) / min(bare),
            "<=",
            2,
            detail,
        )
    ]


BENCHMARKS = [streaming]
