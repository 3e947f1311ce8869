"""A model whose answers and log-probabilities are a function of the text, for fixtures and tests.

`answer(text)` is what it generates, `log_probabilities(tokens)` what it thinks of a text. `FakeServer` speaks the
OpenAI protocol: /v1/completions (text or token ids, one or many; echo, logprobs, text_offset, top_logprobs),
/v1/chat/completions, and the tokenizer's endpoints /tokenizer_info, /tokenize, /detokenize. In a program:

    with FakeServer() as server:      # a thread; server.bodies has every body that asked for an answer
        ... server.url + "/v1/completions"

As a process: `python fake_answers.py [PORT]` prints its URL and serves until its standard input ends.

A text that contains "(hint: X)" is a question whose answer is X; the model knows it more often than not, and
writes it in many forms. With a temperature above 0, equal requests get different answers: the n-th one is
`answer(text, n)`; POST /reset starts the count again.
"""

import asyncio
import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any
from zlib import crc32

BOS, EOS = "<s>", "</s>"
SPECIAL = {BOS: 1, EOS: 2}
NAMES = {number: text for text, number in SPECIAL.items()}
# at most six bytes: an id fits into 53 bits
PIECE = re.compile(r"</?s>| ?[A-Za-z]{1,5}| ?[0-9]{1,3}|.", re.DOTALL)
HINT = re.compile(r"\(hint: (.*?)\)")
FORMS = (
    "{}",
    " {}",
    "{}.",
    " {}\n\nQuestion: and then?",
    "The answer is {}.",
    "the answer is {}.",
    "The answer is ({}).",
    "Let me think.\nIt is so.\n#### {}",
    "#### {}\n\nQ: another",
    "So the final answer is $\\boxed{{{}}}$. I hope it is correct.",
    "Final Answer: The final answer is {}. I hope it is correct.",
    "{}\nbecause of that",
    "**{}**",
    "Answer: {}",
    '"{}"',
    "The best answer is {}",
    "[[ANSWER]] {} </s> x",
    "nothing to say",
    "",
    "Überraschung: {} 🙂",
    "('{}', 'NOUN'), ('b', 'VERB')",
    "person: {} $ location: Rome $ none: x",
    "A, B or {}",
)


def tokenize(text: str) -> list[str]:
    """The pieces of a text; joined they are the text again."""
    return PIECE.findall(text)


def token_ids(pieces: Sequence[str]) -> list[int]:
    return [
        SPECIAL.get(piece) or int.from_bytes(b"\x01" + piece.encode("utf-8", "surrogatepass"))
        for piece in pieces
    ]


def piece_of(number: int) -> str:
    size = (number.bit_length() + 7) // 8
    return NAMES.get(number) or number.to_bytes(size)[1:].decode("utf-8", "surrogatepass")


def detokenize(numbers: Sequence[int]) -> str:
    return "".join(map(piece_of, numbers))


def log_probabilities(pieces: Sequence[str]) -> list[tuple[float, bool]]:
    """For each piece, given all text before it: its log-probability (a multiple of 1/1024, so that sums are exact)
    and whether no other piece is likelier."""
    state, values = 0, []
    for piece in pieces:
        state = crc32(piece.encode("utf-8", "surrogatepass"), state)
        mixed = state * 2654435761 & 0xFFFFFFFF
        values.append((-((mixed >> 19) + 1) / 1024, mixed & 0x700 != 0))
    return values


def score(context: str, continuation: str) -> tuple[float, bool]:
    """The log-likelihood of a continuation and whether it is the greedy one, by the harness's cut between tokens;
    after an empty context the text begins with the BOS token."""
    kept = context.rstrip()
    continuation = context[len(kept) :] + continuation
    head = tokenize(kept or BOS)
    tail = tokenize(kept + continuation)[len(head) if kept else 0 :]
    # the harness sends text: where a token spans the cut, characters are lost
    sent = tokenize("".join(head + tail))
    values = log_probabilities(sent)[len(head) :]
    return sum(value for value, _ in values), all(greedy for _, greedy in values)


def answer(text: str, number: int = 0) -> str:
    """What the model writes after a text, before stop strings and the limit of tokens; `number` counts repetitions."""
    draws = blake2b(f"{number}\x00{text}".encode("utf-8", "surrogatepass")).digest()
    hints = HINT.findall(text)
    if hints:
        right = hints[-1]
        word = right if draws[0] < 180 else _other(right, draws[1])
    else:
        words = re.findall(r"\w+", text[-300:]) or ["none"]
        word = words[draws[0] % len(words)]
    return FORMS[draws[2] % len(FORMS) if draws[3] > 110 else 0].format(word)


