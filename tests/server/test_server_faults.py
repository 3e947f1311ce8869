import asyncio
import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, strategies as st

from assay.errors import UserError
from assay.server import Options, running, stats
from assay.server.http import HUGE_BODY
from assay.server.options import Faults, uniform

QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "What is 2+2?"}]}


@given(st.integers(min_value=0, max_value=2**40), st.integers(min_value=0, max_value=2**40))
def test_draws_are_uniform_shares(seed: int, number: int) -> None:
    assert 0 <= uniform(seed, number) < 1
    assert uniform(seed, number) == uniform(seed, number)


def test_fault_rates_are_met_and_depend_on_the_seed() -> None:
    options = Options(rate_429=0.1, rate_500=0.05, rate_drop=0.05, rate_torn=0.02, rate_huge=0.01)
    drawn = [Faults(options).draw(number) for number in range(20_000)]
    for fault, rate in {
        "429": 0.1,
        "500": 0.05,
        "drop": 0.05,
        "torn": 0.02,
        "huge": 0.01,
        "": 0.77,
    }.items():
        assert drawn.count(fault) / len(drawn) == pytest.approx(rate, rel=0.15)
    other = Faults(Options(seed=1, rate_429=0.1))
    assert [other.draw(number) for number in range(200)] != [
        d if d == "429" else "" for d in drawn[:200]
    ]


@pytest.mark.parametrize(
    "bad",
    [
        {"rate_429": 2},
        {"rate_429": 0.6, "rate_500": 0.6},
        {"port": -1},
        {"processes": 0},
        {"latency_ms": -1},
    ],
)
def test_impossible_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Options(**bad)


def test_429_says_when_to_come_back(send: Callable[..., Any]) -> None:
    with running(Options(rate_429=1.0, retry_after=2.5)) as url:
        status, headers, _ = send(url, "/v1/chat/completions", QUESTION)
        assert (status, headers["retry-after"]) == (429, "2.5")
        assert stats(url)["statuses"]["429"] == 1


def test_500(send: Callable[..., Any]) -> None:
    with running(Options(rate_500=1.0)) as url:
        assert send(url, "/v1/chat/completions", QUESTION)[0] == 500


def test_dropped_and_torn_connections(send: Callable[..., Any]) -> None:
    with (
        running(Options(rate_drop=1.0)) as url,
        pytest.raises((http.client.RemoteDisconnected, ConnectionError)),
    ):
        send(url, "/v1/chat/completions", QUESTION)
    with running(Options(rate_torn=1.0)) as url, pytest.raises(http.client.IncompleteRead):
        send(url, "/v1/chat/completions", QUESTION)


def test_a_huge_body_is_whole_and_the_connection_goes_on() -> None:
    with running(Options(rate_huge=1.0)) as url:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        connection.request("POST", "/v1/chat/completions", b'{"prompt":"","messages":[{}]}')
        answer = connection.getresponse()
        size, last = 0, b""
        while piece := answer.read(1 << 20):
            size, last = size + len(piece), piece
        assert (size, last[-6:]) == (HUGE_BODY, b'a"}}]}')
        connection.request("GET", "/stats")
        assert b'"huge":1' in connection.getresponse().read()
        connection.close()


def test_equal_seeds_fail_the_same_requests(send: Callable[..., Any]) -> None:
    def run() -> list[int]:
        with running(Options(seed=7, rate_500=0.3)) as url:
            return [send(url, "/v1/chat/completions", QUESTION)[0] for _ in range(25)]

    first = run()
    assert first == run()
    assert set(first) == {200, 500}


def test_capacity_bounds_what_is_in_flight() -> None:
    async def ask(url: str) -> bytes:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        body = b'{"messages":[{"content":"What is 2+2?"}]}'
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        line = await reader.readline()
        writer.close()
        return line

    async def ask_all(url: str) -> list[bytes]:
        return await asyncio.gather(*(ask(url) for _ in range(12)))

    with running(Options(capacity=4, latency_ms=300)) as url:
        lines = asyncio.run(ask_all(url))
        counted = stats(url)
    assert lines.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert lines.count(b"HTTP/1.1 429 Too Many Requests\r\n") == 8
    assert counted["max_in_flight"] == 4
    assert counted["requests"] == 12
    assert counted["in_flight"] == 0
