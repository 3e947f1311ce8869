"""A config written out again, complete and without secrets; and the schema of what may be written."""

from typing import Any

import msgspec
from msgspec import Struct

from assay.config.environment import escape
from assay.config.normalise import LIFTED, WITHOUT_EFFECT
from assay.config.types import Config

_NOT_WRITTEN = ("source", "base")


def resolved(config: Config) -> dict[str, Any]:
    """The whole config in its long form, paths absolute; loading it gives the same config."""
    written = {name: _plain(getattr(config, name)) for name in config.__struct_fields__ if name not in _NOT_WRITTEN}
    return escape(written)


def to_yaml(value: dict[str, Any]) -> str:
    from assay.config.yaml12 import dump

    return dump(value)


def _plain(value: Any) -> Any:
    """Built-in values; keys of an entry that say nothing are left out."""
    if isinstance(value, Struct):
        entry = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return {name: part for name, part in entry.items() if part is not None and part not in ("", [], {})}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return msgspec.to_builtins(value)


def schema() -> dict[str, Any]:
    """JSON Schema of a config file: the long forms as the Structs say, and the short forms beside them."""
    whole = msgspec.json.schema(Config)
    definitions: dict[str, Any] = whole["$defs"]
    config = definitions.pop("Config")
    properties: dict[str, Any] = config["properties"]
    for name in _NOT_WRITTEN:
        del properties[name]
    text = {"type": "string"}
    models, methods = definitions["ModelConfig"], (definitions["MethodConfig"], definitions["MetricConfig"])
    models["additionalProperties"] = True
    models["properties"]["config"] = {"type": "object"}
    for definition in (*methods, definitions["TaskConfig"]):
        definition["required"] = []
    for name in ("models", "evaluation_methods", "metrics", "tasks"):
        entry = {"anyOf": [text, properties[name].pop("items"), {"type": "object", "maxProperties": 1}]}
        properties[name] = {"anyOf": [{"type": "array", "items": entry}, *entry["anyOf"]]}
    definitions["MetricConfig"]["properties"]["facets"] = {"type": ["array", "string"], "items": text}
    labels = definitions["MetricConfig"]["properties"]["labels"]
    labels["anyOf"] = [{"$ref": labels.pop("$ref")}, {"type": ["array", "string"], "items": text}]
    properties["dataset"] = {"anyOf": [text, *properties["dataset"].pop("anyOf")]}
    properties["logging"]["anyOf"] = [text, {"$ref": properties["logging"].pop("$ref")}]
    prompt = {"type": ["string", "object", "array"]}
    properties["env_vars"] = {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    }
    workflow: dict[str, Any] = {}
    for key in [*LIFTED, *WITHOUT_EFFECT]:
        target = LIFTED.get(key)
        if key[0] == "workflow":
            workflow[str(key[1])] = properties.get(target or "", {})
        elif len(key) == 1:
            properties[str(key[0])] = prompt if target == "prompts" else properties.get(target or "", {})
    properties["prompts"] = prompt
    properties["workflow"] = {"type": "object", "properties": workflow, "additionalProperties": False}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "Assay config", **config, "required": [], "$defs": definitions}
