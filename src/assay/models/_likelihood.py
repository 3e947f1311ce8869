"""How probable texts are to the model of a server. Servers have different ways to tell, and some drop half of the
answer without a word: the first request finds a way that keeps its promise, or stops the lane before anything is spent.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from assay.models._chat_answer import ChatUsage, count, total
from assay.models._failures import UNREADABLE
from assay.models._transport import HttpReply, Transport
from assay.sdk import (
    CallError,
    JsonObject,
    LaneError,
    Likelihood,
    Likelihoods,
    LogProbability,
    PermanentError,
    TransientError,
)
from assay.text.likelihoods import WHO_HAS_THEM, scored_tokens, split
from assay.text.messages import messages_text

PROBE = ("The capital of France is", (" Paris", " not London"))
NOT_THERE = (400, 404, 405, 415, 422, 501)  # of a path or a parameter that a server does not have
_TIMEOUT = 60.0  # seconds for a request of a probe
T = TypeVar("T")
UNKNOWN = "\0"  # the text of a token that a server does not tell
_encode = msgspec.json.encode


class LikelihoodServer(Protocol):
    """The part of a model that ways need: requests to any path below its address."""

    name: str
    model_name: str
    base: str

    @property
    def transport(self) -> Transport: ...

    async def failure(self, reply: HttpReply) -> CallError: ...


class LikelihoodWay(Protocol):
    """One way to ask a server."""

    name: str

    async def ask(self, request: Likelihood) -> Likelihoods: ...


class Unfit(PermanentError):
    """A server has not got a way, or not for this request."""


class NoBeginning(PermanentError):
    """The first token of a text was given no probability."""


class Asker:
    """Finds the way of one server, once, and asks by it."""

    def __init__(self, ways: Sequence[LikelihoodWay], where: str) -> None:
        self._ways = ways
        self._where = where
        self._way: LikelihoodWay | None = None
        self._looking = asyncio.Lock()

    async def ask(self, request: Likelihood) -> Likelihoods:
        if self._way is None:
            async with self._looking:
                self._way = self._way or await self._find()
        answer = await self._way.ask(request)
        answer.way = self._way.name
        return answer

    async def _find(self) -> LikelihoodWay:
        reasons: list[str] = []
        probe = Likelihood(
            [{"role": "user", "content": PROBE[0]}], continuations=[*PROBE[1]], timeout=_TIMEOUT
        )
        for way in self._ways:
            try:
                await way.ask(probe)
            except PermanentError as reason:
                reasons.append(f"{way.name}: {reason.what}")
            else:
                return way
        what = f"the server gives no log-probabilities of prompts ({'; '.join(reasons)})"
        raise LaneError(what, where=self._where, fix=WHO_HAS_THEM)


async def answer_of(
    server: LikelihoodServer, url: str, body: JsonObject, type: type[T], timeout: float
) -> T:
    """The JSON that a server answers; Unfit if it has no such path or parameter."""
    reply = await server.transport.post(_encode(body), url=url, timeout=timeout)
    if not 200 <= reply.status < 300:
        error = await server.failure(reply)
        what = (
            "HTTP 404" if reply.status == 404 and not url.endswith("/completions") else error.what
        )
        raise Unfit(what, where=error.where, fix=error.fix) if reply.status in NOT_THERE else error
    try:
        return msgspec.json.decode(reply.body, type=type)
    except msgspec.ValidationError as error:
        raise Unfit(f"its answer has another shape ({error})") from None
    except UNREADABLE:
        raise TransientError("the server's answer is not JSON") from None


class PromptTokens(NamedTuple):
    """The tokens of a prompt: texts, log-probabilities (None where there is none, at the beginning of a text), and
    whether the one at a place was the most probable."""

    texts: list[str]
    logprobs: list[float | None]
    greedy: Callable[[int], bool | None]


class Lists(msgspec.Struct):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None = None


class TokenEntry(msgspec.Struct):
    logprob: float
    rank: int | None = None
    decoded_token: str = ""


class ScoredChoice(msgspec.Struct):
    index: int = 0
    logprobs: Lists | None = None
    prompt_logprobs: list[dict[str, TokenEntry] | None] | None = None


class _PromptPart(msgspec.Struct):
    logprobs: Lists


class _CompletionBody(msgspec.Struct):
    choices: list[ScoredChoice]
    prompt: Any = None
    model: str | None = None
    system_fingerprint: str | None = None
    usage: ChatUsage = msgspec.field(default_factory=ChatUsage)


class ScoredPrompts(NamedTuple):
    """The tokens of some prompts, and what it took."""

    prompts: list[PromptTokens]
    usage: ChatUsage
    model: str | None = None
    fingerprint: str | None = None


class Completions:
    """`/completions` with all continuations of a context in one request. What is scored comes back by token, as text:
    where a continuation begins is found in the texts, or else by counting the tokens of the context alone."""

    name = "echo"
    asks: JsonObject = {"echo": True, "logprobs": 1}
    behind = 1  # tokens that are generated, because not all servers generate none

    def __init__(self, server: LikelihoodServer, extra: JsonObject) -> None:
        self._server = server
        self._extra = extra
        self._begins = False  # whether the server puts a token before every text
        self._first = ""  # the token that has to be put before a text, where the server does not
        self._together: bool | None = None  # whether it takes several prompts at once

    async def ask(self, request: Likelihood) -> Likelihoods:
        if request.chat:
            raise PermanentError(
                "this server cannot be asked about chats",
                fix="use llama.cpp or `type: transformers`",
            )
        context = messages_text(request.messages) or self._first
        try:
            return await self._after(context, request)
        except NoBeginning:
            self._first = self._first or ("" if context else await beginning(self._server))
            if context or not self._first:
                raise
            return await self._after(self._first, request)

    async def _after(self, context: str, request: Likelihood) -> Likelihoods:
        pairs = [split(context, continuation) for continuation in request.continuations]
        scored = await self._score_prompts(["".join(pair) for pair in pairs], request.timeout)
        values: list[LogProbability] = []
        alone: int | None = None
        for tokens, (before, after) in zip(scored.prompts, pairs, strict=True):
            part = scored_tokens(tokens.texts, before, after)
            if part is not None:
                self._begins = not (before + after).startswith(tokens.texts[0])
            else:
                alone = await self._length(before, request.timeout) if alone is None else alone
                part = alone, len(tokens.texts) - self.behind
            values.append(_value(tokens, *part, after))
        return Likelihoods(
            values=values,
            prompt_tokens=count(scored.usage.prompt_tokens),
            completion_tokens=count(scored.usage.completion_tokens),
            total_tokens=count(scored.usage.total_tokens),
            served_model=scored.model,
            served_fingerprint=scored.fingerprint,
        )

    async def _length(self, text: str, timeout: float) -> int:
        """Return how many tokens a text has by itself."""
        if not text:
            return int(self._begins)
        return len((await self._score_prompts([text], timeout)).prompts[0].texts) - self.behind

    async def _score_prompts(self, texts: list[str], timeout: float) -> ScoredPrompts:
        """The tokens of each prompt, counted: a server that drops some must not be believed."""
        if self._together is not False:
            try:
                scored = self._check_counts(await self._send_prompts(texts, timeout), len(texts))
            except Unfit:
                if self._together or len(texts) == 1:
                    raise
            else:
                self._together = self._together or len(texts) > 1 or None
                return scored
        parts = [
            self._check_counts(await self._send_prompts([prompt], timeout), 1) for prompt in texts
        ]
        self._together = False
        counts = zip(*(msgspec.structs.astuple(part.usage) for part in parts), strict=True)
        prompts = [part.prompts[0] for part in parts]
        return parts[0]._replace(prompts=prompts, usage=ChatUsage(*map(total, counts)))

    def _check_counts(self, scored: ScoredPrompts, prompts: int) -> ScoredPrompts:
        if len(scored.prompts) != prompts:
            raise Unfit(f"{len(scored.prompts)} answers for {prompts} prompts")
        tokens, used = sum(len(prompt.texts) for prompt in scored.prompts), scored.usage
        expected = (used.prompt_tokens or 0) + (used.completion_tokens or 0) * self.behind
        if used.prompt_tokens is not None and tokens != expected:
            raise Unfit(f"{tokens} log-probabilities for {expected} tokens")
        return scored

    async def _send_prompts(self, prompts: list[str], timeout: float) -> ScoredPrompts:
        prompt = prompts if len(prompts) > 1 else prompts[0]
        body = {
            "model": self._server.model_name,
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
        }
        body |= {**self.asks, **self._extra}
        answer = await answer_of(
            self._server, f"{self._server.base}/completions", body, _CompletionBody, timeout
        )
        choices = sorted(answer.choices, key=lambda choice: choice.index)
        # some give prompts apart from what they generate
        with suppress(msgspec.ValidationError, ValueError):
            for choice, part in zip(
                choices, msgspec.convert(answer.prompt, list[_PromptPart]), strict=True
            ):
                choice.logprobs = _join_lists(part.logprobs, choice.logprobs)
        tokens = [self.tokens(choice) for choice in choices]
        return ScoredPrompts(tokens, answer.usage, answer.model, answer.system_fingerprint)

    def tokens(self, choice: ScoredChoice) -> PromptTokens:
        lists = choice.logprobs
        if lists is None or len(lists.tokens) != len(lists.token_logprobs):
            raise Unfit("no log-probabilities")
        values, tops = lists.token_logprobs, lists.top_logprobs or []

        def greedy(at: int) -> bool | None:
            top, value = tops[at] if at < len(tops) else None, values[at]
            return None if not top or value is None else value >= max(top.values())

        return PromptTokens(lists.tokens, values, greedy)


def _join_lists(prompt: Lists, generated: Lists | None) -> Lists:
    if generated is None:
        return prompt
    return Lists(
        [*prompt.tokens, *generated.tokens], [*prompt.token_logprobs, *generated.token_logprobs]
    )


async def beginning(server: LikelihoodServer) -> str:
    """The text of the token that texts begin with, where a server tells it (vLLM's `/tokenizer_info`)."""
    reply = await server.transport.get(
        f"{server.base.removesuffix('/v1')}/tokenizer_info", timeout=_TIMEOUT
    )
    try:
        return msgspec.json.decode(reply.body, type=JsonObject).get("bos_token") or ""
    except UNREADABLE:
        return ""


def no_token(continuation: str) -> PermanentError:
    what = f"the continuation {continuation[:40]!r} has no token of its own: it is part of the context's last one"
    return PermanentError(what, fix="put a space between the two, with `delimiter`")


def too_long(tokens: int, most: int) -> PermanentError:
    what = f"the context and its continuation have {tokens:,} tokens, the model takes {most:,}: shorten the prompt"
    return PermanentError(
        what,
        fix="or use a model or a server with more context, or `truncate: true` of transformers",
    )


def of_tokens(scored: Iterable[tuple[float, bool]]) -> LogProbability:
    """Return what tokens have together, from the value of each and whether it was the greatest."""
    pairs = [*scored]
    return LogProbability([value for value, _ in pairs], all(greedy for _, greedy in pairs))


def _value(tokens: PromptTokens, first: int, stop: int, continuation: str) -> LogProbability:
    """The tokens of one continuation."""
    if first >= stop:
        raise no_token(continuation)
    values = [value for value in tokens.logprobs[first:stop] if value is not None]
    if len(values) < stop - first:
        what = "the server gives the first token of a text no probability"
        raise NoBeginning(
            what, fix="name the model's beginning-of-text token, such as `unconditional: <s>`"
        )
    known = [tokens.greedy(at) for at in range(first, stop)]
    return LogProbability(values, None if None in known else all(known))
