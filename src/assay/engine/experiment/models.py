"""A config's models, made ready: with their secrets, limits and prices.

A price that nobody knows is unknown, never 0. A config's own `price` wins, then its `prices` by the model's API name,
then the list that ships with Assay, which has a date and holds only for the providers' own servers. What runs on this
machine without a server is free. Scoring what needs no call must not need a model's key: models that cannot be made say
so when they are called.
"""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from assay import registry
from assay.config import Config, ModelConfig, environment, secret, where
from assay.config.providers import factory_params, is_own, provider_of
from assay.interfaces import Completion, Likelihoods, Limits, Model, Price, Request
from assay.sdk import (
    AssayError,
    CallError,
    ConfigError,
    JsonMapping,
    JsonObject,
    LaneError,
    UserError,
)

T = TypeVar("T")
DEFAULT_CONCURRENCY = 64
_SUFFIX = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")


class Problems:
    """Collects the problems of several bindings, so that a user sees all of them at once, each with its place."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.found: list[UserError] = []

    @contextmanager
    def at(self, *key: str | int) -> Generator[None]:
        """Keep the problem of one binding; if it does not say where it is, it is at this key of the config."""
        try:
            yield
        except ConfigError as error:
            self.found.extend(error.problems)
        except UserError as error:
            error.where = error.where or (where(self.config, *key) if key else "")
            self.found.append(error)

    def each(self, part: str, bind: Callable[[Any], T]) -> list[T]:
        """Return what `bind` gives for each entry of a part of the config, or raise all that is wrong."""
        bound: list[T] = []
        for number, entry in enumerate(getattr(self.config, part)):
            with self.at(part, number):
                bound.append(bind(entry))
        self.raise_any()
        return bound

    def raise_any(self) -> None:
        if self.found:
            raise ConfigError(self.found, source=self.config.source)


def bind_models(config: Config, environ: Mapping[str, str] | None = None) -> dict[str, Model]:
    """By name. `environ` holds the keys that the config refers to; by default the process's, `.env` included."""
    variables = environment(config, environ)

    def bind(entry: ModelConfig) -> Model:
        model = bind_model(config, entry, variables)
        if check := getattr(model, "check", None):
            check()
        return model

    models = Problems(config).each("models", bind)
    return {entry.name: model for entry, model in zip(config.models, models, strict=True)}


def bind_model(config: Config, entry: ModelConfig, variables: Mapping[str, str]) -> Model:
    type, params = factory_params(entry.type, _with_secrets(entry.params, variables), variables)
    factory = registry.model.get(type, base=Path(config.base))
    if {**config.sample_params, **entry.inference}.get(
        "stream"
    ) and "stream" in registry.parameters(factory):
        params.setdefault("stream", True)
    return factory(entry.name, **registry.check_params(factory, params))


def sampling(config: Config, entry: ModelConfig) -> JsonObject:
    """The sampling parameters of a model. How an answer comes does not change it: `stream` is the model's."""
    return {
        key: value
        for key, value in {**config.sample_params, **entry.inference}.items()
        if key != "stream"
    }


def _with_secrets(params: JsonMapping, variables: Mapping[str, str]) -> JsonObject:
    """The parameters of a model, and of the one that it wraps, with what their references stand for."""
    found = dict(params)
    if isinstance(found.get("api_key"), str):
        found["api_key"] = _secret_value(found["api_key"], variables)
    if isinstance(found.get("headers"), dict):
        found["headers"] = {
            name: _secret_value(text, variables) for name, text in found["headers"].items()
        }
    if isinstance(wrapped := found.get("of"), dict):
        found["of"] = _with_secrets(wrapped, variables)
        if isinstance(type := wrapped.get("type"), str):
            type, params = factory_params(type, found["of"], variables)
            found["of"] = {**params, "type": type}
    return found


def _secret_value(reference: str, variables: Mapping[str, str]) -> str:
    value = secret(reference, variables)
    if value is None:
        raise UserError(f"{reference} is not set", fix="put it into the environment or into `.env`")
    return value


def bind_limits(config: Config) -> dict[str, Limits]:
    """By lane. The command line's and the config's own concurrency bound each model's."""
    return {entry.name: _limits(config, entry) for entry in config.models}


def default_limits(config: Config) -> Limits:
    return Limits(config.max_concurrency or DEFAULT_CONCURRENCY, config.timeout, config.max_retries)


def _limits(config: Config, entry: ModelConfig) -> Limits:
    answered = (
        entry.params.get("parallel", 1)
        if registry.model.marks(entry.type).get("parallel")
        else None
    )
    wanted = [
        n for n in (entry.max_concurrency, config.max_concurrency, answered) if isinstance(n, int)
    ]
    return Limits(
        max_concurrency=min(wanted, default=DEFAULT_CONCURRENCY),
        timeout=entry.timeout or config.timeout,
        max_retries=config.max_retries if entry.max_retries is None else entry.max_retries,
        requests_per_minute=entry.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute,
        price=price_of(config, entry),
    )


def check_budget(config: Config) -> None:
    """A budget in dollars needs to know what every model costs, before the first call."""
    if config.budget.usd is None:
        return

    def check(entry: ModelConfig) -> None:
        if price_of(config, entry) is None:
            raise UserError(
                f"the price of {entry.name!r} is unknown, so a budget in dollars cannot hold",
                fix="add `price: {input: …, output: …}` (dollars per million tokens), or budget `tokens`",
            )

    Problems(config).each("models", check)


def price_of(config: Config, model: ModelConfig) -> Price | None:
    """The price of a config's model, or None if it is unknown."""
    name = str(model.params.get("model_name") or model.name)
    given = model.price or config.prices.get(name) or config.prices.get(model.name)
    if given is not None:
        return Price(given.input, given.output)
    if registry.model.marks(model.type).get("free"):
        return Price(0.0, 0.0)
    provider = provider_of(model.type, model.params)
    listed = provider.models if provider and is_own(provider, model.params) else {}
    found = listed.get(name) or listed.get(_SUFFIX.sub("", name))
    return Price(found.input, found.output) if found else None


class _AnySecret(dict[str, str]):
    """Variables that are all set: no secret is part of a model's identity."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, "unknown")


class StandIn:
    """A model of which no call can be made: it has the identity and the `schemas` of a config's model, whether its key
    is known or not, so that calls that were logged are found. Only a scorer that makes one hears the error."""

    keeps_time = True
    schemas = False

    def __init__(self, config: Config, entry: ModelConfig, error: Callable[[], CallError]) -> None:
        self.name = entry.name
        self.identity: JsonMapping = {"name": entry.name}
        self._error = error
        with suppress(AssayError):
            model = bind_model(config, entry, _AnySecret())
            self.identity, self.schemas = model.identity, getattr(model, "schemas", False)

    async def complete(self, request: Request) -> Completion:
        raise self._error()

    async def likelihood(self, request: Request) -> Likelihoods:
        raise self._error()

    async def close(self) -> None:
        pass


def bind_usable(config: Config, environ: Mapping[str, str] | None) -> dict[str, Model]:
    """By name; one that cannot be made says so when it is called."""
    models: dict[str, Model] = {}
    for entry in config.models:
        try:
            models |= bind_models(msgspec.structs.replace(config, models=[entry]), environ)
        except ConfigError as error:
            why = error.problems[0]
            failed = partial(LaneError, why.what, where=why.where, fix=why.fix)
            models[entry.name] = StandIn(config, entry, failed)
    return models
