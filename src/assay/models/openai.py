"""Any server that speaks the OpenAI API, chat, completions or responses, over HTTP."""

import os
import time
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from assay.config.environment import FromEnvironment, is_address
from assay.models._chat_answer import read_answer
from assay.models._chat_form import params_without
from assay.models._failures import NO_MODEL, failure, model_names, server_message
from assay.models._forced_decoding import ForcedDecoding
from assay.models._likelihood import Asker, Completions
from assay.models._prompt_logprobs import Generate, PromptLogprobs
from assay.models._responses import read_response, responses_body
from assay.models._secrets import Secrets, is_secret, is_word
from assay.models._streams import Arrivals, Join, is_stream, join_chat, times
from assay.models._transport import HttpReply, Transport
from assay.sdk import (
    CallError,
    Completion,
    JsonMapping,
    JsonObject,
    LaneError,
    Likelihood,
    Likelihoods,
    Model,
    PermanentError,
    Request,
    UserError,
    model,
    nearest,
)
from assay.text.media import has_media
from assay.text.messages import messages_text

_NOT_SENT = {"num_samples", "think", "seed", "stream"}
_LISTED = 20  # model names in an error
_LOCAL = "http://localhost:1234/v1"
_KEY_FIX = (
    "set the variable OPENAI_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
)
_PATHS = {"chat": "/chat/completions", "completions": "/completions", "responses": "/responses"}
_encode = msgspec.json.encode
Api = Literal["chat", "completions", "responses"]


class Hosted(msgspec.Struct, frozen=True):
    """The keys that models behind an API share."""

    model_name: str | None = None
    api_key: str | None = None
    revision: str | None = None
    extra_body: JsonObject | None = None
    headers: dict[str, str] | None = None


class Spoken(Hosted, frozen=True):
    """The keys of models behind OpenAI's API."""

    api: Api = "chat"
    stream: bool = False


@model(params=Spoken)
def openai(
    name: str,
    *,
    endpoint: str | None = None,
    rename: dict[str, str] | None = None,
    **settings: Any,
) -> Model:
    """A model behind an OpenAI-compatible server; `model_name` is what the server calls it, and `rename` what it calls
    parameters, such as `max_tokens: max_completion_tokens`. With `stream` answers come in pieces, and rows have their
    times."""
    if endpoint is None:
        endpoint = os.environ.get("OPENAI_BASE_URL") or _LOCAL
    return OpenAIModel(name, Spoken(**settings), endpoint, rename or {})


