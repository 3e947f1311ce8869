"""`models.yaml` and the `SYGRA_<MODEL>_<KEY>` variables, as models of the engine.

An entry comes from the first models.yaml that exists, a custom file replaces whole entries, and variables set single
keys; a model that only variables describe needs no file. What cannot be served is refused by name.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from assay import registry
from assay.config.models import with_version
from assay.formats.sygra.graph import ModelUse
from assay.formats.sygra.graph.asking import check_medium
from assay.formats.sygra.graph.called import code_of
from assay.formats.sygra.modules import Loader
from assay.formats.sygra.names import read_yaml
from assay.formats.sygra.types import Config, Row, YamlPlace
from assay.sdk import Completion, Limits, Model, Request, UserError, as_list, as_object, nearest


class Balanced:
    """Asks the address with the fewest calls in flight. The addresses are not part of what it is."""

    keeps_time = True

    def __init__(self, name: str, parts: Sequence[Model]) -> None:
        self.name = name
        self.identity: Config = parts[0].identity
        self.schemas = bool(getattr(parts[0], "schemas", False))
        self._parts = parts
        self._in_flight = [0] * len(parts)

    async def complete(self, request: Request) -> Completion:
        place = self._in_flight.index(min(self._in_flight))
        self._in_flight[place] += 1
        try:
            return await self._parts[place].complete(request)
        finally:
            self._in_flight[place] -= 1

    async def close(self) -> None:
        for part in self._parts:
            await part.close()


FILES = ("sygra/config/models.yaml", "config/models.yaml", "models.yaml")
CUSTOM_FILE = "studio/config/custom_models.yaml"
_OPENAI_TYPES = {"openai", "vllm", "azure", "azure_openai", "ollama", "tgi", "mistralai"}
_ELSEWHERE = {"bedrock", "vertex_ai", "triton", "claude_proxy", "gemini_proxy"}
_PREFIXES = re.compile(r"(openai|azure|azure_ai|hosted_vllm|vllm|ollama|ollama_chat|mistral)/")
_OWN_KEYS = {
    "model_type",
    "parameters",
    "structured_output",
    "retry_attempts",
    "timeout",
    "post_process",
}
_NO = ("false", "no", "0")


class BoundModel(msgspec.Struct):
    """A model of the YAML: the engine's model with its limits, and how a graph's nodes use it."""

    model: Model
    limits: Limits
    use: ModelUse


def load_environment(base: Path) -> None:
    """`.env` of the folder into the process's environment; as in the original, the file wins."""
    file = base / ".env"
    if not file.is_file():
        return
    for line in file.read_text("utf-8-sig", errors="replace").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name and name[0] != "#":
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            os.environ[name.strip()] = value[1:-1] if quoted else value


def read_models(base: Path, names: Iterable[str], environ: Mapping[str, str]) -> dict[str, Row]:
    """The entries of the models that a graph uses; one that nothing describes is an error."""
    file = next((base / name for name in FILES if (base / name).is_file()), None)
    entries = {} if file is None else read_yaml(file)
    custom = base / environ.get("SYGRA_CUSTOM_MODELS_PATH", CUSTOM_FILE)
    entries.update(read_yaml(custom) if custom.is_file() else {})
    models: dict[str, Row] = {}
    for name in names:
        entry = entries.get(name)
        entry = {**as_object(entry), **_from_environment(name, environ)}
        if not entry:
            prefix = _prefix(name)
            where = str(file) if file else f"no {' or '.join(FILES)} in {base}"
            fix = f"set {prefix}URL and {prefix}MODEL, or add it to models.yaml; {nearest(name, entries)}".rstrip(
                "; "
            )
            raise UserError(f"the model {name!r} is not described anywhere", where=where, fix=fix)
        models[name] = entry
    return models


def bind_model(name: str, entry: Config, load: Loader, *, max_concurrency: int) -> BoundModel:
    """The entry as a model of the engine; `load` resolves its `post_process`."""
    where = f"model {name!r}"
    kind = str(entry.get("model_type") or "openai").lower()
    _refuse(name, kind, entry, where)
    parts = _models(name, kind, entry, where)
    model = parts[0] if len(parts) == 1 else Balanced(name, parts)
    clean, cleaning = _cleaning(entry, load, where)
    return BoundModel(
        model=model,
        limits=Limits(
            max_concurrency=max_concurrency,
            timeout=_number(entry, "timeout", Limits().timeout, where),
            max_retries=int(_number(entry, "retry_attempts", Limits().max_retries, where)),
        ),
        use=ModelUse(
            model=name,
            params=_mapping(entry, "parameters", where),
            structured_output=_mapping(entry, "structured_output", where) or None,
            native="guided_json" if kind == "vllm" else "json_schema",
            clean=clean,
            identity={**model.identity, **cleaning},
        ),
    )


