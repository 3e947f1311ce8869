"""The keys of one task → its `Definition`, with the harness's defaults."""

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast, get_args

import msgspec
import yaml

from assay.formats.lm_eval.facade import class_tasks
from assay.formats.lm_eval.facade.class_tasks import REFUSED, is_plain
from assay.formats.lm_eval.facade.importing import METRICS, NAMES
from assay.formats.lm_eval.facade.sources import ALWAYS, PACKAGE, reach, source
from assay.formats.lm_eval.tasks.definition import (
    Definition,
    FewShotKeys,
    Hook,
    OutputType,
    default_generation,
)
from assay.parameters import nearest
from assay.sdk import JsonObject, UserError

# files that were read already, so that many can include one
Parsed = MutableMapping[Path, JsonObject]
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):
    folder: str


def _hook(loader: _Loader, node: yaml.Node) -> Hook:
    return Hook(str(loader.construct_scalar(node)), loader.folder)


_Loader.add_constructor("!function", _hook)


def load(file: Path, parsed: Parsed | None = None, visited: set[Path] | None = None) -> JsonObject:
    """Return the file's keys over those of the files that it includes, in their order; nothing is merged more deeply.

    As in the harness a file may be included once only, even where two paths lead to it.
    """
    file = file.expanduser().resolve()
    parsed = {} if parsed is None else parsed
    visited = set() if visited is None else visited
    if file in visited:
        raise UserError(
            "a YAML file is included twice",
            where=str(file),
            fix="include each file on one path only",
        )
    visited.add(file)
    if file not in parsed:
        parsed[file] = _keys_in(file)
    return with_includes(parsed[file], file, parsed, visited)


def with_includes(
    keys: JsonObject, file: Path, parsed: Parsed, visited: set[Path] | None = None
) -> JsonObject:
    """Return keys that stand in `file`, over those of the files that they include."""
    keys = dict(keys)
    visited = {file} if visited is None else visited
    merged: JsonObject = {}
    for name in _several(keys.pop("include", [])):
        if not isinstance(name, str):
            raise UserError(f"include {name!r} is not the name of a file", where=str(file))
        try:
            merged |= load(file.parent / Path(name), parsed, visited)
        except OSError:
            raise UserError(f"it includes {name}, which cannot be read", where=str(file)) from None
        merged.pop("task_list", None)
    return merged | keys


