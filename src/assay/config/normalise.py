"""Short forms written out. Nothing is judged: what has no long form stays as it is, for the checks to report.

Normalising twice changes nothing more, so overrides can be applied to long forms and be short themselves.
"""

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import assay.registry as registry
from assay.config.benchmarks import long_benchmark
from assay.config.environment import variable_text
from assay.config.models import long_model
from assay.config.paths import is_template_file
from assay.config.prompts import long_few_shot
from assay.config.source import Document, Key
from assay.config.types import MethodConfig, MetricConfig, PromptConfig
from assay.records import JsonMapping, JsonObject

LIFTED: dict[tuple[str, ...], str] = {
    ("workflow", "mode"): "mode",
    ("workflow", "max_workers"): "max_concurrency",
    ("max_workers",): "max_concurrency",
    ("sample_params", "num_samples"): "num_samples",
    ("prompt_template",): "prompts",
    ("eval_prompt_template",): "prompts",
    ("prompt_templates",): "prompts",
}
WITHOUT_EFFECT: set[tuple[str, ...]] = {
    ("batch_size",),
    ("workflow", "batch_size"),
    ("save_intermediate",),
    ("resume_from",),
}
_SUFFIXES = {"ndjson": "jsonl", "py": "function"}
_PACKED = (".gz", ".zst")
_METHOD_KEYS = {*MethodConfig.__struct_fields__}
_METRIC_KEYS = {*MetricConfig.__struct_fields__}
_PROMPT_KEYS = {*PromptConfig.__struct_fields__}


def normalise(document: Document) -> None:
    data = document.data
    _lift(document)
    for name, long in _LONG.items():
        _entries(document, name, long)
    if "prompts" in data:
        data["prompts"] = _prompts(data["prompts"], document)
    if data.get("dataset") is not None:
        data["dataset"] = _dataset(data["dataset"])
    if data.get("logging") is not None:
        data["logging"] = _logging(data["logging"])
    if isinstance(data.get("on"), str):
        data["on"] = {data["on"]: {}}
    if isinstance(data.get("on"), dict):
        data["on"] = {name: {} if engine is None else engine for name, engine in data["on"].items()}
    if isinstance(data.get("env_vars"), dict):
        data["env_vars"] = {name: variable_text(value) for name, value in data["env_vars"].items()}


def _logging(value: Any) -> Any:
    match {"level": value} if isinstance(value, str) else value:
        case {"level": str(level), **others}:
            return {**others, "level": level.upper()}
        case other:
            return other


def _lift(document: Document) -> None:
    data = document.data
    for key in [*LIFTED, *WITHOUT_EFFECT]:
        holder = data if len(key) == 1 else data.get(key[0])
        if not isinstance(holder, dict) or key[-1] not in holder:
            continue
        target = LIFTED.get(key)
        if target is None or holder[key[-1]] is None:
            del holder[key[-1]]
        elif data.get(target) is None:
            value = holder.pop(key[-1])
            if key in (("prompt_template",), ("eval_prompt_template",)):
                value = [{"messages": value} if isinstance(value, list) else value]
                document.note_origin((target, 0), key)
                document.note_origin((target, 0, "messages"), key)
            data[target] = value
            document.note_origin((target,), key)
    if data.get("workflow") == {}:
        del data["workflow"]


def _entries(document: Document, name: str, long: Callable[[Any, Key, Document], Any]) -> None:
    """A list of entries; a single one needs no list."""
    value = document.data.get(name)
    if isinstance(value, str | dict):
        document.note_origin((name, 0), (name,))
        value = [value]
    if isinstance(value, list):
        document.data[name] = [long(entry, (name, n), document) for n, entry in enumerate(value)]


def _method(entry: Any, key: Key, document: Document, fields: set[str] = _METHOD_KEYS) -> Any:
    """`name`, `{name: params}` or the keys themselves, with a plug-in's name or `custom` as the type."""
    if isinstance(entry, str):
        entry = {"name": entry}
    if not isinstance(entry, dict):
        return entry
    method = dict(entry)
    if len(method) == 1 and not method.keys() & fields:
        ((name, params),) = method.items()
        if isinstance(params, dict | None):
            method = {"name": name, "params": params or {}}
            document.note_origin((*key, "params"), (*key, name))
    name, kind = method.get("name"), method.get("type") or "built_in"
    source = kind if kind != "built_in" else name
    if isinstance(source, str) and ".py:" in source:
        path, _, function = source.rpartition(":")
        method = {**method, "type": "custom", "path": path, "function_name": function}
        document.note_origin((*key, "path"), (*key, "type" if source is kind else "name"))
        name = function if source is name else name
    elif kind == "built_in":
        method["type"] = "custom" if method.get("path") or method.get("module") else name
    if method.get("type") == "custom":
        function = method.get("function_name") or name
        method.update(name=name or function, function_name=function)
    else:
        method["name"] = name or method.get("type")
    return {field: value for field, value in method.items() if value is not None}


