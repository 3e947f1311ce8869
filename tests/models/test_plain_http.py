"""The plain client against servers that answer in every way that HTTP/1.1 allows, and in some that it does not."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from assay.models._plain_http import AnswerTooLarge, BrokenConnection, PlainClient

Client = PlainClient
Use = Callable[[Client], Coroutine[Any, Any, Any]]


def talk(
    answers: list[list[bytes]], use: Use, *, headers: dict[str, str] | None = None, user: str = ""
) -> Any:
    """Run `use` with a client of a server that answers its n-th request with the n-th list of pieces; what `use`
    returned, how many connections there were, and the requests' heads. None as a piece: hang up."""
    connections, heads = 0, list[bytes]()
    left = iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                heads.append(head)
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                for piece in next(left):
                    if piece == HANG_UP:
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, ConnectionError, StopIteration):
            pass
        finally:
            writer.close()

    async def go() -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = PlainClient(f"http://{user}127.0.0.1:{port}/v1", headers or {}, 1000)
        try:
            return await use(client)
        finally:
            await client.close()
            server.close()
            await server.wait_closed()

    return asyncio.run(go()), connections, heads


HANG_UP = b"\0hang up"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


async def twice(client: Client) -> list[tuple[int, bytes]]:
    found = []
    for _ in range(2):
        status, _, body = await client.send("POST", "/v1", b"{}", 5)
        found.append((status, body))
    return found


def test_a_connection_is_used_again() -> None:
    found, connections, _ = talk([[OK], [OK]], twice)
    assert found == [(200, b"hi")] * 2
    assert connections == 1


@pytest.mark.parametrize(
    "first",
    [
        [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nhi"],
        [b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi"],
        [b"HTTP/1.1 200 OK\r\n\r\nh", b"i", HANG_UP],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi and more"],
    ],
)
def test_a_connection_that_cannot_be_trusted_is_not(first: list[bytes]) -> None:
    found, connections, _ = talk([first, [OK]], twice)
    assert found == [(200, b"hi")] * 2
    assert connections == 2


def test_interim_answers_are_skipped() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    assert talk([[early, OK], [OK]], twice)[0] == [(200, b"hi")] * 2


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.integers(1, 7), st.booleans())
def test_chunks_cut_anywhere(chunks: list[bytes], step: int, trailer: bool) -> None:
    body = b"".join(b"%x;note=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    body += b"0\r\n" + (b"x-check: 1\r\n" if trailer else b"") + b"\r\n"
    whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    pieces = [whole[at : at + step] for at in range(0, len(whole), step)]
    found, connections, _ = talk([pieces, [OK]], twice)
    assert found == [(200, b"".join(chunks)), (200, b"hi")]
    assert connections == 1


@pytest.mark.parametrize(
    ("pieces", "answered"),
    [
        ([HANG_UP], False),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", HANG_UP], True),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe", HANG_UP], True),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"], True),
        ([b"SMTP ready\r\n\r\n"], True),
        ([b"HTTP/1.1 banana\r\n\r\n"], True),
        ([b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nhi"], True),
    ],
)
def test_what_breaks_is_said_to_be_broken(pieces: list[bytes], answered: bool) -> None:
    with pytest.raises(BrokenConnection) as caught:
        talk([pieces], twice)
    assert caught.value.answered == answered


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001],
        [b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001],
    ],
)
def test_too_much_is_not_held(pieces: list[bytes]) -> None:
    with pytest.raises(AnswerTooLarge):
        talk([pieces], twice)


def test_silence_ends_in_time() -> None:
    async def once(client: Client) -> None:
        await client.send("POST", "/v1", b"", 0.05)

    with pytest.raises(TimeoutError):
        talk([[]], once)


def test_headers_cannot_begin_new_fields() -> None:
    with pytest.raises(ValueError, match="characters"):
        PlainClient("http://127.0.0.1:1/", {"x": "a\r\nevil: 1"}, 10)


def test_a_user_in_the_address_signs_in() -> None:
    _, _, heads = talk([[OK], [OK]], twice, user="me:p%40ss@", headers={"x-mine": "1"})
    assert b"authorization: Basic bWU6cEBzcw==\r\n" in heads[0]
    assert b"x-mine: 1\r\n" in heads[0]
    assert b"me:" not in heads[0].split(b"\r\n")[0] + heads[0].split(b"host: ")[1].split(b"\r\n")[0]