def _other(right: str, draw: int) -> str:
    """A wrong answer of the same kind."""
    if right.isdigit():
        return str(int(right) + 1 + draw % 3)
    if re.fullmatch("[A-J]", right):
        return "ABCD"[draw % 4]
    return ("no", "yes", right.upper(), right + " tree", right[: len(right) // 2])[draw % 5]


def cut(text: str, stop: Sequence[str], limit: int) -> str:
    """A text up to the first stop string, at most `limit` tokens of it."""
    for end in stop:
        if end:
            text = text.split(end)[0]
    return "".join(tokenize(text)[:limit])


def chat_text(messages: Sequence[dict[str, Any]]) -> str:
    """The text that stands for a chat."""
    return "\n".join(f"{message['role']}: {message['content']}" for message in messages)


class Replies:
    """The server's answers: from a path and a body to a reply."""

    def __init__(self, always_stops: Sequence[str]) -> None:
        self.always_stops = always_stops  # the end of a text, for clients that do not know it
        self.bodies: list[bytes] = []
        self.seen: Counter[bytes] = Counter()
        self.open: set[asyncio.Transport] = set()

    def reply(self, path: str, body: bytes) -> dict[str, Any]:
        asked = json.loads(body) if body else {}
        match path:
            case "/tokenizer_info":
                return {
                    "tokenizer_class": "FakeTokenizer",
                    "bos_token": BOS,
                    "eos_token": EOS,
                    "pad_token": EOS,
                }
            case "/tokenize":
                numbers = token_ids(tokenize(asked["prompt"]))
                return {"tokens": numbers, "count": len(numbers), "max_model_len": 2048}
            case "/detokenize":
                return {"prompt": detokenize(asked["tokens"])}
            case "/v1/models":
                return {"object": "list", "data": [{"id": "fake", "object": "model"}]}
            case "/reset":
                self.seen.clear()
                return {}
            case "/v1/completions":
                return self._completions(asked, body)
            case "/v1/chat/completions":
                return self._chat(asked, body)
            case _:
                raise LookupError(path)

    def _write(self, text: str, asked: dict[str, Any], body: bytes) -> str:
        number = 0
        if asked.get("temperature"):
            number = self.seen[body]
            self.seen[body] += 1
        stop = asked.get("stop") or []
        limit = asked.get("max_tokens") or asked.get("max_completion_tokens") or 16
        stops = [stop] if isinstance(stop, str) else stop
        return cut(answer(text, number), [*stops, *self.always_stops], limit)

    def _completions(self, asked: dict[str, Any], body: bytes) -> dict[str, Any]:
        self.bodies.append(body)
        prompt = asked["prompt"]
        prompts = (
            [prompt]
            if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int))
            else prompt
        )
        choices: list[dict[str, Any]] = []
        tokens = 0
        for place, text in enumerate(prompts):
            text = text if isinstance(text, str) else detokenize(text)
            tokens += len(tokenize(text))
            if asked.get("echo"):
                choice = self._echo(text, asked)
            else:
                choice = {
                    "text": self._write(text, asked, body),
                    "finish_reason": "stop",
                    "logprobs": None,
                }
            choices.append({"index": place, **choice})
        return _whole("text_completion", asked, choices, tokens)

    def _echo(self, text: str, asked: dict[str, Any]) -> dict[str, Any]:
        pieces = tokenize(text) + [" and"] * min(asked.get("max_tokens", 1), 1)
        if asked.get("logprobs") is None:
            return {"text": "".join(pieces), "finish_reason": "length", "logprobs": None}
        values = log_probabilities(pieces)
        tops: list[dict[str, float] | None] = [
            {piece: value} if greedy else {"<other>": value / 2, piece: value}
            for piece, (value, greedy) in zip(pieces, values, strict=True)
        ]
        return {
            "text": "".join(pieces),
            "finish_reason": "length",
            "logprobs": {
                "tokens": pieces,
                "token_logprobs": [None, *(value for value, _ in values[1:])],
                "top_logprobs": [None, *tops[1:]],
                "text_offset": [0, *accumulate(map(len, pieces[:-1]))],
            },
        }

    def _chat(self, asked: dict[str, Any], body: bytes) -> dict[str, Any]:
        self.bodies.append(body)
        text = chat_text(asked["messages"])
        message = {"role": "assistant", "content": self._write(text, asked, body)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return _whole("chat.completion", asked, [choice], len(tokenize(text)))


def _whole(
    kind: str, asked: dict[str, Any], choices: list[dict[str, Any]], tokens: int
) -> dict[str, Any]:
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": len(choices),
        "total_tokens": tokens + len(choices),
    }
    return {
        "id": "fake",
        "object": kind,
        "model": asked.get("model"),
        "choices": choices,
        "usage": usage,
    }


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive: only what the clients of the tests send."""

    def __init__(self, replies: Replies) -> None:
        self.replies = replies
        self.buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.replies.open.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.replies.open.discard(self.transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end])
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < whole:
                return
            body = bytes(self.buffer[end + 4 : whole])
            del self.buffer[:whole]
            self._respond(head.split(b" ", 2)[1].decode().split("?")[0], body)

    def _respond(self, path: str, body: bytes) -> None:
        try:
            status, value = b"200 OK", self.replies.reply(path, body)
        except (LookupError, ValueError, TypeError) as error:
            status, value = (
                b"400 Bad Request",
                {"error": {"message": f"{type(error).__name__}: {error}"}},
            )
        content = json.dumps(value).encode()
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % (status, len(content)) + content)


class FakeServer:
    """The model behind a port of the loopback interface, in a thread."""

    def __init__(self, port: int = 0, *, always_stops: Sequence[str] = ()) -> None:
        self.replies = Replies(always_stops)
        self.socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.loop = asyncio.new_event_loop()
        self.ended = asyncio.Event()
        self.thread = threading.Thread(
            target=lambda: self.loop.run_until_complete(self._serve()), daemon=True
        )

    @property
    def bodies(self) -> list[bytes]:
        return self.replies.bodies

    async def _serve(self) -> None:
        server = await self.loop.create_server(lambda: Connection(self.replies), sock=self.socket)
        await self.ended.wait()
        server.close()
        for connection in self.replies.open:
            connection.abort()
        await asyncio.sleep(0)

    def __enter__(self) -> "FakeServer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join()
        self.loop.close()


if __name__ == "__main__":
    with FakeServer(int(sys.argv[1]) if sys.argv[1:] else 0) as fake:
        print(fake.url, flush=True)
        sys.stdin.read()
