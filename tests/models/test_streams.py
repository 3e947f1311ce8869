"""Streamed answers: the same as unstreamed ones however they are cut, timed, and never half an answer."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from assay.errors import CallError, LaneError, PermanentError, TransientError
from assay.interfaces import Completion, Request
from assay.models import anthropic as anthropic_module
from assay.models._chat_answer import read_answer
from assay.models._plain_http import HttpAnswer, _Connection
from assay.models._reqwest import ReqwestClient
from assay.models._secrets import NO_SECRETS
from assay.models._streams import JoinedStream, events, is_stream, join_chat, join_messages, times
from assay.models.anthropic import anthropic
from assay.models.openai import HttpModel, openai
from assay.server import Options, running
from assay.server.streams import events_of

KEY = "sk-secret-0123456789"
Ask = Callable[..., Completion]
LONG = "What is 17 * 23? Think step by step."
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
TOOL = {
    "name": "reply",
    "parameters": {"type": "object", "properties": {"answer": {"type": "integer"}}},
}
TOKENS = [{"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1.5}]}]
CALLS = [
    {
        "id": "c1",
        "type": "function",
        "function": {"name": "first", "arguments": '{"city": "Zürich", "n": 12345}'},
    },
    {"id": "c2", "type": "function", "function": {"name": "second", "arguments": "{}"}},
]
texts = st.text(st.characters(codec="utf-8"), max_size=40)


def chat_answer(message: dict[str, Any], finish: str, logprobs: Any = None) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs}
    head = {"id": "x", "object": "chat.completion", "model": "m", "system_fingerprint": "f"}
    return json.dumps({**head, "choices": [choice], "usage": USAGE}).encode()


messages = st.fixed_dictionaries(
    {"content": st.none() | texts},
    optional={
        "reasoning_content": texts,
        "reasoning": texts,
        "refusal": texts,
        "tool_calls": st.sampled_from([CALLS, CALLS[:1]]),
    },
)
chats = st.builds(
    chat_answer,
    messages,
    st.sampled_from(["stop", "length", "content_filter"]),
    st.sampled_from([None, {"content": TOKENS}]),
)


def message_answer(content: list[dict[str, Any]], stop: str) -> bytes:
    head = {"id": "x", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 5}
    return json.dumps({**head, "content": content, "stop_reason": stop, "usage": usage}).encode()


blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, texts),
    st.builds(
        lambda text: {"type": "tool_use", "id": "t", "name": "f", "input": {"a": text, "b": [1]}},
        texts,
    ),
)
replies = st.builds(
    message_answer,
    st.lists(blocks, max_size=4),
    st.sampled_from(["end_turn", "max_tokens", "tool_use", "refusal"]),
)
APIS: dict[str, tuple[Any, Any, Any]] = {
    "chat": (chats, join_chat, read_answer),
    "messages": (replies, join_messages, anthropic_module.read_answer),
}


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_a_joined_answer_is_the_unstreamed_one(api: str, data: st.DataObject) -> None:
    answers, join, read = APIS[api]
    whole = data.draw(answers)
    joined = join(b"".join(events_of(whole, usage=True)), NO_SECRETS)
    assert (joined.status, read(joined.body)) == (200, read(whole))


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=12)
@given(data=st.data())
def test_no_beginning_of_a_stream_is_an_answer(api: str, data: st.DataObject) -> None:
    """Cut after any byte: an error, or the whole text."""
    answers, join, read = APIS[api]
    whole = data.draw(answers)
    stream = b"".join(events_of(whole, usage=True))
    expected, errors = read(whole), 0
    for size in range(len(stream)):
        try:
            found = read(join(stream[:size], NO_SECRETS).body)
        except TransientError:
            errors += 1
            continue
        said = (found.text, found.reasoning, found.tool_calls, found.finish_reason, found.logprobs)
        assert said == (
            expected.text,
            expected.reasoning,
            expected.tool_calls,
            expected.finish_reason,
            expected.logprobs,
        )
    assert errors > len(stream) / 2


def naive_events(text: str) -> list[str]:
    """Server-sent events as the standard words it, letter by letter."""
    found, data, line = [], [], ""
    lines: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in "\r\n":
            lines.append(line)
            line = ""
            at += 2 if text[at : at + 2] == "\r\n" else 1
        else:
            line += letter
            at += 1
    for line in lines:
        if line == "":
            if data:
                found.append("\n".join(data))
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    return found


FIELDS = [": comment", "event: message", "id: 7", "retry: 3", "x: y", "", "", "no field"]
lines = st.sampled_from(['data: {"a": 1}', 'data:{"b":"ü"}', "data: [1,", "data: 2]", *FIELDS])


@given(st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n", "\r"]))), st.booleans())
def test_events_are_those_of_the_standard(parts: list[tuple[str, str]], bom: bool) -> None:
    text = "".join(line + end for line, end in [*parts, ("", "\n"), ("", "\n")])
    found = list(events((b"\xef\xbb\xbf" if bom else b"") + text.encode()))
    assert [data.decode() for data, _ in found] == naive_events(text)
    ends = [end for _, end in found]
    assert ends == sorted(ends)


# ---- over connections


def chunked(body: bytes, sizes: list[int]) -> bytes:
    parts, at = [], 0
    for size in [*sizes, len(body)]:
        piece = body[at : at + size]
        if piece:
            parts.append(b"%x\r\n%b\r\n" % (len(piece), piece))
        at += size
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"".join(parts) + b"0\r\n\r\n"


def pieces_of(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in [*sizes, len(data)]:
        if data[at : at + size]:
            yield data[at : at + size]
        at += size


SAID = "Zürich – 東京 – 🙂"
WHOLE = chat_answer({"content": SAID, "reasoning": "hm"}, "stop", {"content": TOKENS})
STREAM = b": ping\r\n\r\n" + b"".join(events_of(WHOLE, usage=True)).replace(b"\n", b"\r\n")
sizes = st.lists(st.integers(1, 60), max_size=80)


@settings(max_examples=60)
@given(sizes, sizes)
def test_our_client_reads_a_stream_however_it_is_cut(
    chunks: list[int], segments: list[int]
) -> None:
    """Chunks of HTTP and segments of TCP are cut in different places, also within a character."""

    async def go() -> tuple[HttpAnswer, list[tuple[int, float]]]:
        ours, theirs = socket.socketpair()
        with theirs:
            loop = asyncio.get_running_loop()
            transport, connection = await loop.create_connection(
                lambda: _Connection(1 << 20), sock=ours
            )
            arrivals: list[tuple[int, float]] = []
            answer = connection.send(b"x", 5, arrivals)
            for piece in pieces_of(chunked(STREAM, chunks), segments):
                connection.data_received(piece)
            result = await answer
            connection.settle()
            transport.abort()
            return result, arrivals

    answer, arrivals = asyncio.run(go())
    assert answer.body == STREAM
    assert arrivals[-1][0] == len(STREAM)
    joined = join_chat(answer.body, NO_SECRETS)
    assert read_answer(joined.body) == read_answer(WHOLE)
    assert times(joined, arrivals, arrivals[0][1], 5)["pieces"] == len(joined.marks) > 3


@pytest.mark.parametrize("plain", [True, False])
def test_both_clients_over_tcp(plain: bool) -> None:
    """Bytes one by one, and all at once."""

    async def go(step: int) -> Completion:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            data = chunked(STREAM, [7] * 1000)
            for at in range(0, len(data), step):
                writer.write(data[at : at + step])
                await writer.drain()
                await asyncio.sleep(0)
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        model = openai(
            "m", endpoint=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", stream=True
        )
        assert isinstance(model, HttpModel)
        if not plain:
            model._transport._client = ReqwestClient({}, 1 << 20, no_proxy=True)
        try:
            return await model.complete(Request([{"role": "user", "content": "x"}], timeout=20))
        finally:
            await model.close()
            server.close()

    for step in (1, 1 << 20):
        found = asyncio.run(go(step))
        assert isinstance(found.stream, dict)
        assert 0 < found.stream["ttft"] <= found.stream["seconds"] < 20
        found.stream = msgspec.UNSET
        assert found == read_answer(WHOLE)


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    with running(Options(skill=1, latency_ms=40, token_ms=10)) as url:
        yield url


MODELS: dict[str, Any] = {
    "chat": lambda url, **more: openai("m", endpoint=url, **more),
    "completions": lambda url, **more: openai("m", endpoint=url, api="completions", **more),
    "messages": lambda url, **more: anthropic("m", endpoint=url, **more),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_server_with_pauses(slow: str, ask: Ask, make: Any) -> None:
    whole, streamed = ask(make(slow), LONG), ask(make(slow, stream=True), LONG)
    assert isinstance(streamed.stream, dict)
    timed = streamed.stream
    assert timed["pieces"] == whole.completion_tokens == 9
    assert timed["ttft"] >= 0.04
    assert timed["longest_pause"] >= timed["time_between_tokens"] > 0.008
    assert timed["generation_speed"] == pytest.approx(1 / timed["time_between_tokens"], rel=1e-2)
    assert timed["seconds"] >= timed["ttft"] + 8 * timed["time_between_tokens"] - 1e-5
    # an id follows from the request
    streamed.stream, streamed.response_id = (msgspec.UNSET, whole.response_id)
    assert streamed == whole


@pytest.mark.parametrize("make", [MODELS["chat"], MODELS["messages"]])
def test_tool_calls(slow: str, ask: Ask, make: Any) -> None:
    params = {"tools": [{"type": "function", "function": TOOL}]}
    whole, streamed = (
        ask(make(slow, stream=stream), "What is 2+2?", params=params) for stream in (False, True)
    )
    assert whole.tool_calls == streamed.tool_calls
    assert streamed.tool_calls is not None
    assert json.loads(streamed.tool_calls[0]["function"]["arguments"]) == {"answer": 4}


@pytest.mark.parametrize("fault", ["torn", "garbage", "unfinished", "error_event"])
@pytest.mark.parametrize("plain", [True, False])
def test_broken_streams_are_worth_another_try(ask: Ask, fault: str, plain: bool) -> None:
    rates: dict[str, Any] = {f"rate_{fault}": 1.0}
    with running(Options(**rates)) as url:
        for make in MODELS.values():
            model = make(url, stream=True)
            if not plain:
                model._transport._client = ReqwestClient(
                    {"content-type": "application/json"}, 1 << 20, no_proxy=True
                )
            with pytest.raises(TransientError) as caught:
                ask(model, LONG)
            assert caught.value.overload == (fault == "error_event")
            assert not caught.value.unreachable


# ---- what servers have been seen to send


def said(*events: Any, end: str = "[DONE]") -> bytes:
    data = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {event}\n\n" for event in [*data, *([end] if end else [])]).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def joined_chat(*events: Any, **more: Any) -> Completion:
    return read_answer(join_chat(said(*events, **more), NO_SECRETS).body)


def test_shapes_of_chunks() -> None:
    azure = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    assert (
        joined_chat(azure, delta(content="a"), delta(content="b", finish="stop"), end="").text
        == "ab"
    )
    other = {"choices": [{"index": 1, "delta": {"content": "no"}}]}
    assert joined_chat(other, delta(content="yes"), delta("stop")).text == "yes"
    parts = [{"type": "text", "text": "one"}]
    assert (
        joined_chat(
            delta(content=parts), delta(content="!", reasoning={"odd": 1}), delta("stop")
        ).text
        == "one!"
    )
    assert joined_chat(delta(content="x"), delta("length")).finish_reason == "length"
    assert joined_chat(delta(content="x")).finish_reason is None
    wrong = joined_chat(
        delta(content="x"), {"usage": [1], "choices": {"a": 1}}, delta(finish={"odd": 1})
    )  # type: ignore[arg-type]
    assert (wrong.text, wrong.completion_tokens) == ("x", None)
    counted = [{**delta(content="x"), "usage": {"completion_tokens": n}} for n in (1, 2)]
    assert joined_chat(*counted).completion_tokens == 2
    with pytest.raises(TransientError, match="no choices"):
        joined_chat({"usage": USAGE})
    with pytest.raises(TransientError, match="ended before the answer did"):
        joined_chat(delta(content="x"), {}, delta(finish={"odd": 1}), end="")  # type: ignore[arg-type]


def test_shapes_of_tool_calls() -> None:
    def call(**fields: Any) -> dict[str, Any]:
        return delta(tool_calls=[fields])

    whole = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    repeated = [
        call(index=0, id="1", type="function", function={"name": "f", "arguments": part})
        for part in ('{"a"', ":1}")
    ]
    assert joined_chat(*repeated).tool_calls == [whole]
    without_index = [call(**whole), call(**{**whole, "id": "2"}), call(function={"arguments": "x"})]
    found = joined_chat(*without_index).tool_calls
    assert found is not None
    assert [(c["id"], c["function"]["arguments"]) for c in found] == [
        ("1", '{"a":1}'),
        ("2", '{"a":1}x'),
    ]
    mixed = joined_chat(
        call(index=1, id="b", function={"name": "g"}),
        call(index=0, id="a"),
        call(index=1, function={"arguments": "{}"}),
    )
    assert mixed.tool_calls == [
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
        {"id": "a"},
    ]


def test_log_probabilities_of_text_completions() -> None:
    chunks = [
        {
            "choices": [
                {
                    "text": text,
                    "logprobs": {"tokens": [text], "token_logprobs": [value], "top_logprobs": None},
                }
            ]
        }
        for text, value in (("a", -1.0), ("b", -2.0))
    ]
    found = joined_chat(*chunks)
    assert (found.text, [(token["token"], token["logprob"]) for token in found.logprobs or []]) == (
        "ab",
        [("a", -1.0), ("b", -2.0)],
    )


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, TransientError),
        (
            {"error": {"message": "the prompt is too long: maximum context", "code": 400}},
            PermanentError,
        ),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, PermanentError),
        ({"error": {"message": "no", "code": 401}}, LaneError),
        ({"error": {"message": "crashed", "code": "oops"}}, TransientError),
        ({"error": "crashed"}, TransientError),
    ],
)
def test_an_error_event_is_what_the_answer_would_have_been(
    ask: Ask, event: Any, kind: type[CallError]
) -> None:
    body = said(delta(content="half"), event)
    with canned(body) as url, pytest.raises(kind) as caught:
        ask(openai("m", endpoint=url, stream=True), "x")
    assert (
        str(event["error"]["message"] if isinstance(event["error"], dict) else "crashed")
        in caught.value.what
    )


def test_llama_cpp_reports_an_error_as_a_field() -> None:
    joined = join_chat(b'error: {"code": 503, "message": "loading"}\n\n', NO_SECRETS)
    assert joined.status == 503


def canned(body: bytes, refused: bytes = b"nothing") -> Any:
    """A server that answers everything with these bytes, and refuses requests that hold `refused`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bad = refused in self.rfile.read(int(self.headers["content-length"]))
            answer = b'{"error": {"message": "unknown field: %b"}}' % refused if bad else body
            self.send_response(422 if bad else 200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None: ...

    @contextmanager
    def serving() -> Generator[str]:
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
            thread.join()

    return serving()


def test_a_server_that_answers_at_once_has_no_times(ask: Ask) -> None:
    with canned(WHOLE) as url:
        answer = ask(openai("m", endpoint=url, stream=True), "x")
    assert (answer.text, answer.stream) == (SAID, msgspec.UNSET)
    with (
        canned(b"<html>Bad gateway") as url,
        pytest.raises(TransientError, match="not JSON: <html>Bad gateway"),
    ):
        ask(openai("m", endpoint=url, stream=True), "x")
    assert is_stream(b"\xef\xbb\xbf\n: hello\n\n")
    assert not is_stream(b"")


async def both(body: bytes) -> list[str]:
    with canned(body, b"stream_options") as url:
        model, request = (
            openai("m", endpoint=url, stream=True),
            Request([{"role": "user", "content": "x"}]),
        )
        answers = await asyncio.gather(model.complete(request), model.complete(request))
        await model.close()
    return [answer.text for answer in answers]


def test_a_server_that_does_not_count(ask: Ask) -> None:
    with canned(
        said(delta(content="a"), delta(content="b"), delta("stop")), b"stream_options"
    ) as url:
        answer = ask(openai("m", endpoint=url, stream=True), "x")
    assert isinstance(answer.stream, dict)
    assert (answer.text, answer.completion_tokens, answer.stream["pieces"]) == ("ab", None, 2)
    assert asyncio.run(both(said(delta(content="c"), delta("stop")))) == ["c", "c"], (
        "refused side by side"
    )
    with canned(b"", b"messages") as url, pytest.raises(PermanentError, match="unknown field"):
        ask(openai("m", endpoint=url, stream=True), "x")


def test_a_key_that_comes_in_pieces_is_masked(ask: Ask) -> None:
    body = said(*(delta(content=KEY[at : at + 4]) for at in range(0, len(KEY), 4)), delta("stop"))
    with canned(body) as url:
        answer = ask(openai("m", endpoint=url, api_key=KEY, stream=True), "x")
    assert (answer.text, answer.masked) == ("[secret]", True)
    with canned(said(f"no JSON {KEY}")) as url, pytest.raises(TransientError) as caught:
        ask(openai("m", endpoint=url, api_key=KEY, stream=True), "x")
    assert KEY not in str(caught.value)


def test_hostile_streams_end_in_time() -> None:
    with pytest.raises(TransientError, match="too many lines"):
        join_chat(b"data: 1" + b"\n" * 5_000_000, NO_SECRETS)
    calls = [{"index": n, "function": {"arguments": "x"}} for n in range(20_000)]
    found = joined_chat(delta(tool_calls=calls)).tool_calls
    assert found is not None
    assert len(found) == 20_000
    parts = [{"index": 0, "function": {"arguments": "x" * 50}} for _ in range(40_000)]
    (whole,) = joined_chat(delta(tool_calls=parts)).tool_calls or []
    assert len(whole["function"]["arguments"]) == 2_000_000
    deep = delta(tool_calls=[{"index": 0, "odd": json.loads("[" * 400 + "]" * 400)}])
    with pytest.raises(TransientError):
        joined_chat(deep)
    for odd in (
        {"type": "content_block_start", "index": [], "content_block": {}},
        {"type": "message_delta", "delta": {}, "usage": [1]},
    ):
        assert join_messages(said(odd, {"type": "message_stop"}, end=""), NO_SECRETS).status == 200


# ---- times


def test_times_by_hand() -> None:
    joined = JoinedStream(200, b"", [10, 20, 30, 40])
    arrivals = [(5, 100.5), (20, 101.0), (31, 101.5), (39, 102.0), (50, 103.0), (60, 104.0)]
    assert times(joined, arrivals, 100.0, None) == {
        "seconds": 4.0,
        "pieces": 4,
        "ttft": 1.0,
        "time_between_tokens": round(2 / 3, 6),
        "generation_speed": 1.5,
        "longest_pause": 1.5,
    }
    assert times(joined, arrivals, 100.0, 9)["generation_speed"] == 4.0
    hidden = joined._replace(hidden=4)
    assert times(hidden, arrivals, 100.0, 9)["generation_speed"] == 2.0
    at_once = times(joined, [(60, 101.0)], 100.0, 9)
    assert at_once == {"seconds": 1.0, "pieces": 4, "ttft": 1.0}
    assert times(JoinedStream(200, b""), [(60, 101.0)], 100.0, 0) == {"seconds": 1.0, "pieces": 0}


def test_reasoning_that_is_counted_and_not_sent() -> None:
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 4}}
    silent = join_chat(said(delta(content="x"), {"usage": usage}), NO_SECRETS)
    told = join_chat(said(delta(reasoning="hm"), delta(content="x"), {"usage": usage}), NO_SECRETS)
    assert (silent.hidden, told.hidden) == (4, 0)


# ---- what is sent


def test_what_is_sent(strange: str, ask: Ask) -> None:
    def sent(**more: Any) -> dict[str, Any]:
        params = more.pop("params", {})
        return json.loads(ask(openai("m", endpoint=strange, **more), "echo", params=params).text)

    plain = sent(params={"stream": True})
    assert "stream" not in plain
    assert sent(stream=True) == {**plain, "stream": True, "stream_options": {"include_usage": True}}
    assert sent(stream=True, extra_body={"stream_options": {}})["stream_options"] == {}
    assert sent(params={"stream_options": {"include_usage": False}}, stream=True)[
        "stream_options"
    ] == {"include_usage": False}
    assert sent(extra_body={"stream": True})["stream_options"] == {"include_usage": True}
    streamed, whole = openai("m", stream=True), openai("m")
    assert streamed.identity == whole.identity
    assert anthropic("m", stream=True).identity == anthropic("m").identity