def _cleaning(entry: Config, load: Loader, where: str) -> tuple[Callable[[str], str] | None, Row]:
    """Return what is done to every answer (`special_tokens`, `post_process`), and what identifies
    it."""
    tokens = entry.get("special_tokens") or []
    tokens = [tokens] if isinstance(tokens, str) else [str(token) for token in tokens]
    dotted = entry.get("post_process")
    if not tokens and not dotted:
        return None, {}
    processor = load(str(dotted), f"{where}, post_process") if dotted else None
    process = processor().apply if isinstance(processor, type) else processor

    def clean(text: str) -> str:
        for token in tokens:
            text = text.replace(token, "")
        return text if process is None else process(text)

    return clean, {
        "special_tokens": tokens,
        "post_process": code_of(processor) if processor else None,
    }


def _models(name: str, kind: str, entry: Config, where: str) -> list[Model]:
    """One model for each address."""
    if kind not in _OPENAI_TYPES:
        make = registry.model.get(kind, where=f"{where}, model_type")
        allowed = registry.parameters(make)
        params = {
            key: value for key, value in entry.items() if key in allowed and key not in _OWN_KEYS
        }
        return [make(name, **registry.check_params(make, params, where=where))]
    addresses = [str(url) for url in as_list(entry.get("url")) if url]
    if not addresses:
        raise UserError(
            f"the model {name!r} has no url", where=where, fix=f"set {_prefix(name)}URL=http://…/v1"
        )
    keys = [str(token) for token in as_list(entry.get("auth_token")) if token] or [""]
    if kind == "azure_openai":  # its own addresses have an OpenAI-compatible API below `/openai/v1`
        addresses = [
            url if "/openai" in url else f"{url.rstrip('/')}/openai/v1" for url in addresses
        ]
    make = registry.model.get("openai")
    called = entry.get("model_serving_name") or entry.get("model") or name
    return [
        make(
            name,
            model_name=_PREFIXES.sub("", str(called), count=1),
            endpoint=with_version(address),
            api="chat"
            if str(entry.get("completions_api") or "no").lower() in _NO
            else "completions",
            api_key=keys[number % len(keys)] or None,
            headers={"api-key": keys[number % len(keys)]}
            if kind == "azure_openai" and keys[0]
            else {},
        )
        for number, address in enumerate(addresses)
    ]


def _refuse(name: str, kind: str, entry: Config, where: str) -> None:
    if kind in _ELSEWHERE:
        raise UserError(
            f"model_type {kind!r} is not offered",
            where=where,
            fix=f"reach it through an OpenAI-compatible server: {_prefix(name)}MODEL_TYPE=openai, {_prefix(name)}URL=…",
        )
    if kind not in _OPENAI_TYPES and kind not in registry.model.names():
        raise UserError(
            f"unknown model_type {kind!r}",
            where=where,
            fix=nearest(kind, {*_OPENAI_TYPES, *registry.model.names()}),
        )
    certificate = entry.get("ssl_cert") or "None"
    if str(entry.get("ssl_verify", "true")).lower() in _NO or certificate != "None":
        raise UserError(
            "ssl_verify: false and ssl_cert are not offered",
            where=where,
            fix="let the system trust the certificate",
        )
    check_medium(YamlPlace(entry, where))


def _from_environment(name: str, environ: Mapping[str, str]) -> Row:
    prefix = _prefix(name)
    entry: Row = {}
    for variable, text in environ.items():
        if variable.startswith(prefix):
            key = variable.removeprefix(prefix)
            key = "auth_token" if key in ("TOKEN", "AUTH_TOKEN") else key.lower()
            entry[key] = [part for part in text.split("|") if part] if "|" in text else text
    return entry


def _prefix(name: str) -> str:
    plain = re.sub(r"\s+", "_", name).upper()
    return f"SYGRA_{plain}_"


def _mapping(entry: Config, key: str, where: str) -> Row:
    value = entry.get(key)
    if value is not None and not isinstance(value, dict):
        raise UserError(f"{key} must be a mapping", where=where, fix=f"write `{key}: {{…}}`")
    return dict(value or {})


def _number(entry: Config, key: str, default: float, where: str) -> float:
    value = entry.get(key)
    try:
        return default if value is None else float(value)
    except (TypeError, ValueError):
        raise UserError(f"{key} is {value!r}, not a number", where=where) from None
