"""Likelihoods of a llama.cpp server, which ignores `echo`: each token is forced, and its log-probability read.

A bias makes the wanted token the only one that can be sampled, while the server reports probabilities from before any
bias. All choices of a context go to one slot of the server, one after another, so that the context is read once.
"""

import asyncio

import msgspec

from assay.models._chat_form import token_counts
from assay.models._likelihood import (
    LikelihoodServer,
    Unfit,
    answer_of,
    no_token,
    of_tokens,
    too_long,
)
from assay.sdk import JsonObject, Likelihood, Likelihoods, LogProbability, PermanentError
from assay.text.likelihoods import split, windows
from assay.text.messages import messages_text

_FORCE = 1e6  # a bias that beats every logit


class _Settings(msgspec.Struct):
    n_ctx: int


class _Properties(msgspec.Struct):
    default_generation_settings: _Settings
    total_slots: int = 1
    bos_token: str = ""
    eos_token: str = ""


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _ChatPrompt(msgspec.Struct):
    prompt: str


class _Candidate(msgspec.Struct):
    id: int
    logprob: float
    top_logprobs: list["_Candidate"] = []


class _Timings(msgspec.Struct):
    prompt_n: int = 0


class _Forced(msgspec.Struct):
    completion_probabilities: list[_Candidate]
    timings: _Timings = msgspec.field(default_factory=_Timings)


class ForcedDecoding:
    """A slot has one request at a time, and the prefix that it read last."""

    name = "llama.cpp"

    def __init__(self, server: LikelihoodServer) -> None:
        self._server = server
        self._slots: asyncio.Queue[int] = asyncio.Queue()
        self._context = 0
        self._before: int | None = None
        self._opening: asyncio.Lock = asyncio.Lock()

    async def ask(self, request: Likelihood) -> Likelihoods:
        async with self._opening:
            if not self._context:
                await self._open(request.timeout)
        context = await self._text(request)
        before = split(context, "")[0]
        start = await self._tokens(before, request.timeout) if before else []
        pieces = [
            await self._pieces(start, *split(context, text), request)
            for text in request.continuations
        ]
        slot = await self._slots.get()
        try:
            return await self._forced_values(pieces, slot, request.timeout)
        finally:
            self._slots.put_nowait(slot)

    async def _open(self, timeout: float) -> None:
        """Ask the server how many slots it has, and how long a text may be."""
        reply = await self._server.transport.get(self._url("/props"), timeout=timeout)
        try:
            properties = msgspec.json.decode(reply.body, type=_Properties)
        except msgspec.DecodeError:
            raise Unfit("it is not a llama.cpp server") from None
        before = await self._tokens(properties.bos_token or properties.eos_token, timeout)
        self._before = before[0] if before else None
        self._context = properties.default_generation_settings.n_ctx
        for slot in range(max(1, properties.total_slots)):
            self._slots.put_nowait(slot)

    def _url(self, path: str) -> str:
        return self._server.base.removesuffix("/v1") + path

    async def _text(self, request: Likelihood) -> str:
        if not request.chat:
            return messages_text(request.messages)
        body = {"messages": request.messages}
        return (
            await answer_of(
                self._server, self._url("/apply-template"), body, _ChatPrompt, request.timeout
            )
        ).prompt

    async def _tokens(self, text: str, timeout: float) -> list[int]:
        body = {"content": text, "add_special": False, "parse_special": True}
        return (
            await answer_of(self._server, self._url("/tokenize"), body, _Tokens, timeout)
        ).tokens

    async def _pieces(
        self, start: list[int], before: str, after: str, request: Likelihood
    ) -> list[tuple[list[int], int]]:
        """Token lists, and how many at the end of each are scored."""
        whole = await self._tokens(before + after, request.timeout)
        tokens = whole[len(start) :]
        if not start:
            if self._before is None:
                raise PermanentError(
                    "the model has no token for the beginning of a text", fix="set `unconditional`"
                )
            start = [self._before]
        if not tokens:
            raise no_token(after)
        if request.rolling and len(start) == 1:
            return list(windows(tokens, start[0], self._context - 1))
        if len(start) + len(tokens) > self._context:
            raise too_long(len(start) + len(tokens), self._context)
        return [([*start, *tokens], len(tokens))]

    async def _forced_values(
        self, pieces: list[list[tuple[list[int], int]]], slot: int, timeout: float
    ) -> Likelihoods:
        known: dict[tuple[int, ...], _Candidate] = {}  # choices may begin alike
        read = forced = 0
        values: list[LogProbability] = []
        for parts in pieces:
            scored: list[tuple[float, bool]] = []
            for tokens, count in parts:
                for at in range(len(tokens) - count, len(tokens)):
                    key = tuple(tokens[: at + 1]) if len(pieces) > 1 else ()
                    candidate = known.get(key)
                    if candidate is None:
                        answer = await self._force(tokens[:at], tokens[at], slot, timeout)
                        candidate = answer.completion_probabilities[0]
                        read, forced = read + answer.timings.prompt_n, forced + 1
                        if key:
                            known[key] = candidate
                    scored.append((candidate.logprob, candidate.top_logprobs[0].id == tokens[at]))
            values.append(of_tokens(scored))
        return Likelihoods(values=values, **token_counts(read, forced))

    async def _force(self, prompt: list[int], token: int, slot: int, timeout: float) -> _Forced:
        body: JsonObject = {
            "prompt": prompt,
            "n_predict": 1,
            "n_probs": 1,
            "logit_bias": [[token, _FORCE]],
        }
        body |= {
            "temperature": 1.0,
            "samplers": ["temperature"],
            "cache_prompt": True,
            "id_slot": slot,
        }
        answer = await answer_of(self._server, self._url("/completion"), body, _Forced, timeout)
        candidates = answer.completion_probabilities
        if len(candidates) != 1 or candidates[0].id != token or not candidates[0].top_logprobs:
            raise Unfit("it did not take the token that it was told to")
        return answer