class HttpModel:
    """Sends requests to one address, and reads what comes back. A provider's own class makes the body."""

    keeps_time = True
    schemas = False
    owned = frozenset({"messages", "model"})  # keys of a request that the engine fills
    key_fix = _KEY_FIX
    names_key = True  # whether that of the variable that the key came from is better
    public = ""  # a header that is no secret
    filtered = frozenset[str]()  # codes of a prompt that the server's filter stopped
    read_answer = staticmethod(read_answer)
    join_events: Join = staticmethod(join_chat)
    counted = False  # whether streams are asked for the number of tokens
    stream = False  # not in the identity: it changes no answer
    prefix = ""  # of a model's name, which may be left out
    base: str
    sent: dict[str, str]  # the headers of each request
    _params: JsonMapping | None = None  # those that the beginning of a body was made for
    listing = ""  # the address of the list of models, if it is not `base` and /models
    _transport: Transport
    _secrets: Secrets  # in no error
    _keys: Secrets | None  # in no answer

    def __init__(self, name: str, settings: Hosted, **identity: str) -> None:
        extra_body, api_key = settings.extra_body or {}, settings.api_key
        if owned := self.owned & extra_body.keys():
            raise UserError(
                f"extra_body must not hold {min(owned)!r}: the engine fills it",
                where=f"model {name!r}",
            )
        self.name = name
        self.model_name = (settings.model_name or name).removeprefix(self.prefix)
        self.identity: JsonMapping = {
            **identity,
            "name": name,
            "model_name": self.model_name,
            "revision": settings.revision,
            "extra_body": extra_body,
        }
        self._extra = extra_body
        self._key = (api_key or "").strip()
        headers = settings.headers or {}
        self._headers = {header.lower(): value for header, value in headers.items()}
        if self.names_key and isinstance(api_key, FromEnvironment):
            self.key_fix = f"check what {api_key.reference} holds"

    def body(self, request: Request) -> bytes:
        """The JSON of a request."""
        raise NotImplementedError

    def protect(self, base: str, headers: Mapping[str, str]) -> None:
        """Nothing of these is to be seen: in errors no value, in answers, where words must stay, no key."""
        parts = urlsplit(base)
        user = [unquote(part) for part in (parts.username, parts.password) if part]
        self._secrets = Secrets([*headers.values(), *user])
        keys = [value for name, value in headers.items() if is_secret(name, value)]
        self._keys = Secrets([*keys, *(part for part in user if not is_word(part))]) or None

    def reach(
        self, base: str, path: str, headers: Mapping[str, str], secrets: Mapping[str, str] = {}
    ) -> None:
        """Talk to this address from now on; the values of the headers, and the secrets, are not to be seen."""
        self.base = base
        hidden = {name: value for name, value in headers.items() if name != self.public}
        self.protect(base, {**hidden, **secrets})
        self.sent = {"content-type": "application/json", **headers}
        self._transport = Transport(base + path, self.sent)

    async def own_headers(self, method: str, url: str, body: bytes) -> Mapping[str, str] | None:
        """Return the headers of this request alone."""
        return None

    async def _send(self, request: Request, arrivals: Arrivals | None = None) -> HttpReply:
        body = self.body(request)
        headers = await self.own_headers("POST", self._transport.url, body)
        return await self._transport.post(
            body, timeout=request.timeout, headers=headers, arrivals=arrivals
        )

    async def complete(self, request: Request) -> Completion:
        """A prompt that the server's filter stopped is a refused answer; every other failure is an error."""
        try:
            if self.stream:
                return await self._complete_by_stream(request)
            return await self._completion_of(await self._send(request))
        except CallError as error:
            raise self._without_secrets(error) from None

    def _without_secrets(self, error: CallError) -> CallError:
        error.what = self._secrets.text(error.what)
        error.where = error.where or self._transport.shown
        return error

    async def _completion_of(self, reply: HttpReply) -> Completion:
        if 200 <= reply.status < 300:
            completion = self.read_answer(reply.body, self._secrets)
            return completion if self._keys is None else self._keys.hidden(completion, reply.body)
        if reply.status == 400 and server_message(reply.body)[0] in self.filtered:
            return Completion(finish_reason="content_filter", refused=True)
        raise await self.failure(reply)

    async def _complete_by_stream(self, request: Request) -> Completion:
        """The answer that the events make, with their times; one that came at once has none. A server that does not
        know `stream_options` is not asked to count tokens any more."""
        arrivals: Arrivals = []
        counted, sent = self.counted, time.monotonic()
        reply = await self._send(request, arrivals)
        if counted and reply.status in (400, 422) and b"stream_options" in reply.body:
            self.counted, self._params = False, None
            return await self._complete_by_stream(request)
        if not 200 <= reply.status < 300 or not is_stream(reply.body):
            return await self._completion_of(reply)
        joined = self.join_events(reply.body, self._secrets)
        completion = await self._completion_of(HttpReply(joined.status, {}, joined.body))
        completion.stream = times(joined, arrivals, sent, completion.completion_tokens)
        return completion

    async def failure(self, reply: HttpReply) -> CallError:
        """Return what an answer that is not a success means; if the server knows no such model, with those it knows.

        Proxies say 400 where the API says 404: what they mean is believed only if their list lacks the name too.
        """
        error = self._failure(reply)
        if reply.status != 404 and not (reply.status == 400 and NO_MODEL.search(error.what)):
            return error
        try:
            names = await self.models()
        except CallError:
            return error
        if self.model_name in names:
            return error
        what = f"the server does not know the model {self.model_name!r} ({error.what})"
        fix = "it has no models at all: load one"
        if names:
            fix = nearest(self.model_name, names[:_LISTED])
        return LaneError(error.what if reply.status == 404 else what, where=error.where, fix=fix)

    def _failure(self, reply: HttpReply) -> CallError:
        return failure(
            reply,
            model_name=self.model_name,
            where=self._transport.shown,
            key_fix=self.key_fix,
            secrets=self._secrets,
        )

    async def models(self) -> list[str]:
        """Return the models that the server says it has. Raises CallError."""
        reply = await self.list_models()
        if reply.status == 404:
            what = "the server has no list of models (HTTP 404)"
            raise LaneError(what, where=self._transport.shown, fix="check its address")
        if reply.status != 200:
            raise self._failure(reply)
        return model_names(self._secrets.mask(reply.body))

    async def list_models(self) -> HttpReply:
        url = self.listing or f"{self.base}/models"
        headers = await self.own_headers("GET", url, b"")
        return await self._transport.get(url, timeout=10, headers=headers)

    async def close(self) -> None:
        await self._transport.close()


