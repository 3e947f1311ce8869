"""Anthropic's own messages API, with the same rows, errors and tool calls as every other model."""

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.interfaces import Model, Request
from assay.models._failures import WANTED_HEADERS
from assay.models._messages_api import read_answer, split_system, tool, tool_choice
from assay.models._transport import Transport
from assay.models.openai import HttpModel, base_url
from assay.registry import model

DEFAULT_MAX_TOKENS = 1024
_HOST = "api.anthropic.com"
_NOT_SENT = {"num_samples", "think", "seed", "stop", "tools", "tool_choice", "max_tokens"}
_encode = msgspec.json.encode


@model
def anthropic(
    name: str,
    *,
    model_name: str | None = None,
    endpoint: str = f"https://{_HOST}/v1",
    api_key: str | None = None,
    version: str = "2023-06-01",
    revision: str | None = None,
    extra_body: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> Model:
    """A model behind the messages API; `version` is the API's, sent as the header `anthropic-version`."""
    base = base_url(endpoint, where=f"model {name!r}")
    key = (api_key or "").strip()
    if not key and urlsplit(base).hostname == _HOST:
        key = os.environ.get("ANTHROPIC_API_KEY", "").strip()
    lowered = {header.lower(): value for header, value in (headers or {}).items()}
    sent = {"anthropic-version": version, **({"x-api-key": key} if key else {}), **lowered}
    return AnthropicModel(name, model_name or name, base, sent, revision, extra_body or {})


class AnthropicModel(HttpModel):
    """The API has no seed: samples differ by its own randomness."""

    owned = HttpModel.owned | {"system"}
    key_fix = "set the variable ANTHROPIC_API_KEY, or name your own in the config: `api_key: ${MY_VARIABLE}`"
    read_answer = staticmethod(read_answer)

    def __init__(
        self,
        name: str,
        model_name: str,
        base: str,
        headers: Mapping[str, str],
        revision: str | None,
        extra_body: dict[str, Any],
    ) -> None:
        super().__init__(name, model_name, revision, extra_body, type="anthropic")
        self.base = base
        self._secrets = [value for key, value in headers.items() if key != "anthropic-version" and len(value) >= 6]
        sent = {"content-type": "application/json", **headers}
        self._transport = Transport(f"{base}/messages", sent, wanted=WANTED_HEADERS)

    def body(self, request: Request) -> bytes:
        """The JSON of a request; the parameters of the chat API are given their names here."""
        params = request.params
        sent = {key: value for key, value in params.items() if key not in _NOT_SENT and value is not None}
        limit = params.get("max_tokens")
        sent["max_tokens"] = limit if isinstance(limit, int) and limit > 0 else DEFAULT_MAX_TOKENS
        if (stop := params.get("stop")) is not None:
            sent["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        if tools := params.get("tools"):
            sent["tools"] = [tool(entry) for entry in tools]
        if (choice := params.get("tool_choice")) is not None:
            sent["tool_choice"] = tool_choice(choice)
        system, turns = split_system(request.messages)
        if system:
            sent["system"] = system
        return _encode({"model": self.model_name, **sent, **self._extra, "messages": turns})