def _metric(entry: Any, key: Key, document: Document) -> Any:
    metric = _method(entry, key, document, _METRIC_KEYS)
    if not isinstance(metric, dict):
        return metric
    pass_at = re.fullmatch(r"pass@(\d+)", str(metric.get("name")))
    if pass_at and metric.get("type") in (metric["name"], "pass_at_k"):
        metric["type"] = "pass_at_k"
        if isinstance(metric.setdefault("params", {}), dict):
            metric["params"].setdefault("k", int(pass_at[1]))
    if isinstance(metric.get("facets"), str):
        metric["facets"] = [metric["facets"]]
    labels = metric.get("labels")
    if isinstance(labels, str | list):
        metric["labels"] = {"include": [labels] if isinstance(labels, str) else labels}
    return metric


def _task(entry: Any, key: Key, document: Document) -> Any:
    if isinstance(entry, str):
        entry = {"function": entry}
    if not isinstance(entry, dict):
        return entry
    task = dict(entry)
    function = task.get("function")
    if isinstance(function, str) and ".py:" in function:
        del task["function"]
        task["path"], _, task["function_name"] = function.rpartition(":")
        document.note_origin((*key, "path"), (*key, "function"))
    name = task.get("function_name") or task.get("function")
    if not task.get("name") and isinstance(name, str):
        task["name"] = name.rpartition(".")[2]
    if not task.get("name") and isinstance(task.get("graph"), str):
        task["name"] = PurePath(task["graph"].removesuffix("/graph_config.yaml")).name
    return task


def _output(entry: Any, key: Key, document: Document) -> Any:
    """`type`, `{type: params}` or the keys themselves."""
    if isinstance(entry, str):
        return {"type": entry}
    if isinstance(entry, dict) and len(entry) == 1 and "type" not in entry:
        ((name, params),) = entry.items()
        document.note_origin((*key, "params"), (*key, name))
        return {"type": name, "params": params or {}}
    return entry


_LONG: dict[str, Callable[[Any, Key, Document], Any]] = {
    "models": long_model,
    "evaluation_methods": _method,
    "metrics": _metric,
    "tasks": _task,
    "outputs": _output,
    "benchmarks": long_benchmark,
}


def _prompts(value: Any, document: Document) -> Any:
    """A list, a named map, or a single prompt without a list."""
    if isinstance(value, dict) and value.keys() - _PROMPT_KEYS:
        named = list(value.items())
        for n, (name, _) in enumerate(named):
            document.note_origin(("prompts", n), ("prompts", name))
        return [
            _prompt(entry, ("prompts", n), document, name) for n, (name, entry) in enumerate(named)
        ]
    if isinstance(value, str | dict) or _are_messages(value):
        value = [{"messages": value} if isinstance(value, list) else value]
        document.note_origin(("prompts", 0), ("prompts",))
        document.note_origin(("prompts", 0, "messages"), ("prompts",))
    if not isinstance(value, list):
        return value
    return [_prompt(entry, ("prompts", n), document) for n, entry in enumerate(value)]


def _prompt(entry: Any, key: Key, document: Document, name: str = "") -> Any:
    if isinstance(entry, str):
        entry = {"path": entry} if is_template_file(entry, key, document) else {"text": entry}
    elif _are_messages(entry):
        entry = {"messages": entry}
        document.note_origin((*key, "messages"), key)
    if isinstance(entry, dict) and entry.get("few_shot") is not None:
        few_shot = long_few_shot(entry["few_shot"], _dataset)
        entry = {**entry, "few_shot": few_shot}
    return {"name": name, **entry} if name and isinstance(entry, dict) else entry


def _are_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(turn, dict) and "role" in turn for turn in value)
    )


def _dataset(value: Any) -> Any:
    if isinstance(value, str):
        value = _dataset_text(value)
    if not isinstance(value, dict):
        return value
    dataset = dict(value)
    path = dataset.get("path")
    if isinstance(path, str) and ".py:" in path:
        dataset["path"], _, dataset["function_name"] = path.rpartition(":")
    if dataset.get("type") == "custom":
        dataset["type"] = "function"
    elif dataset.get("type") in (None, "", "built_in", "file"):
        dataset["type"] = _dataset_type(dataset)
    if isinstance(dataset.get("split"), str):
        dataset["split"] = {"name": dataset["split"]}
    split = dataset.get("split")
    if isinstance(split, dict) and isinstance(split.get("ratio"), int | float):
        dataset["split"] = {
            **split,
            "ratio": {"train": split["ratio"], "test": round(1 - split["ratio"], 12)},
        }
    return dataset


def _dataset_text(text: str) -> JsonObject:
    """`stored:name` and `hf:name`, or a path."""
    type, colon, name = text.partition(":")
    return {"type": type, "name": name} if colon and type in ("stored", "hf") else {"path": text}


def _dataset_type(dataset: JsonMapping) -> str:
    """From the suffixes; files of several types have none in common."""
    if dataset.get("module") or dataset.get("function_name"):
        return "function"
    paths = dataset.get("path") or ""
    suffixes = {_suffix(str(path)) for path in (paths if isinstance(paths, list) else [paths])}
    name = suffixes.pop() if len(suffixes) == 1 else ""
    return name if name in registry.dataset.names() else ""


def _suffix(path: str) -> str:
    lower = path.lower()
    for packed in _PACKED:
        lower = lower.removesuffix(packed)
    suffix = lower.rpartition(".")[2]
    return _SUFFIXES.get(suffix, suffix)
