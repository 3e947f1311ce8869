"""What the mock server says to a request: the demo solver, or the user's own answers.

A user's answer is a string (the assistant's text), a dict (the whole JSON body, whatever its shape), bytes
(the whole body), `{"status": …, "headers": {…}, "body": …}` (a raw HTTP answer) or None (the solver answers).
A file has lines `{"prompt" | "messages" | "match": …, "response": …}`; `match` is a regular expression.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from assay.demo.solver import count_tokens, respond
from assay.errors import UserError
from assay.records import JsonObject
from assay.server import likelihoods, messages_api
from assay.server.options import Options
from assay.server.streams import events_of
from assay.text.messages import messages_text

MODEL = "assay-demo"
FINGERPRINT = f"{MODEL}-1"
_encode = msgspec.json.encode
_JSON = b"application/json"


class CompletionRequest(msgspec.Struct):
    """The part of a chat or completions request that the solver needs."""

    model: str = MODEL
    messages: list[JsonObject] | None = None
    prompt: str | list[str] | None = None
    seed: int | None = None
    stream: bool | None = None
    stream_options: JsonObject | None = None
    n: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    response_format: JsonObject | None = None


class MockReply(NamedTuple):
    """An answer; `events` are sent in place of the body where there are any."""

    body: bytes
    status: int = 200
    content_type: bytes = _JSON
    headers: tuple[tuple[str, str], ...] = ()
    events: tuple[bytes, ...] = ()


_decode = msgspec.json.Decoder(CompletionRequest).decode
Hook = Callable[[JsonObject], Any]
Reader = Callable[[bytes], CompletionRequest]
Writer = Callable[[str, list[Any], str, list[Any] | None, bytes], bytes]


def error_body(message: str, kind: str) -> bytes:
    """An error that clients of both APIs understand."""
    return _encode(
        {"type": "error", "error": {"message": message, "type": kind, "param": None, "code": None}}
    )


def refusal(message: str, status: int = 400) -> MockReply:
    return MockReply(error_body(message, "invalid_request_error"), status)


class MockAnswers:
    """Answers requests; `hook` is the user's function or file, if there is one."""

    def __init__(self, options: Options) -> None:
        self.seed = options.seed
        self.skill = options.skill
        self.hook: Hook | None = load(options.answers) if options.answers else None

    def chat(self, body: bytes) -> MockReply:
        return self._reply(body, _decode, _body, "'messages' is missing or empty")

    def completions(self, body: bytes) -> MockReply:
        if (
            self.hook is None
            and b"logprobs" in body
            and (scored := _scoring_reply(body)) is not None
        ):
            return scored
        return self._reply(
            body, _decode_prompt, partial(_body, chat=False), "'prompt' is missing or not one text"
        )

    def messages(self, body: bytes) -> MockReply:
        """Anthropic's API: its requests are put into the words of the chat API, the answers back into its own."""
        read = lambda body: CompletionRequest(**messages_api.as_chat(body))  # noqa: E731
        return self._reply(body, read, messages_api.answer_body, "'messages' is missing or empty")

    # a user's answer of another shape
    def _reply(self, body: bytes, read: Reader, write: Writer, missing: str) -> MockReply:
        try:
            request = read(body)
        except (msgspec.DecodeError, ValueError) as error:
            return refusal(f"the request is not what this server reads: {error}")
        reply = self._answer(request, body, write, missing)
        if not request.stream or reply.status != 200 or reply.content_type != _JSON:
            return reply
        usage = bool(request.stream_options and request.stream_options.get("include_usage"))
        try:
            return reply._replace(events=tuple(events_of(reply.body, usage=usage)))
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
            return reply

    def _answer(
        self, request: CompletionRequest, body: bytes, write: Writer, missing: str
    ) -> MockReply:
        if request.n not in (None, 1):
            return refusal("this server gives one choice; send n: 1 and ask again for more")
        messages = request.messages
        if not messages:
            return refusal(missing)
        if self.hook is not None:
            try:
                given = self.hook(msgspec.json.decode(body))
            except (
                Exception
            ) as error:  # the user's function: its mistake must not take the server down
                return MockReply(
                    error_body(f"the answers function failed: {error!r}", "server_error"), 500
                )
            if isinstance(given, str):
                return MockReply(write(request.model, messages, given, None, body))
            if given is not None:
                return _reply_of(given)
        seed = self.seed if request.seed is None else request.seed
        params = {
            "tools": request.tools,
            "tool_choice": request.tool_choice,
            "response_format": request.response_format,
        }
        text, calls = respond(messages, params, skill=self.skill, seed=seed)
        return MockReply(write(request.model, messages, text, calls, body))


