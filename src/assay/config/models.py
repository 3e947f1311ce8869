"""The ways to write a model: a name, `type:name[@url]`, `file.py:function`, or a mapping of keys."""

import difflib
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

import assay.registry as registry
from assay.config.environment import PLACEHOLDERS
from assay.config.source import Document, Key
from assay.config.types import ModelConfig

LOCAL_ENDPOINT = "http://localhost:1234/v1"
FIELDS = {field.name for field in msgspec.structs.fields(ModelConfig)} - {"params"}
_OTHER_PROVIDERS = {
    *("azure", "bedrock", "cohere", "deepseek", "fireworks", "gemini", "google", "grok", "groq", "hf", "huggingface"),
    *("mistral", "ollama", "openrouter", "together", "vertex", "xai"),
}
_FUNCTION_KEYS = {"path", "function_name", "function"}


def is_bare_name(text: str) -> bool:
    """Whether a model's text is only a name, without type, address or function."""
    return _from_text(text).keys() == {"name"}


def long_model(entry: Any, key: Key, document: Document) -> Any:
    """A model with the engine's keys on top and all for its factory in `params`; null means not given."""
    if isinstance(entry, str):
        entry = _from_text(entry)
        _check_provider(entry, key, document)
    if not isinstance(entry, Mapping):
        return entry
    merged = {name: value for name, value in _merged(entry, key, document).items() if value is not None}
    model: dict[str, Any] = {name: merged.pop(name) for name in list(merged) if name in FIELDS}
    _name_key_variable(merged, key, document)
    if model.get("type", "openai") == "openai":
        merged.setdefault("endpoint", LOCAL_ENDPOINT)
    if isinstance(merged.get("endpoint"), str):
        merged["endpoint"] = with_version(merged["endpoint"])
    return {**model, "params": merged}


def _check_provider(model: Mapping[str, Any], key: Key, document: Document) -> None:
    """`qwen3:8b` is a name at a local server; what stands before the colon may also be meant as a provider."""
    prefix, _, name = str(model["name"]).partition(":")
    types = registry.model.names()
    if not name or len(model) > 1:
        return
    close = difflib.get_close_matches(prefix.lower(), types, n=1, cutoff=0.75)
    if close or prefix.lower() in _OTHER_PROVIDERS:
        meant = f"did you mean '{close[0]}:{name}'? " if close else ""
        fix = f"{meant}valid: {', '.join(types)}; of any server that speaks OpenAI's API: openai:{name}@URL"
        document.report(f"{prefix!r} is not a provider", key, fix)


def with_version(endpoint: str) -> str:
    """The address that `/chat/completions` is added to: it ends in `/v1` unless it names a version itself."""
    try:
        parts = urlsplit(endpoint.strip())
    except ValueError:
        return endpoint
    if parts.scheme not in ("http", "https"):
        return endpoint
    path = re.sub(r"(/chat)?/completions$", "", parts.path.rstrip("/"))
    if not re.search(r"/v\d", path):
        path += "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _from_text(text: str) -> dict[str, Any]:
    if ".py:" in text:
        path, _, function = text.rpartition(":")
        return {"name": function, "type": "python", "path": path, "function_name": function}
    if text == "local":
        return {"name": text, "type": text}
    if text.startswith("gguf:") and (path := text.removeprefix("gguf:")):
        return {"name": PurePath(path).stem, "type": "gguf", "path": path}
    model: dict[str, Any] = {"name": text}
    address = re.fullmatch(r"(.+)@(https?://.+)", text)
    if address:
        model = {"name": address[1], "endpoint": address[2]}
    kind, _, name = model["name"].partition(":")
    if name and kind in registry.model.names():
        model.update(type=kind, name=name)
    return model


def _merged(entry: Mapping[str, Any], key: Key, document: Document) -> dict[str, Any]:
    """`config` below `params` below the keys of the entry itself."""
    # beside a function's own keys, `params` are what the function gets
    nested = ("config",) if _FUNCTION_KEYS & entry.keys() else ("config", "params")
    layers: list[tuple[Key, Any]] = [((*key, name), entry[name]) for name in nested if entry.get(name) is not None]
    layers.append((key, {name: value for name, value in entry.items() if name not in nested}))
    merged: dict[str, Any] = {}
    for origin, layer in layers:
        if not isinstance(layer, Mapping):
            merged[str(origin[-1])] = layer  # not what it should be: kept for the checks
            continue
        for name, value in layer.items():
            document.moved((*key, name) if name in FIELDS else (*key, "params", name), (*origin, name))
            merged[name] = value
    return merged


def _name_key_variable(params: dict[str, Any], key: Key, document: Document) -> None:
    """`api_key_env: VAR` is `api_key: ${VAR}`; a placeholder for servers that want no key is left out."""
    variable = params.get("api_key_env")
    if isinstance(variable, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable) and "api_key" not in params:
        del params["api_key_env"]
        params["api_key"] = f"${{{variable}}}"
        document.moved((*key, "params", "api_key"), (*key, "params", "api_key_env"))
    if str(params.get("api_key", "unset")).lower() in PLACEHOLDERS:
        del params["api_key"]
