"""Any server that speaks the OpenAI API, chat or completions, over HTTP."""

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from assay.errors import TransientError, UserError
from assay.interfaces import Completion, Model, Request
from assay.models._chat_answer import read_answer
from assay.models._failures import WANTED_HEADERS, failure
from assay.models._transport import Transport
from assay.registry import model
from assay.text.messages import messages_text

_NOT_SENT = {"num_samples", "think", "seed"}
_KEY_FIX = "set the variable OPENAI_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
_encode = msgspec.json.encode


@model
def openai(
    name: str,
    *,
    model_name: str | None = None,
    endpoint: str = "http://localhost:1234/v1",
    api: Literal["chat", "completions"] = "chat",
    api_key: str | None = None,
    revision: str | None = None,
    extra_body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Model:
    """A model behind an OpenAI-compatible server; `model_name` is what the server calls it."""
    return OpenAIModel(name, model_name or name, endpoint, api, api_key, revision, extra_body or {}, headers or {})


class OpenAIModel:
    """Sends requests to one address. What is the same for all requests is encoded once."""

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
        if owned := {"messages", "prompt", "model"} & extra_body.keys():
            raise UserError(f"extra_body must not hold {min(owned)!r}: the engine fills it", where=f"model {name!r}")
        base = base_url(endpoint, where=f"model {name!r}")
        key = (api_key or "").strip() or _key_for(base)
        self.name = name
        self.model_name = model_name
        self.identity: Mapping[str, Any] = {
            "type": "openai",
            "name": name,
            "model_name": model_name,
            "api": api,
            "revision": revision,
            "extra_body": extra_body,
        }
        self.chat = api == "chat"
        self._extra = extra_body
        self._secrets = [value for value in (key, *headers.values()) if len(value) >= 6]
        sent = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        sent |= {header.lower(): value for header, value in headers.items()}
        path = "/chat/completions" if self.chat else "/completions"
        self._transport = Transport(base + path, sent, wanted=WANTED_HEADERS)
        self._params: dict[str, Any] | None = None
        self._start = b""

    async def complete(self, request: Request) -> Completion:
        reply = await self._transport.post(self.body(request), timeout=request.timeout)
        if not 200 <= reply.status < 300:
            raise failure(
                reply,
                model_name=self.model_name,
                where=self._transport.shown,
                key_fix=_KEY_FIX,
                secrets=self._secrets,
            )
        try:
            return read_answer(reply.body, self._secrets)
        except TransientError as error:
            error.where = self._transport.shown
            raise

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

    def _encode_start(self, params: Mapping[str, Any]) -> bytes:
        sent = {key: value for key, value in params.items() if key not in _NOT_SENT and value is not None}
        if isinstance(limit := sent.get("max_tokens"), (int, float)) and limit <= 0:
            del sent["max_tokens"]
        return _encode({"model": self.model_name, **sent, **self._extra})[:-1] + b","

    async def close(self) -> None:
        await self._transport.close()


def base_url(endpoint: str, *, where: str = "") -> str:
    """The address that paths are added to: an endpoint without a path means its `/v1`."""
    parts = urlsplit(endpoint)
    try:
        sane = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sane = False
    if not sane or parts.query or parts.fragment:
        raise UserError(
            f"{endpoint.split('?')[0]!r} is not the address of a server",
            where=where,
            fix="write it like `endpoint: http://localhost:1234/v1`",
        )
    base = endpoint.rstrip("/")
    return base if parts.path.strip("/") else f"{base}/v1"


def _key_for(base: str) -> str:
    """The key from the environment, for the one server that it surely belongs to."""
    if urlsplit(base).hostname != "api.openai.com":
        return ""
    return os.environ.get("OPENAI_API_KEY", "").strip()
