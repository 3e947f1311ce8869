"""The ways to write a model: a name, `provider:name`, `type:name[@url]`, `file.py:function`, or a mapping of keys."""

import difflib
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import assay.registry as registry
from assay.config.environment import PLACEHOLDERS
from assay.config.providers import provider_of, providers
from assay.config.source import Document, Key
from assay.config.types import ModelConfig
from assay.records import JsonMapping, JsonObject

LOCAL_ENDPOINT = "http://localhost:1234/v1"
FIELDS = {*ModelConfig.__struct_fields__} - {"params"}
_WITHOUT_VERSION = {"azure", "bedrock", "gemini", "vertex"}  # types that make their own paths
_FUNCTION_KEYS = {"path", "function_name", "function"}
_SAYS_WHERE = {"type", "endpoint", "model_name"}


def is_bare_name(text: str) -> bool:
    """Return whether a model's text is only a name, without type, address or function."""
    return _from_text(text).keys() == {"name"}


def long_model(entry: Any, key: Key, document: Document) -> Any:
    """A model with the engine's keys on top and all for its factory in `params`; null means not given."""
    if isinstance(entry, str):
        entry = _from_text(entry)
    if not isinstance(entry, Mapping):
        return entry
    merged = {
        name: value
        for name, value in _merge_layers(entry, key, document).items()
        if value is not None
    }
    if isinstance(merged.get("name"), str) and not _SAYS_WHERE & merged.keys():
        merged |= _from_text(merged["name"])
        _check_prefix(merged, key, document)
    model: JsonObject = {name: merged.pop(name) for name in list(merged) if name in FIELDS}
    _name_key_variable(merged, key, document)
    type = model.get("type", "openai")
    if type == "openai":
        merged.setdefault("endpoint", LOCAL_ENDPOINT)
    provider = provider_of(type, merged) if isinstance(type, str) else None
    if (
        isinstance(merged.get("endpoint"), str)
        and (provider.type if provider else type) not in _WITHOUT_VERSION
    ):
        merged["endpoint"] = with_version(merged["endpoint"])
    return {**model, "params": merged}


def _check_prefix(model: JsonMapping, key: Key, document: Document) -> None:
    """Report a word before a colon that is no provider, unless an address says where the model is."""
    if not _SAYS_WHERE & model.keys() and (problem := unknown_prefix(str(model["name"]))):
        document.report(problem[0], key, problem[1])


def unknown_prefix(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a name of the form `prefix:name`, and what to do; None for a name of another form."""
    prefix, _, name = text.partition(":")
    if not prefix or not name:
        return None
    names = sorted({*providers(), *registry.model.names()})
    close = difflib.get_close_matches(prefix.lower(), names, n=3, cutoff=0.6)
    nearest = (
        f"did you mean {' or '.join(repr(f'{provider}:{name}') for provider in close)}? "
        if close
        else ""
    )
    fix = f"{nearest}`assay list providers` has all; a server's own name needs its address: {text}@URL"
    return f"{prefix!r} is not a provider", fix


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


def _from_text(text: str) -> JsonObject:
    if ".py:" in text:
        path, _, function = text.rpartition(":")
        return {"name": function, "type": "python", "path": path, "function_name": function}
    if text == "local":
        return {"name": text, "type": text}
    if text.startswith("gguf:") and (path := text.removeprefix("gguf:")):
        return {"name": PurePath(path).stem, "type": "gguf", "path": path}
    model: JsonObject = {"name": text}
    address = re.fullmatch(r"(.+)@(https?://.+)", text)
    if address:
        model = {"name": address[1], "endpoint": address[2]}
    kind, _, name = model["name"].partition(":")
    if not name:
        return model
    if kind in _WITHOUT_VERSION or (
        kind in providers() and kind not in registry.model.names() and not address
    ):
        # the whole is its name: what another provider serves is another model
        model.update(type=kind, model_name=name)
    elif kind in registry.model.names():
        model.update(type=kind, name=name)
        if kind == "openai" and not address:
            model.update(endpoint=providers()["openai"].endpoint)
    return model


def _merge_layers(entry: JsonMapping, key: Key, document: Document) -> JsonObject:
    """`config` below `params` below the keys of the entry itself."""
    # beside a function's own keys, `params` are what the function gets
    nested = ("config",) if _FUNCTION_KEYS & entry.keys() else ("config", "params")
    layers: list[tuple[Key, Any]] = [
        ((*key, name), entry[name]) for name in nested if entry.get(name) is not None
    ]
    layers.append((key, {name: value for name, value in entry.items() if name not in nested}))
    merged: JsonObject = {}
    for origin, layer in layers:
        if not isinstance(layer, Mapping):
            merged[str(origin[-1])] = layer  # not what it should be: kept for the checks
            continue
        for name, value in layer.items():
            document.note_origin(
                (*key, name) if name in FIELDS else (*key, "params", name), (*origin, name)
            )
            merged[name] = value
    return merged


def _name_key_variable(params: JsonObject, key: Key, document: Document) -> None:
    """`api_key_env: VAR` is `api_key: ${VAR}`; a placeholder for servers that want no key is left out."""
    variable = params.get("api_key_env")
    if (
        isinstance(variable, str)
        and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable)
        and "api_key" not in params
    ):
        del params["api_key_env"]
        params["api_key"] = f"${{{variable}}}"
        document.note_origin((*key, "params", "api_key"), (*key, "params", "api_key_env"))
    if str(params.get("api_key", "unset")).lower() in PLACEHOLDERS:
        del params["api_key"]
