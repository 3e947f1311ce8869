"""A config's models for scorers: scoring what needs no call must not need their keys."""

from collections.abc import Mapping
from typing import Any

import msgspec

from assay.config import Config
from assay.errors import AssayError, ConfigError, LaneError, UserError
from assay.interfaces import Completion, Model, Request
from assay.steps.bind import bind_model, bind_models


class Unusable:
    """A model that could not be made (a key is missing): only a scorer that calls it needs to hear why."""

    def __init__(self, name: str, identity: Mapping[str, Any], problem: UserError) -> None:
        self.name = name
        self.identity = identity
        self._problem = problem

    async def complete(self, request: Request) -> Completion:
        raise LaneError(self._problem.what, where=self._problem.where, fix=self._problem.fix)

    async def close(self) -> None:
        pass


class _AnySecret(dict[str, str]):
    """Variables that are all set: no secret is part of a model's identity."""

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, "unknown")


def bind_usable(config: Config, environ: Mapping[str, str] | None) -> dict[str, Model]:
    """By name; one that cannot be made says so when it is called."""
    models: dict[str, Model] = {}
    for entry in config.models:
        try:
            models |= bind_models(msgspec.structs.replace(config, models=[entry]), environ)
        except ConfigError as error:
            try:
                identity = bind_model(config, entry, _AnySecret()).identity
            except AssayError:
                identity = {"name": entry.name}
            models[entry.name] = Unusable(entry.name, identity, error.problems[0])
    return models
