"""Any server that speaks the OpenAI API, chat or completions, over HTTP."""

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from assay.errors import CallError, UserError
from assay.interfaces import Completion, Likelihood, Likelihoods, Model, Request
from assay.models._chat_answer import read_answer
from assay.models._failures import WANTED_HEADERS, failure, server_message, unknown_model
from assay.models._forced_decoding import ForcedDecoding
from assay.models._likelihood import Asker, Completions
from assay.models._prompt_logprobs import Generate, PromptLogprobs
from assay.models._secrets import Secrets, is_secret, is_word
from assay.models._transport import Reply, Transport
from assay.registry import model
from assay.text.messages import messages_text

_NOT_SENT = {"num_samples", "think", "seed"}
_LOCAL = "http://localhost:1234/v1"
_KEY_FIX = "set the variable OPENAI_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
_encode = msgspec.json.encode


@model
def openai(
    name: str,
    *,
    model_name: str | None = None,
    endpoint: str | None = None,
    api: Literal["chat", "completions"] = "chat",
    api_key: str | None = None,
    revision: str | None = None,
    extra_body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Model:
    """A model behind an OpenAI-compatible server; `model_name` is what the server calls it."""
    if endpoint is None:
        endpoint = os.environ.get("OPENAI_BASE_URL") or _LOCAL
    return OpenAIModel(name, model_name or name, endpoint, api, api_key, revision, extra_body or {}, headers or {})


class HttpModel:
    """Sends requests to one address, and reads what comes back. A provider's own class makes the body."""

    keeps_time = True
    owned = frozenset({"messages", "model"})  # keys of a request that the engine fills
    key_fix = _KEY_FIX
    filtered = frozenset[str]()  # codes of a prompt that the server's filter stopped
    read_answer = staticmethod(read_answer)
    base: str
    _transport: Transport
    _secrets: Secrets  # in no error
    _keys: Secrets | None  # in no answer

    def __init__(
        self, name: str, model_name: str, revision: str | None, extra_body: dict[str, Any], **identity: str
    ) -> None:
        if owned := self.owned & extra_body.keys():
            raise UserError(f"extra_body must not hold {min(owned)!r}: the engine fills it", where=f"model {name!r}")
        self.name = name
        self.model_name = model_name
        own: dict[str, Any] = {"name": name, "model_name": model_name, "revision": revision, "extra_body": extra_body}
        self.identity: Mapping[str, Any] = {**identity, **own}
        self._extra = extra_body

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

    async def complete(self, request: Request) -> Completion:
        """A prompt that the server's filter stopped is a refused answer; every other failure is an error."""
        try:
            reply = await self._transport.post(self.body(request), timeout=request.timeout)
            if 200 <= reply.status < 300:
                completion = self.read_answer(reply.body, self._secrets)
                return completion if self._keys is None else self._keys.hidden(completion, reply.body)
            if reply.status == 400 and server_message(reply.body)[0] in self.filtered:
                return Completion(finish_reason="content_filter", refused=True)
            raise await self._failure(reply)
        except CallError as error:
            error.what = self._secrets.text(error.what)
            error.where = error.where or self._transport.shown
            raise

    async def _failure(self, reply: Reply) -> CallError:
        where = self._transport.shown
        error = failure(reply, model_name=self.model_name, where=where, key_fix=self.key_fix, secrets=self._secrets)
        return await unknown_model(reply, self._transport, self.base, self.model_name, error, self._secrets)

    async def close(self) -> None:
        await self._transport.close()


class OpenAIModel(HttpModel):
    """What is the same for all requests is encoded once."""

    owned = HttpModel.owned | {"prompt"}
    filtered = frozenset({"content_filter", "content_policy_violation"})

    def __init__(
        self,
        name: str,
        model_name: str,
        endpoint: str,
        api: Literal["chat", "completions"],
        api_key: str | None,
        revision: str | None,
        extra_body: dict[str, Any],
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(name, model_name, revision, extra_body, type="openai", api=api)
        self.chat = api == "chat"
        self._key = (api_key or "").strip()
        self._headers = {header.lower(): value for header, value in headers.items()}
        self._params: dict[str, Any] | None = None
        self._start = b""
        self._asker: Asker | None = None
        self.connect(endpoint)

    def connect(self, endpoint: str) -> None:
        """Talk to this address from now on."""
        self.base = base_url(endpoint, where=f"model {self.name!r}")
        key = self._key or _key_for(self.base)
        bearer = {"authorization": f"Bearer {key}"} if key else {}
        self.protect(self.base, {**bearer, **self._headers})
        self.sent = {"content-type": "application/json", **bearer, **self._headers}
        path = "/chat/completions" if self.chat else "/completions"
        self._transport = Transport(self.base + path, self.sent, wanted=WANTED_HEADERS)

    def body(self, request: Request) -> bytes:
        """The JSON of a request; its beginning is made again only when the parameters change."""
        params = request.params
        if params != self._params:
            self._params, self._start = dict(params), self._encode_start(params)
        start = self._start
        seed = params.get("seed")
        if seed is not None:
            start += b'"seed":%b,' % _encode(seed + request.sample_index if isinstance(seed, int) else seed)
        if self.chat:
            return start + b'"messages":' + _encode(request.messages) + b"}"
        return start + b'"prompt":' + _encode(messages_text(request.messages)) + b"}"

    async def likelihood(self, request: Likelihood) -> Likelihoods:
        """How probable continuations are, in the first way that the server has."""
        if self._asker is None:
            by_text = [way(self, self._extra) for way in (Completions, PromptLogprobs, Generate)]
            self._asker = Asker([*by_text, ForcedDecoding(self)], self._transport.shown)
        try:
            return await self._asker.ask(request)
        except CallError as error:
            error.what = self._secrets.text(error.what)
            error.where = error.where or self._transport.shown
            raise

    async def close(self) -> None:
        self._asker = None
        await super().close()

    async def post(self, url: str, body: bytes, timeout: float) -> Reply:
        """The answer to a request to any address of the server."""
        return await self._transport.post(body, timeout=timeout, url=url)

    async def get(self, url: str, timeout: float) -> Reply:
        """What is at an address of the server."""
        return await self._transport.get(url, timeout=timeout)

    async def failure(self, reply: Reply) -> CallError:
        """What an answer that is not a success means."""
        return await self._failure(reply)

    def _encode_start(self, params: Mapping[str, Any]) -> bytes:
        sent = {key: value for key, value in params.items() if key not in _NOT_SENT and value is not None}
        if isinstance(limit := sent.get("max_tokens"), (int, float)) and limit <= 0:
            del sent["max_tokens"]
        return _encode({"model": self.model_name, **sent, **self._extra})[:-1] + b","


def base_url(endpoint: str, *, where: str = "") -> str:
    """The address that paths are added to: an endpoint without a path means its `/v1`."""
    parts = urlsplit(endpoint)
    try:
        sane = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sane = False
    if not sane or parts.query or parts.fragment:
        raise UserError(
            f"{endpoint.rpartition('@')[2].split('?')[0]!r} is not the address of a server",
            where=where,
            fix="write it like `endpoint: http://localhost:1234/v1`",
        )
    base = endpoint.rstrip("/")
    return base if parts.path.strip("/") else f"{base}/v1"


def _key_for(base: str) -> str:
    """The key from the environment, for the servers that it surely belongs to: OpenAI's and OPENAI_BASE_URL."""
    base_of_key = os.environ.get("OPENAI_BASE_URL", "").rstrip("/")
    if urlsplit(base).hostname != "api.openai.com" and base not in (base_of_key, f"{base_of_key}/v1"):
        return ""
    return os.environ.get("OPENAI_API_KEY", "").strip()