class OpenAIModel(HttpModel):
    """Encodes once what is the same for all requests."""

    owned = HttpModel.owned | {"prompt"}
    filtered = frozenset({"content_filter", "content_policy_violation"})
    counted = True
    query = ""  # of every address
    _start = b""
    _asker: Asker | None = None

    def __init__(
        self, name: str, settings: Spoken, endpoint: str, rename: Mapping[str, str] = {}
    ) -> None:
        self.api: str = settings.api
        super().__init__(name, settings, type="openai", api=self.api)
        self.stream = settings.stream or self._extra.get("stream") is True
        self.schemas = self.api != "completions"
        self.rename = rename if self.api == "chat" else {}
        if self.api == "responses":
            self.read_answer = read_response
            if self.stream:
                fix = "leave out `stream`, or use `api: chat`"
                raise UserError(
                    "answers of the Responses API are not streamed",
                    where=f"model {name!r}",
                    fix=fix,
                )
        self._seed = _encode(self.rename.get("seed", "seed")) + b":%b,"
        self.connect(endpoint)

    def connect(self, endpoint: str) -> None:
        """Talk to this address from now on."""
        base = base_url(endpoint, where=f"model {self.name!r}")
        key = self._key or _key_for(base)
        bearer = {"authorization": f"Bearer {key}"} if key else {}
        self.reach(base, _PATHS[self.api] + self.query, {**bearer, **self._headers})

    def body(self, request: Request) -> bytes:
        """The JSON of a request; its beginning is made again only when the parameters change."""
        params = request.params
        if self.api == "responses":
            return responses_body(self.model_name, request, self._extra)
        if params != self._params:
            self._params, self._start = dict(params), self._encode_start(params)
        start = self._start
        seed = params.get("seed")
        if seed is not None:
            start += self._seed % _encode(
                seed + request.sample_index if isinstance(seed, int) else seed
            )
        if self.api == "chat":
            return start + b'"messages":' + _encode(request.messages) + b"}"
        if has_media(request.messages):
            raise PermanentError(
                "the completions API takes text only", fix="ask the chat API: `api: chat`"
            )
        return start + b'"prompt":' + _encode(messages_text(request.messages)) + b"}"

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        """Return how probable continuations are, in the first way that the server has."""
        if self._asker is None:
            by_text = [way(self, self._extra) for way in (Completions, PromptLogprobs, Generate)]
            self._asker = Asker([*by_text, ForcedDecoding(self)], self._transport.shown)
        try:
            return await self._asker.ask(request)
        except CallError as error:
            raise self._without_secrets(error) from None

    async def close(self) -> None:
        self._asker = None
        await super().close()

    @property
    def transport(self) -> Transport:
        return self._transport

    def _encode_start(self, params: JsonMapping) -> bytes:
        sent = params_without(params, _NOT_SENT)
        if isinstance(limit := sent.get("max_tokens"), (int, float)) and limit <= 0:
            del sent["max_tokens"]
        for ours in self.rename.keys() & sent.keys():
            sent.setdefault(self.rename[ours], sent[ours])
            del sent[ours]
        if self.stream:
            usage = {"stream_options": {"include_usage": True}} if self.counted else {}
            sent = {"stream": True, **usage, **sent}
        return _encode({"model": self.model_name, **sent, **self._extra})[:-1] + b","


def base_url(endpoint: str, *, where: str = "", version: str = "/v1") -> str:
    """The address that paths are added to: an endpoint without a path means its `/v1`, or what its API begins with."""
    parts = urlsplit(endpoint)
    if not is_address(endpoint) or parts.query or parts.fragment:
        raise UserError(
            f"{endpoint.rpartition('@')[2].split('?')[0]!r} is not the address of a server",
            where=where,
            fix="write it like `endpoint: http://localhost:1234/v1`",
        )
    base = endpoint.rstrip("/")
    return base if parts.path.strip("/") else base + version


def _key_for(base: str) -> str:
    """The key from the environment, for the servers that it surely belongs to: OpenAI's and OPENAI_BASE_URL."""
    own = os.environ.get("OPENAI_BASE_URL", "").rstrip("/")
    if urlsplit(base).hostname == "api.openai.com" or base in (own, f"{own}/v1"):
        return os.environ.get("OPENAI_API_KEY", "").strip()
    return ""
