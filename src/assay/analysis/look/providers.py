"""`assay list providers` and `assay list models PROVIDER`: who can be asked, with which key, and what they have."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import assay.registry as registry
from assay.config import parse_model
from assay.config.environment import variables_in
from assay.config.providers import (
    ListedModel,
    Provider,
    factory_params,
    is_own,
    provider_of,
    providers,
)
from assay.errors import UserError
from assay.models.openai import HttpModel
from assay.threads import run_blocking

_CREDENTIALS = ("access_key_id", "credentials")  # what may stand for a key


class ProviderEntry(NamedTuple):
    """`key` is the variable that holds the key: the one that is set, or the one to set. Its value is shown nowhere."""

    name: str
    key: str
    is_set: bool
    about: str
    endpoint: str
    local: bool


class ServedModelEntry(NamedTuple):
    """A model that a server has; its price (US dollars per million tokens) and its context where they are known."""

    name: str
    input: float | None
    output: float | None
    context: int | None


def list_providers() -> list[ProviderEntry]:
    variables = variables_in(Path.cwd())
    return [_entry(name, provider, variables) for name, provider in providers().items()]


def _entry(name: str, provider: Provider, variables: Mapping[str, str]) -> ProviderEntry:
    names = [
        *provider.key,
        *(key for part in _CREDENTIALS for key in provider.variables.get(part, ())),
    ]
    present = next((key for key in names if variables.get(key)), "")
    key = present or next(iter(names), "")
    return ProviderEntry(
        name, key, bool(present), provider.about, provider.endpoint, provider.local
    )


def list_served(source: str) -> list[ServedModelEntry]:
    """Return what a provider, or the server at an address, says it has."""
    is_address = "://" in source.partition("@")[0]
    name, _, address = ("openai", "", source) if is_address else source.partition("@")
    if name not in {*providers(), *registry.model.names()}:
        raise UserError(f"there is no provider {name!r}", fix=registry.nearest(name, providers()))
    if name == "openai" and not address:
        address = providers()["openai"].endpoint
    entry = parse_model({"name": "any", "type": name, **({"endpoint": address} if address else {})})
    type, params = factory_params(entry.type, entry.params, variables_in(Path.cwd()))
    factory = registry.model.get(type)
    model = factory("any", **registry.check_params(factory, params))
    if not isinstance(model, HttpModel):
        raise UserError(
            f"a model of the type {type!r} has no server that could be asked",
            fix="assay list providers",
        )
    provider = provider_of(entry.type, entry.params)
    known = provider.models if provider and is_own(provider, entry.params) else {}

    async def ask() -> list[str]:
        try:
            return await model.models()
        finally:
            await model.close()

    names = sorted(run_blocking(ask))
    if not names:
        raise UserError("the server has no models at all", where=model.base, fix="load one")
    return [_model_entry(served, known.get(served)) for served in names]


def _model_entry(name: str, known: ListedModel | None) -> ServedModelEntry:
    return ServedModelEntry(
        name, *((known.input, known.output, known.context) if known else (None, None, None))
    )