def _several(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _keys_in(file: Path) -> JsonObject:
    loader = _Loader(file.read_bytes())
    loader.folder = str(file.parent)
    try:
        keys: Any = loader.get_single_data()
    except (yaml.YAMLError, ValueError, TypeError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise UserError(
            f"broken YAML: {problem}", where=f"{file}:{mark.line + 1}" if mark else str(file)
        ) from error
    finally:
        loader.dispose()
    if not isinstance(keys, dict):
        raise UserError("the file has no keys", where=str(file))
    return cast("JsonObject", keys)


def hooks_in(value: Any) -> Iterator[Hook]:
    """Yield every hook in a value of YAML."""
    if isinstance(value, Hook):
        yield value
    elif isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            yield from hooks_in(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from hooks_in(part)


def refusal(keys: JsonObject) -> str:
    """Return why a task of these keys cannot run on any machine; "" if it can."""
    for hook in hooks_in(dict(keys)):
        problem = source(hook.file).problem if hook.file else ""
        if problem:
            return f"broken Python: {problem}"
    kind = keys.get("class")
    if kind is not None and not (isinstance(kind, Hook) and is_plain(kind)):
        return REFUSED
    if keys.get("doc_to_image") is not None:
        return "its documents have images"
    if keys.get("doc_to_audio") is not None:
        return "its documents have audio"
    return ""


def packages(keys: JsonObject) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the packages that a task's hooks import besides Python's and Assay's own, and the metrics that they take from
    the hub and that are not computed here."""
    modules: set[str] = set()
    metrics: set[str] = set()
    for hook in hooks_in(dict(keys)):
        if hook.file is None:
            modules.add(hook.name.split(".")[0])
            continue
        part = reach(hook.file, hook.name.rpartition(".")[2])
        modules |= {name.split(".")[0] for name in part.modules if name not in NAMES}
        metrics |= part.loads - METRICS
    modules -= {PACKAGE, "", *ALWAYS, *sys.stdlib_module_names}
    return tuple(sorted(modules)), tuple(sorted(metrics))


_STRUCTURE = {"tag", "group", "task_list"}  # of the index, not of the task
# dictionaries in which an override replaces single values
_UPDATED = ("generation_kwargs", "metadata")
_OWN = {"file", "changes"}
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Definition)}
_FEW_SHOT = {name: name for name in FewShotKeys.__struct_fields__} | {"split": "fewshot_split"}
_NOT_INHERITED = {"sampler", "samples", "fewshot_indices"}


def definition(keys: JsonObject, file: str, overrides: JsonObject) -> Definition:
    """Return what the keys of a task define, with what a caller changes."""
    keys = {key: deepcopy(value) for key, value in keys.items() if key not in _STRUCTURE}
    where = f"{keys.get('task')} ({file})" if file else str(keys.get("task"))
    if "class" in keys:
        keys = _class_keys(keys, where)
    names = [name for name in Definition.__struct_fields__ if name not in _OWN]
    _check_names([*keys, *overrides], names, where)
    keys["metadata"] = _metadata(keys.get("metadata"), file)
    changes = _override(keys, overrides)
    task = _with_defaults(keys, where)
    for key in _UPDATED:
        _update(getattr(task, key), overrides.get(key), key, changes, where)
    task.file, task.changes = file, changes
    return task


def _override(keys: JsonObject, overrides: JsonObject) -> dict[str, tuple[Any, Any]]:
    """Put whole keys of a caller in place; return what they change."""
    changes: dict[str, tuple[Any, Any]] = {}
    for key, value in overrides.items():
        before = keys.get(key, _DEFAULTS.get(key))
        is_shots = key == "num_fewshot"
        if key in _UPDATED or (is_shots and before == 0):
            continue
        if value != (before or 0 if is_shots else before):
            changes[key] = (before, value)
        keys[key] = value
    return changes


def _class_keys(keys: JsonObject, where: str) -> JsonObject:
    """Return the keys of its class; of the YAML file the harness takes the name only."""
    if reason := refusal(keys):
        raise UserError(f"the task {keys.get('task')!r} cannot run: {reason}", where=where)
    return {
        "task": keys["task"],
        "task_alias": keys.get("task_alias"),
        **class_tasks.keys_of(keys["class"]),
    }


def _metadata(value: Any, file: str) -> JsonObject:
    kept = {**value} if isinstance(value, dict) else {"_metadata": value}
    return ({} if value is None else kept) | ({"config_source": file} if file else {})


def _update(
    target: Any, values: Any, key: str, changes: dict[str, tuple[Any, Any]], where: str
) -> None:
    if values is None or target is None:
        return
    if not isinstance(values, Mapping):
        raise UserError(f"{key} must have keys and values, not {values!r}", where=where)
    for name, value in cast("JsonObject", values).items():
        if name not in target or target[name] != value:
            changes[f"{key}.{name}"] = (target.get(name), value)
        target[name] = value


def _with_defaults(keys: JsonObject, where: str) -> Definition:
    few_shot = keys.pop("fewshot_config", None) or {}
    _check_shape(few_shot, dict, "fewshot_config", where)
    present: JsonObject = {name: value for name, value in keys.items() if value is not None}
    task = Definition(**present)
    task.unsafe_code = keys.get("unsafe_code", False) is not False
    _check(task, where)
    if task.generation_kwargs is not None:
        kwargs = task.generation_kwargs
        if "temperature" in kwargs:
            kwargs["temperature"] = _number(kwargs["temperature"], where)
        kwargs.setdefault("until", [task.fewshot_delimiter])
    elif task.output_type == "generate_until":
        task.generation_kwargs = default_generation(task.fewshot_delimiter)
    _check_names(few_shot, FewShotKeys.__struct_fields__, f"{where}: fewshot_config")
    inherited = {
        name: getattr(task, outer)
        for name, outer in _FEW_SHOT.items()
        if name not in _NOT_INHERITED
    }
    task.fewshot_config = FewShotKeys(**inherited | few_shot)
    return task


def _number(temperature: Any, where: str) -> float:
    try:
        return float(temperature)
    except (TypeError, ValueError):
        raise UserError(f"the temperature {temperature!r} is not a number", where=where) from None


def _check_names(names: Any, valid: Any, where: str) -> None:
    for name in names:
        if name not in valid:
            raise UserError(
                f"a task has no key {name!r}", where=where, fix=nearest(str(name), valid)
            )


def _check_shape(value: Any, kind: type, key: str, where: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise UserError(f"{key} must be {_KINDS[kind]}, not {value!r}", where=where)


def _check(task: Definition, where: str) -> None:
    if task.output_type not in get_args(OutputType):
        raise UserError(
            f"unknown output_type {task.output_type!r}",
            where=where,
            fix=nearest(task.output_type, get_args(OutputType)),
        )
    for key, kind in _SHAPES.items():
        _check_shape(getattr(task, key), kind, key, where)
    for key in ("metric_list", "filter_list"):
        for part in getattr(task, key) or []:
            _check_shape(part, dict, f"an entry of {key}", where)


_KINDS = {dict: "keys with values", list: "a list", int: "a whole number"}
_SHAPES: dict[str, type] = {
    "dataset_kwargs": dict,
    "filter_list": list,
    "generation_kwargs": dict,
    "metric_list": list,
    "num_fewshot": int,
    "repeats": int,
}