def _scoring_reply(body: bytes) -> MockReply | None:
    """The answer to a request for the log-probabilities of prompts, if it is one."""
    try:
        request = msgspec.json.decode(body, type=likelihoods.ScoringRequest)
    except msgspec.DecodeError:
        return None
    if not request.scores:
        return None
    found = likelihoods.answer(request)
    return refusal(found) if isinstance(found, str) else MockReply(_encode(found))


def _reply_of(given: Any) -> MockReply:
    if isinstance(given, bytes):
        return MockReply(given)
    if isinstance(given, dict) and "body" in given:
        raw: JsonObject = given
        body: Any = raw["body"]
        headers = {str(key).lower(): str(value) for key, value in raw.get("headers", {}).items()}
        content_type = headers.pop("content-type", "application/json").encode()
        payload = body.encode() if isinstance(body, str) else body
        payload = payload if isinstance(payload, bytes) else _encode(payload)
        return MockReply(payload, int(raw.get("status", 200)), content_type, tuple(headers.items()))
    return MockReply(_encode(given))


def _decode_prompt(body: bytes) -> CompletionRequest:
    request = _decode(body)
    prompt = request.prompt
    if isinstance(prompt, list):
        prompt = prompt[0] if len(prompt) == 1 else None
    request.messages = None if prompt is None else [{"role": "user", "content": prompt}]
    return request


def _body(
    model: str,
    messages: list[Any],
    text: str,
    calls: list[Any] | None,
    request: bytes,
    chat: bool = True,
) -> bytes:
    """The JSON of one answer. Its id comes from the request, so equal runs write equal rows."""
    calls = calls if chat else None
    prompt_tokens, tokens = count_tokens(messages_text(messages)), count_tokens(text)
    name, content = _encode(model), _encode(text)
    identifier = blake2b(request, digest_size=12).hexdigest().encode()
    head = b'{"id":"chatcmpl-%b","object":"chat.completion"'
    if not chat:
        head, choice = (
            b'{"id":"cmpl-%b","object":"text_completion"',
            b'"text":%b,"logprobs":null' % content,
        )
    elif calls:
        choice = b'"message":{"role":"assistant","content":null,"tool_calls":%b}' % _encode(calls)
    else:
        choice = b'"message":{"role":"assistant","content":%b}' % content
    return (head + b',"created":%d,"model":%b,"choices":[{"index":0,%b,"finish_reason":"%b"}],"usage":{'
            b'"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d},"system_fingerprint":"%b"}') % (
        identifier, int(time.time()), name, choice, b"tool_calls" if calls else b"stop",
        prompt_tokens, tokens, prompt_tokens + tokens, FINGERPRINT.encode(),
    )  # fmt: skip


def load(source: str) -> Hook:
    """The user's answers: `file.py:function`, or a JSONL file."""
    if ".py:" in source:
        from assay.registry import load_function

        path, _, name = source.rpartition(":")
        return load_function(path, name, where="--answers")
    return FileAnswers(Path(source))


class FileAnswers:
    """Answers from a JSONL file: exact prompts by lookup, patterns one after the other."""

    def __init__(self, path: Path) -> None:
        self.exact: JsonObject = {}
        self.patterns: list[tuple[re.Pattern[str], Any]] = []
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise UserError(
                f"the answers cannot be read: {error.strerror}", where=str(path)
            ) from None
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._add(line, f"{path}:{number}")

    def _add(self, line: bytes, where: str) -> None:
        try:
            row: Any = msgspec.json.decode(line)
            response: Any = row["response"]
            if "match" in row:
                self.patterns.append((re.compile(row["match"]), response))
                return
            text = row["prompt"] if "prompt" in row else messages_text(row["messages"])
        except (msgspec.DecodeError, re.error, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f"not an answer: {error}", where=where, fix='write {"prompt": "…", "response": "…"}'
            ) from None
        self.exact.setdefault(text, response)

    def __call__(self, request: JsonObject) -> Any:
        text = (
            messages_text(request["messages"])
            if "messages" in request
            else str(request.get("prompt"))
        )
        if text in self.exact:
            return self.exact[text]
        return next((response for pattern, response in self.patterns if pattern.search(text)), None)
