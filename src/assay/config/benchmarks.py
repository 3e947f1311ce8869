"""`benchmarks:`: names of a collection's tasks, in place of a dataset, prompts, scorers and metrics."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec

import assay.registry as registry
from assay.config.source import Document, Key
from assay.config.types import Config
from assay.records import JsonObject

_NAMES = re.compile(r"[\w.*?:|+-]+(,[\w.*?:|+-]+)*")
_SUFFIXES = (".yaml", ".yml", ".json")
# what a benchmark brings itself; scorers and metrics may be added to
_MADE = ("dataset", "prompts")


def long_benchmark(entry: Any, key: Key, document: Document) -> Any:
    """`name` as a mapping."""
    if isinstance(entry, str):
        document.note_origin((*key, "task"), key)
        entry = {"task": entry}
    return entry


def expand_benchmarks(document: Document, *, needed: bool) -> None:
    """Write out what `benchmarks` stands for; a limit is one for each task. `needed`: they are about to run."""
    data = document.data
    entries = data.get("benchmarks")
    if not entries or not _are_mappings(entries):
        return
    for name in _MADE:
        if data.get(name) not in (None, [], [{}]):
            what = f"benchmarks bring their own {name}"
            document.report(what, (name,), f"remove `{name}` or `benchmarks`")
            return
    if (limit := data.pop("limit", None)) is not None:
        entries = data["benchmarks"] = [{"limit": limit, **entry} for entry in entries]
    collection = _collection()
    for number, entry in enumerate(entries):
        if _is_path(task := str(entry.get("task"))):
            entry["task"] = os.path.join(document.base, task)
        if needed and (problem := collection.problem(entry)):
            document.report(problem.what, ("benchmarks", number), problem.fix)
    for name, value in collection.config(entries).items():
        data[name] = value if name in _MADE else [*value, *(data.get(name) or [])]


def _are_mappings(entries: Any) -> bool:
    return isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)


def without_expansion(written: JsonObject) -> JsonObject:
    """A config as `expand_benchmarks` will read it again."""
    if entries := written.get("benchmarks"):
        for name, value in _collection().config(entries).items():
            written[name] = written[name][len(value) :] if isinstance(value, list) else None
    return written


def _collection() -> Any:
    return registry.benchmark.get(registry.benchmark.names()[0])()


def names_benchmarks(source: Any) -> bool:
    """Return whether `assay run SOURCE` means benchmarks and not a file."""
    text = str(source) if isinstance(source, str | Path) else ""
    is_file = text.lower().endswith(_SUFFIXES) or os.path.exists(text)
    return bool(_NAMES.fullmatch(text)) and not is_file


def read_benchmarks(names: str) -> Document:
    """The config that benchmarks are by their names alone."""
    entries = [{"task": name} for name in names.split(",")]
    return Document({"name": names, "benchmarks": entries}, shown=names)


def limit_changes(config: Config, limit: int) -> JsonObject:
    """Return what changes in a config whose tasks have this many documents each."""
    replace = msgspec.structs.replace
    dataset = config.dataset
    if dataset is not None:
        entries = [{**entry, "limit": limit} for entry in dataset.params["benchmarks"]]
        dataset = replace(dataset, params={"benchmarks": entries})
    benchmarks = [replace(entry, limit=limit) for entry in config.benchmarks]
    return {"dataset": dataset, "benchmarks": benchmarks}


def _is_path(task: str) -> bool:
    return task.endswith((".yaml", ".yml")) or "/" in task
