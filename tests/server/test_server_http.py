import socket
from urllib.parse import urlsplit

import pytest

from assay.server import http as server_http, stats

BODY = b'{"messages":[{"role":"user","content":"What is 2+2?"}]}'


def exchange(url: str, *pieces: bytes, answers: int = 1) -> bytes:
    """Send pieces one after the other, each after the last one left, and read until `answers` bodies came."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            peer.sendall(piece)
        received = b""
        while received.count(b"HTTP/1.1") < answers or not received.endswith(b"}"):
            more = peer.recv(65536)
            if not more:
                break
            received += more
        return received


def post(body: bytes = BODY, *headers: bytes, path: bytes = b"/v1/chat/completions") -> bytes:
    lines = b"".join(header + b"\r\n" for header in (b"Content-Length: %d" % len(body), *headers))
    return b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n" + body


def test_pipelined_requests_are_answered_in_order(server: str) -> None:
    models = [b'{"model":"m%d","prompt":"What is 2+2?"}' % number for number in range(3)]
    received = exchange(
        server, b"".join(post(p, path=b"/v1/completions") for p in models), answers=3
    )
    assert received.count(b" 200 OK") == 3
    assert received.index(b'"m0"') < received.index(b'"m1"') < received.index(b'"m2"')


def test_a_request_may_come_byte_by_byte(server: str) -> None:
    whole = post()
    assert b" 200 OK" in exchange(server, *(whole[at : at + 1] for at in range(len(whole))))


def test_chunked_bodies(server: str) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x;note=1\r\n%b\r\n" % (len(part), part) for part in (BODY[:7], BODY[7:]))
    received = exchange(
        server, head, chunks[:5], chunks[5:], b"0\r\nTrailer: 1\r\n\r\n" + post(), answers=2
    )
    assert received.count(b" 200 OK") == 2


def test_expect_continue(server: str) -> None:
    whole = post(BODY, b"Expect: 100-continue")
    head, _, body = whole.partition(b"\r\n\r\n")
    parts = urlsplit(server)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as peer:
        peer.sendall(head + b"\r\n\r\n")
        assert peer.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(body)
        assert b" 200 OK" in peer.recv(65536)


def test_connection_close_is_obeyed(server: str) -> None:
    received = exchange(server, post(BODY, b"Connection: close") + post(), answers=2)
    assert received.count(b" 200 OK") == 1
    assert b"connection: close" in received


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b" 400 "),
        (b"POST /v1/completions HTTP/1.1\r\nContent-Length: many\r\n\r\n", b" 400 "),
        (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", b" 501 "),
        (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b" 400 "),
        (b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b" 413 "),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * (server_http.MAX_HEAD + 10), b" 431 "),
        (b"GET /nowhere HTTP/1.1\r\n\r\n", b" 404 "),
        (b"GET /v1/chat/completions HTTP/1.1\r\n\r\n", b" 405 "),
        (b"DELETE /health HTTP/1.1\r\n\r\n", b" 405 "),
        (post(b"not json"), b" 400 "),
        (post(b'{"messages":[]}'), b" 400 "),
        (post(b'{"messages":"text"}'), b" 400 "),
        (post(b'{"messages":[{"role":"user"}],"n":2}'), b" 400 "),
        (post(b'{"prompt":["a","b"]}', path=b"/v1/completions"), b" 400 "),
    ],
)
def test_bad_requests_get_an_answer_that_says_so(
    server: str, request_bytes: bytes, status: bytes
) -> None:
    received = exchange(server, request_bytes)
    assert status in received.split(b"\r\n")[0] + b" "
    assert b'"error"' in received


def test_the_server_survives_a_client_that_leaves(server: str) -> None:
    parts = urlsplit(server)
    with socket.create_connection((parts.hostname, parts.port)) as peer:
        peer.sendall(post()[:40])
    assert stats(server)["in_flight"] == 0
