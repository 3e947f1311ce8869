"""A config written out again, complete and without secrets; and the stored schema of what may be written."""

import json
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from assay.config.benchmarks import without_expansion
from assay.config.environment import escape, without_user
from assay.config.source import map_values
from assay.config.types import NOT_WRITTEN, Config
from assay.records import JsonObject


def resolved(config: Config) -> JsonObject:
    """The whole config in its long form, paths absolute; loading it gives the same config."""
    written = {
        name: _plain(getattr(config, name))
        for name in config.__struct_fields__
        if name not in NOT_WRITTEN and (config.cluster_by or name != "cluster_by")
    }
    written["models"] = map_values(
        written["models"], lambda leaf, _: without_user(leaf) if isinstance(leaf, str) else leaf
    )
    return escape(without_expansion(written))


def to_yaml(value: JsonObject) -> str:
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


def stored_schema() -> str:
    """Return the JSON Schema of a config file, made by `tools.config_schema`; a test compares them."""
    file = files("assay") / "data" / "config.schema.json"
    return file.read_text(encoding="utf-8").rstrip() + "\n"


def schema() -> JsonObject:
    """Return the same as a mapping: the long forms as the Structs say, and the short forms beside them."""
    return json.loads(stored_schema())
