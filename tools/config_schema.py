"""Writes `config.schema.json`, the JSON Schema of a config file: what `assay schema` prints.

python -m tools.config_schema
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from assay.config.normalise import LIFTED, WITHOUT_EFFECT
from assay.config.prompts import PARTS, ROLES
from assay.config.types import NOT_WRITTEN, Config

FILE = Path(__file__).parents[1] / "src/assay/data/config.schema.json"


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


def text() -> str:
    """Return what the schema's file should hold."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
