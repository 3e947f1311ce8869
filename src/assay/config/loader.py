"""From a source to a Config: read, expand variables, write short forms out, override, check everything."""

import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from assay.config.benchmarks import expand_benchmarks, names_benchmarks, read_benchmarks
from assay.config.check import build
from assay.config.environment import check_secrets, environment_of, eval_variables, expand
from assay.config.inline import ARGUMENTS, without_objects
from assay.config.models import FIELDS, is_bare_name, unknown_prefix
from assay.config.normalise import LIFTED, WITHOUT_EFFECT, normalise
from assay.config.paths import resolve_paths
from assay.config.prompts import read_prompts
from assay.config.rules import Need, check_rules
from assay.config.source import Document, Key, copy_values, flag_value, read
from assay.config.types import NOT_WRITTEN, Config, ModelConfig
from assay.errors import UserError
from assay.records import JsonMapping, JsonObject
from assay.registry import formats, nearest


def load(
    source: str | Path | JsonMapping,
    *,
    overrides: Mapping[str, Any] = {},
    environ: Mapping[str, str] | None = None,
    need: Need = "run",
    arguments: Mapping[str, Any] = {},
    models: Sequence[str] = (),
) -> Config:
    """Read a config. `overrides` win over `arguments` (those of `assay.experiment`), these over `EVAL_*`, these over
    the file. All but the file may hold objects of Python. `models` are those of a config that names none. All problems
    are one ConfigError."""
    document = _long_forms(source, environ, overrides, arguments, models)
    _fill_in(document)
    files_needed = need not in ("aggregate", "gate")
    resolve_paths(document, files_needed=files_needed)
    expand_benchmarks(document, needed=need == "run")
    read_prompts(document, files_needed=files_needed)
    check_secrets(document)
    _check_top_level(document)
    config = build(Config, document.data, (), document)
    check_rules(config, document, need)
    document.stop_if_wrong()
    file = os.path.abspath(document.file) if document.file else ""
    return msgspec.structs.replace(
        config, source=file, base=str(document.base), objects=document.objects
    )


