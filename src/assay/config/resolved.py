"""A config written out again, complete and without secrets; and the schema of what may be written.

`write_schema()` writes the schema's file, which `assay schema` prints without loading the types.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from assay.config.benchmarks import without_expansion
from assay.config.environment import escape, without_user
from assay.config.normalise import LIFTED, WITHOUT_EFFECT
from assay.config.prompts import PARTS, ROLES
from assay.config.source import mapped
from assay.config.types import NOT_WRITTEN, Config

SCHEMA_FILE = Path(__file__).parent.parent / "data" / "config.schema.json"


def resolved(config: Config) -> dict[str, Any]:
    """The whole config in its long form, paths absolute; loading it gives the same config."""
    written = {
        name: _plain(getattr(config, name))
        for name in config.__struct_fields__
        if name not in NOT_WRITTEN and (config.cluster_by or name != "cluster_by")
    }
    written["models"] = mapped(
        written["models"], lambda leaf, _: without_user(leaf) if isinstance(leaf, str) else leaf
    )
    return escape(without_expansion(written))


def to_yaml(value: dict[str, Any]) -> str:
    from assay.config.yaml12 import dump

    return dump(value)


def _plain(value: Any) -> Any:
    """Built-in values; keys of an entry that say nothing are left out."""
    if isinstance(value, Struct):
        entry = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        return {
            name: part
            for name, part in entry.items()
            if part is not None and part not in ("", [], {})
        }
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return msgspec.to_builtins(value)


def schema() -> dict[str, Any]:
    """JSON Schema of a config file: the long forms as the Structs say, and the short forms beside them."""
    whole = msgspec.json.schema(Config)
    definitions: dict[str, Any] = whole["$defs"]
    config = definitions.pop("Config")
    properties: dict[str, Any] = config["properties"]
    for name in NOT_WRITTEN:
        del properties[name]
    text = {"type": "string"}
    models, methods = (
        definitions["ModelConfig"],
        (definitions["MethodConfig"], definitions["MetricConfig"]),
    )
    models["additionalProperties"] = True
    models["properties"]["config"] = {"type": "object"}
    for definition in (*methods, definitions["TaskConfig"]):
        definition["required"] = []
    for name in ("models", "evaluation_methods", "metrics", "tasks", "outputs", "benchmarks"):
        entry = {
            "anyOf": [text, properties[name].pop("items"), {"type": "object", "maxProperties": 1}]
        }
        properties[name] = {"anyOf": [{"type": "array", "items": entry}, *entry["anyOf"]]}
    definitions["MetricConfig"]["properties"]["facets"] = {
        "type": ["array", "string"],
        "items": text,
    }
    labels = definitions["MetricConfig"]["properties"]["labels"]
    labels["anyOf"] = [{"$ref": labels.pop("$ref")}, {"type": ["array", "string"], "items": text}]
    properties["dataset"] = {"anyOf": [text, *properties["dataset"].pop("anyOf")]}
    definitions["DatasetConfig"]["properties"]["split"]["anyOf"].append(text)
    definitions["SplitConfig"]["properties"]["ratio"]["type"] = ["object", "number"]
    properties["logging"]["anyOf"] = [text, {"$ref": properties["logging"].pop("$ref")}]
    properties["on"]["anyOf"].append({"const": "ray"})
    prompt = _prompt_schema(definitions)
    properties["env_vars"] = {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    }
    workflow: dict[str, Any] = {}
    for key in [*LIFTED, *sorted(WITHOUT_EFFECT)]:
        target = LIFTED.get(key)
        if key[0] == "workflow":
            workflow[str(key[1])] = properties.get(target or "", {})
        elif len(key) == 1:
            properties[str(key[0])] = (
                prompt if target == "prompts" else properties.get(target or "", {})
            )
    properties["prompts"] = prompt
    properties["workflow"] = {
        "type": "object",
        "properties": workflow,
        "additionalProperties": False,
    }
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {
        "$schema": dialect,
        **config,
        "title": "Assay config",
        "required": [],
        "$defs": definitions,
    }


def _prompt_schema(definitions: dict[str, Any]) -> dict[str, Any]:
    """One prompt, a list of them, or a map from names to them; an entry is a text, a mapping or a chat."""
    text: dict[str, Any] = {"type": "string"}
    part = {
        "type": "object",
        "properties": {
            "type": {"enum": list(PARTS)},
            **dict.fromkeys(("text", "path", "url", "field", "detail"), text),
        },
        "required": ["type"],
        "additionalProperties": False,
    }
    turn = {
        "type": "object",
        "properties": {
            "role": {"enum": list(ROLES)},
            "content": {"anyOf": [text, {"type": "array", "items": part}]},
        },
        "required": ["role", "content"],
        "additionalProperties": False,
    }
    definitions["Turns"] = turns = {"type": "array", "items": turn, "minItems": 1}
    prompt, few_shot = (
        definitions["PromptConfig"]["properties"],
        definitions["FewShotConfig"]["properties"],
    )
    for properties in (prompt, few_shot):
        properties["messages"] = {"anyOf": [{"$ref": "#/$defs/Turns"}, {"type": "null"}]}
    for name, described in definitions["DatasetConfig"]["properties"].items():
        few_shot.setdefault(name, described)
    few_shot["dataset"]["anyOf"].append(text)
    prompt["few_shot"]["anyOf"].append(text)
    entry = {"anyOf": [text, {"$ref": "#/$defs/PromptConfig"}, turns]}
    named = {"type": "object", "additionalProperties": entry}
    return {"anyOf": [*entry["anyOf"], {"type": "array", "items": entry}, named]}


def schema_text() -> str:
    """What the schema's file should hold."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema() -> None:
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")


def stored_schema() -> str:
    """The JSON Schema of a config file, made by `write_schema`; a test compares them."""
    return (files("assay") / "data" / "config.schema.json").read_text(
        encoding="utf-8"
    ).rstrip() + "\n"
