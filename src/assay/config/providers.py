"""Providers by name: the rows of `data/providers.json`, and what a row adds to a model's parameters.

A row says what a provider speaks (`type`), where it is, which variables hold its key and the rest of its address, how
it calls parameters otherwise than OpenAI does, and what its models cost. A key goes to its provider's own address and
to no other: with an endpoint of the user's, the key must be named as well.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.config.environment import names_secret, secret
from assay.errors import UserError
from assay.records import JsonMapping, JsonObject


class ListedModel(msgspec.Struct, frozen=True):
    """What a model costs, in US dollars per million tokens, and how many tokens it takes at most."""

    input: float
    output: float
    context: int | None = None


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`key` and each of `variables` name variables of which the first that is set counts; `rename`: what the provider
    calls parameters of the chat API."""

    about: str
    type: str = "openai"
    endpoint: str
    key: list[str] = []
    variables: dict[str, list[str]] = {}
    rename: dict[str, str] = {}
    local: bool = False
    models: dict[str, ListedModel] = {}


class _ProviderTable(msgspec.Struct, frozen=True):
    as_of: str
    unit: str
    providers: dict[str, Provider]


@cache
def table() -> _ProviderTable:
    """`as_of` is the date of the prices."""
    return msgspec.json.decode(
        (files("assay") / "data" / "providers.json").read_bytes(), type=_ProviderTable
    )


def providers() -> dict[str, Provider]:
    return table().providers


def provider_of(type: str, params: JsonMapping) -> Provider | None:
    """The provider that a model's type names; of an OpenAI-compatible server, the one that is at its address."""
    if type != "openai":
        return providers().get(type) or next(
            (row for row in providers().values() if row.type == type), None
        )
    remote = (row for row in providers().values() if row.type == "openai" and not row.local)
    return next((row for row in remote if _is_at(params.get("endpoint"), row)), None)


def is_own(provider: Provider, params: JsonMapping) -> bool:
    """Return whether a model is asked at its provider's own address."""
    return "endpoint" not in params or _is_at(params["endpoint"], provider)


def factory_params(
    type: str, params: JsonMapping, variables: Mapping[str, str]
) -> tuple[str, JsonObject]:
    """The type and the parameters that a model's factory takes."""
    provider = provider_of(type, params)
    filled = dict(params)
    if provider is None:
        return type, filled
    for name, value in _from_variables(provider, params, variables).items():
        filled.setdefault(name, value)
    if provider.type == "openai":
        filled.setdefault("endpoint", provider.endpoint)
        filled["endpoint"] = _address(type, provider, filled)
    if provider.rename:
        filled.setdefault("rename", provider.rename)
    has_key = "api_key" in filled or _names_key(params)
    if provider.key and is_own(provider, params) and not has_key:
        key = _first(provider.key, variables)
        if key is not None:
            filled["api_key"] = key
        elif not provider.local and provider.type not in _OTHER_CREDENTIALS:
            raise UserError(
                f"{provider.about} needs a key, and {provider.key[0]} is not set",
                fix=f"set {' or '.join(provider.key)} in the environment or in `.env`, or name your own in the config: "
                "`api_key: ${MY_VARIABLE}`",
            )
    return provider.type, filled


# theirs may be in files: they say themselves what is missing
_OTHER_CREDENTIALS = {"bedrock", "vertex"}
_FILES = {"profile", "credentials"}  # parameters that name files with keys
_ACCESS_KEY = {"access_key_id", "secret_access_key", "session_token"}


def _from_variables(
    provider: Provider, params: JsonMapping, variables: Mapping[str, str]
) -> dict[str, str]:
    """Return what variables say of the provider; the user's own choice of a file wins over keys that are there."""
    names_file = bool(_FILES & params.keys())
    found = {name: _first(names, variables) for name, names in provider.variables.items()}
    return {
        name: value
        for name, value in found.items()
        if value is not None and not (names_file and name in _ACCESS_KEY)
    }


def _names_key(params: JsonMapping) -> bool:
    headers = params.get("headers") or ()
    return bool(_FILES & params.keys()) or any(names_secret((name,)) for name in headers)


def _first(names: list[str], variables: Mapping[str, str]) -> str | None:
    """The value of the first variable that is set, as text that remembers its variable."""
    return next(
        (value for name in names if (value := secret(f"${{{name}}}", variables)) is not None), None
    )


def _address(type: str, provider: Provider, filled: JsonObject) -> str:
    """With what stands for its placeholders, which no factory is passed."""
    address = str(filled["endpoint"])
    for name, candidates in provider.variables.items():
        value = filled.pop(name, None)
        if f"{{{name}}}" not in address:
            continue
        if value is None:
            fix = f"set {candidates[0]} in the environment or in `.env`, or write `{name}:` in the config"
            raise UserError(f"{type!r} needs the {name}, and {candidates[0]} is not set", fix=fix)
        address = address.replace(f"{{{name}}}", str(value))
    return address


def _is_at(endpoint: Any, provider: Provider) -> bool:
    """Return whether an address is one of the provider's own; the beginning of its host may be a placeholder."""
    try:
        given = urlsplit(endpoint.lower() if isinstance(endpoint, str) else "")
    except ValueError:
        return False
    own = urlsplit(provider.endpoint)
    _, is_open, end = own.netloc.rpartition("}")
    host = given.netloc
    return given.scheme == own.scheme and (
        host.endswith(end) and host != end if is_open else host == end
    )