def parse_model(
    model: str | JsonMapping,
    known: Sequence[ModelConfig] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> ModelConfig:
    """A known model by its name, or a new one: `provider:name`, `type:name[@url]`, `file.py:function`, or a mapping."""
    match = next((entry for entry in known if entry.name == model), None)
    if match is not None:
        return match
    if isinstance(model, str) and known and is_bare_name(model):
        names = nearest(model, [entry.name for entry in known])
        what, fix = unknown_prefix(model) or (
            "",
            "or write provider:name, type:name[@url] or file.py:function",
        )
        raise UserError(
            f"there is no model {model!r}{what and f', and {what}'}", fix=f"{names}; {fix}"
        )
    document = Document({"models": [dict(model) if isinstance(model, Mapping) else model]})
    document.data = expand(document.data, (), environment_of(document, environ), document)
    normalise(document)
    resolve_paths(document, files_needed=True)
    check_secrets(document)
    config = build(Config, {"name": "model", "output_dir": ".", **document.data}, (), document)
    check_rules(config, document, None)
    document.stop_if_wrong()
    return config.models[0]


def where(config: Config, *key: str | int) -> str:
    """The place of a value in the file that a config came from: `file.yaml:12 models[0].endpoint`.

    For errors that are found later; the file is read again, so that a Config need not carry its lines.
    """
    try:
        document = _long_forms(config.source, None, {}) if config.source else Document({})
    except UserError:
        document = Document({})
    return document.place(key)


def _long_forms(
    source: str | Path | JsonMapping,
    environ: Mapping[str, str] | None,
    overrides: JsonMapping,
    arguments: Mapping[str, Any] = {},
    models: Sequence[str] = (),
) -> Document:
    held: list[Any] = []
    if names_benchmarks(source):
        document = read_benchmarks(str(source))
    else:
        document = read(without_objects(source, held) if isinstance(source, Mapping) else source)
    _translate(document.data)
    variables = environment_of(document, environ)
    document.data = expand(document.data, (), variables, document)
    if not document.data.get("models") and not document.data.get("tasks") and models:
        document.data["models"] = [*models]
    normalise(document)
    keys = {ARGUMENTS.get(name, name): value for name, value in arguments.items()}
    keys = copy_values(without_objects(keys, held))
    _translate(keys)
    _apply(document, without_objects(overrides, held), variables, arguments=keys)
    document.objects = held
    normalise(document)
    return document


def _translate(data: JsonObject) -> None:
    """Write what another tool calls otherwise as we do."""
    for name in formats("dialect"):
        import_module(f"assay.formats.{name}.dialect").translate(data)


# ---- single values set from outside the file: `--set a.b=value`, arguments and `EVAL_*`


def parse_override(text: str) -> tuple[str, Any]:
    """`models.0.name=x` as its key and its value, read like a value in YAML."""
    key, sign, value = text.partition("=")
    if not sign or not all(key.strip().split(".")):
        raise UserError(f"{text!r} sets nothing", where="--set", fix="write --set dotted.key=value")
    return key.strip(), flag_value(value)


def _apply(
    document: Document,
    overrides: JsonMapping,
    variables: Mapping[str, str],
    *,
    arguments: Mapping[str, Any] = {},
) -> None:
    """Set what `EVAL_*` variables, then what arguments and then what flags say, in a document of long forms."""
    for name, (key, value) in eval_variables(variables).items():
        _set_value(document, key, value, name)
    spelled = {key: name for name, key in ARGUMENTS.items()}
    for key, value in arguments.items():
        by = f"the argument `{spelled.get(key, key)}`"
        _set_value(document, (key,), expand(value, (key,), variables, document), by)
    normalise(document)  # arguments are short forms, too
    for text, value in overrides.items():
        key = tuple(int(part) if part.isdecimal() else part for part in text.split("."))
        for each in _spread(document, key):
            _set_value(document, each, expand(value, each, variables, document), f"--set {text}")


def _spread(document: Document, key: Key) -> list[Key]:
    """`models.*.temperature`: the same key of every entry of a list."""
    entries: Any = document.data.get(str(key[0]))
    if len(key) < 2 or key[1] != "*" or not isinstance(entries, list):
        return [key]
    return [(key[0], number, *key[2:]) for number in range(len(entries))]


def _set_value(document: Document, key: Key, value: Any, by: str) -> None:
    key = _long_key(key)
    document.note_setter(key, by)
    target = LIFTED.get((str(key[0]),)) or LIFTED.get(tuple(map(str, key)))
    if target:
        document.data.pop(target, None)
    holder: Any = document.data
    for part, following in pairwise(key):
        holder = _inside(holder, part, [] if isinstance(following, int) else {})
    last = key[-1]
    if isinstance(holder, dict):
        holder[str(last)] = value
    elif isinstance(holder, list) and isinstance(last, int) and last <= len(holder):
        holder[last:] = [value, *holder[last + 1 :]]
    else:
        document.report(
            f"there is nothing to set at {'.'.join(map(str, key))}", key, "count entries from 0"
        )


def _inside(holder: Any, part: str | int, empty: Any) -> Any:
    """Return what `part` names, made `empty` first if it is missing; a list grows only at its end."""
    if isinstance(holder, list) and isinstance(part, int) and part <= len(holder):
        if part == len(holder):
            holder.append(empty)
        return holder[part]
    if not isinstance(holder, dict):
        return None
    if holder.get(str(part)) is None:
        holder[str(part)] = empty
    return holder[str(part)]


def _long_key(key: Key) -> Key:
    """Return where a model's key is in its long form."""
    if key[0] != "models" or len(key) < 3:
        return key
    rest = key[3:] if key[2] in ("config", "params") else key[2:]
    if not rest:
        return key
    return (*key[:2], *rest) if rest[0] in FIELDS else (*key[:2], "params", *rest)


# ---- the whole


def _fill_in(document: Document) -> None:
    """Give what the config does not say, and everything needs."""
    data = document.data
    data["name"] = _name(document)
    if not data.get("output_dir"):
        data["output_dir"] = os.path.join("output", _folder_name(str(data["name"])))
    data["prompts"] = data.get("prompts") or [{}]


def _name(document: Document) -> Any:
    given = document.data.get("name")
    if given is not None or document.file is None:
        return "assay" if given is None else given
    stem = document.file.stem
    return (document.base.name or stem) if stem == "config" else stem


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w.\- ]", "_", name).strip(". ") or "assay"


def _check_top_level(document: Document) -> None:
    """Keys that are known but cannot be taken; they are removed, so that they are not also called unknown."""
    data = document.data
    if data.pop("inference_engine", None) is not None:
        fix = "register a model type, or use `type: python` with `path` and `function_name`"
        document.report("an inference_engine class cannot be used", ("inference_engine",), fix)
    for key, target in LIFTED.items():
        _refuse_second(document, key, target)
    workflow = data.pop("workflow", None)
    if isinstance(workflow, dict):
        for name in workflow:
            fix = nearest(name, ["mode", "max_workers", "batch_size"])
            document.report(f"unknown key {name!r}", ("workflow", name), fix)
    elif workflow is not None:
        document.report("workflow must be a mapping", ("workflow",))
    names = {*Config.__struct_fields__, *(key[0] for key in [*LIFTED, *WITHOUT_EFFECT])} - {
        *NOT_WRITTEN
    }
    for name in [name for name in data if name not in names]:
        del data[name]
        document.report(f"unknown key {name!r}", (name,), nearest(name, names))


def _refuse_second(document: Document, key: tuple[str, ...], target: str) -> None:
    holder = document.data if len(key) == 1 else document.data.get(key[0])
    if isinstance(holder, dict) and holder.pop(key[-1], None) is not None:
        document.report(
            f"{target} is given twice", key, f"the other place is {document.place((target,))}"
        )
