"""What a model's tokens cost. A price that nobody knows is unknown, never 0.

A config's own `price` wins, then its `prices` by the model's API name, then the list that ships with Assay, which has
a date and holds only for the providers' own servers. What runs on this machine without a server is free.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import msgspec

from assay.config import Config, ModelConfig
from assay.interfaces import Price

FREE_TYPES = {"demo", "replay"}
HOSTS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}
_SUFFIX = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")


@cache
def price_list() -> dict[str, Any]:
    """The list that ships with Assay: `as_of`, and prices by provider and model."""
    return msgspec.json.decode((files("assay") / "data" / "prices.json").read_bytes())


def price_of(config: Config, model: ModelConfig) -> Price | None:
    """The price of a config's model, or None if it is unknown."""
    name = str(model.params.get("model_name") or model.name)
    given = model.price or config.prices.get(name) or config.prices.get(model.name)
    if given is not None:
        return Price(given.input, given.output)
    if model.type in FREE_TYPES:
        return Price(0.0, 0.0)
    host = urlsplit(str(model.params.get("endpoint", ""))).hostname or ""
    provider = HOSTS.get(host, "anthropic" if model.type == "anthropic" and not host else "")
    listed = price_list()["providers"].get(provider, {})
    found = listed.get(name) or listed.get(_SUFFIX.sub("", name))
    return Price(found["input"], found["output"]) if found else None
