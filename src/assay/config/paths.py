"""Paths made absolute: what is read counts from the config's folder, what is written from the current one.

A relative path of a config file may not leave its folder: a config from elsewhere must not read files of the
machine by accident. Flags and variables are the user's own words and count from the current folder.
"""

import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.config.source import Document, Key, similar_files

_TEMPLATE_SUFFIXES = (".txt", ".md", ".j2", ".jinja", ".jinja2", ".prompt", ".yaml", ".yml", ".json")
_FILE_TYPES = ("jsonl", "json", "csv", "tsv", "parquet", "function")


def resolve_paths(document: Document, *, files_needed: bool) -> None:
    """Make every path but those of prompts absolute, and report files that are not there."""
    data = document.data
    for name in ("evaluation_methods", "metrics", "tasks", "models"):
        for n, entry in mappings(data.get(name)):
            holder = entry.get("params") if name == "models" else entry
            key: Key = (name, n, "params", "path") if name == "models" else (name, n, "path")
            kind = entry.get("type")
            if isinstance(holder, dict) and isinstance(holder.get("path"), str) and holder["path"]:
                if name == "models" and kind == "record":  # it is written
                    holder["path"] = os.path.abspath(os.path.expanduser(holder["path"]))
                else:
                    holder["path"] = existing(holder["path"], key, document)
            inner = holder.get("of") if name == "models" and isinstance(holder, dict) else None
            if isinstance(inner, dict) and isinstance(inner.get("path"), str) and inner["path"]:
                inner["path"] = existing(inner["path"], (name, n, "params", "of", "path"), document)
            if name == "models" and isinstance(kind, str) and ".py:" in kind:
                path, _, function = kind.rpartition(":")
                entry["type"] = f"{existing(path, (name, n, 'type'), document)}:{function}"
    for n, entry in mappings(data.get("tasks")):
        if isinstance(entry.get("graph"), str) and entry["graph"]:
            entry["graph"] = existing(entry["graph"], ("tasks", n, "graph"), document)
    for n, entry in mappings(data.get("evaluation_methods")):
        if isinstance(entry.get("params"), dict):
            _resolve_method(str(entry.get("type")), entry["params"], ("evaluation_methods", n, "params"), document)
    if isinstance(data.get("dataset"), dict):
        resolve_dataset(data["dataset"], document, files_needed)
    gates = [gate for _, gate in mappings(data.get("gates"))]
    outputs = [(output, "path") for _, output in mappings(data.get("outputs"))]
    others = [*outputs, *((gate, "baseline") for gate in gates), *((gate.get("calibration"), "path") for gate in gates)]
    for holder, name in ((data, "output_dir"), (data.get("logging"), "file"), *others):
        if isinstance(holder, dict) and isinstance(holder.get(name), str) and holder[name]:
            holder[name] = os.path.abspath(os.path.expanduser(holder[name]))


def _resolve_method(kind: str, params: dict[str, Any], key: Key, document: Document) -> None:
    """The files that a judge or a decider of matches is made from."""
    given = {name: value for name, value in params.items() if isinstance(value, str)}
    prompt = given.get("prompt", "") if "judge" in kind or kind == "pairwise" else ""
    if is_template_file(prompt, (*key, "prompt"), document):
        params["prompt"] = existing(prompt, (*key, "prompt"), document)
    if kind == "pairwise" and ".py:" in given.get("decide", ""):
        path, _, function = given["decide"].rpartition(":")
        params["decide"] = f"{existing(path, (*key, 'decide'), document)}:{function}"
    if kind == "pairwise" and given.get("decide") == "people" and given.get("labels"):
        params["labels"] = existing(given["labels"], (*key, "labels"), document)


def is_template_file(text: str, key: Key, document: Document) -> bool:
    """Whether a prompt's text is a file: one that exists, or one that can only be meant as a path."""
    if not text or len(text) > 1000 or "\n" in text or "\0" in text or "{{" in text:
        return False
    if text.lower().endswith(_TEMPLATE_SUFFIXES) and not any(map(str.isspace, text)):
        return True
    return os.path.isfile(os.path.join(_base(key, document), os.path.expanduser(text)))


def absolute(text: str, key: Key, document: Document) -> str:
    path = os.path.expanduser(text)
    if os.path.isabs(path):
        return os.path.normpath(path)
    escapes = os.path.normpath(path).split(os.sep)[0] == os.pardir
    if escapes and document.file is not None and not document.setter(key):
        document.report(f"{text!r} leaves the config's folder", key, "move the file there, or write its absolute path")
    return os.path.abspath(os.path.join(_base(key, document), path))


def _base(key: Key, document: Document) -> Path:
    return Path.cwd() if document.setter(key) else document.base


def existing(text: str, key: Key, document: Document) -> str:
    """The absolute path of a file that must be there."""
    known = len(document.problems)
    path = absolute(text, key, document)
    if len(document.problems) == known and ("\0" in path or not os.path.exists(path)):
        _report_missing(text, path, key, document)
    return path


def _report_missing(text: str, path: str, key: Key, document: Document) -> None:
    document.report(f"there is no file {text!r}", key, similar_files(Path(path.replace("\0", ""))))


def resolve_dataset(dataset: dict[str, Any], document: Document, files_needed: bool, at: Key = ("dataset",)) -> None:
    """Make the paths of a dataset absolute; `at` is where it stands."""
    repository = dataset.get("repository")
    if isinstance(repository, str) and repository:
        dataset["repository"] = absolute(repository, (*at, "repository"), document)
    written = dataset.get("path")
    if isinstance(written, list):
        entries = [(path, (*at, "path", n)) for n, path in enumerate(written)]
        dataset["path"] = [_dataset_path(path, key, dataset, document, files_needed) for path, key in entries]
    else:
        dataset["path"] = _dataset_path(written, (*at, "path"), dataset, document, files_needed)


def _dataset_path(written: Any, key: Key, dataset: dict[str, Any], document: Document, files_needed: bool) -> Any:
    """The file made absolute. What plug-ins of other types call a path may be something else: it stays."""
    if not isinstance(written, str) or not written:
        return written
    known = len(document.problems)
    path = absolute(written, key, document)
    exists = "\0" not in path and os.path.exists(path)
    is_file = dataset.get("type") in (*_FILE_TYPES, "")
    if not is_file or exists or not files_needed or len(document.problems) > known:
        return path if exists or is_file else written
    if not glob.has_magic(path):
        _report_missing(written, path, key, document)
    elif next(glob.iglob(path, recursive=True), None) is None:
        document.report(f"no file matches {written!r}", key, "correct the pattern, or remove it")
    return path


def mappings(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The mappings among the entries of a list, with their numbers."""
    entries: list[Any] = value if isinstance(value, list) else []
    for n, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield n, entry
