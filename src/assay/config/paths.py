"""Paths made absolute: what is read counts from the config's folder, what is written from the current one.

Which values are paths, the marks on the config's types say. A config is the user's word, so its paths may point
anywhere; names that come from data stay in their folder. Flags and variables count from the current folder.
"""

import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Struct

from assay import reading
from assay.config.marks import ParamsMark, PathKind, PathMark
from assay.config.source import Document, Key, core_type, similar_files
from assay.config.types import Config, DatasetConfig
from assay.records import JsonMapping, JsonObject, list_of

_TEMPLATE_SUFFIXES = (
    ".txt",
    ".md",
    ".j2",
    ".jinja",
    ".jinja2",
    ".prompt",
    ".yaml",
    ".yml",
    ".json",
)
_PLACES = ("written", "placed", "data")  # what may be in a bucket
_FILE_TYPES = ("jsonl", "json", "csv", "tsv", "parquet", "function")


class NamedFile(NamedTuple):
    """Where a config's plain data names a file: the key, the mapping or list that holds the text,
    the mapping that the key is of, and how it is marked."""

    key: Key
    holder: Any
    entry: JsonObject
    kind: PathKind

    @property
    def text(self) -> str:
        return self.holder[self.key[-1]]

    def write_text(self, text: str) -> None:
        self.holder[self.key[-1]] = text


class _Place(NamedTuple):
    """Where a path is: its key, the mapping that it is of, and whether the files of datasets must exist."""

    key: Key
    entry: JsonObject
    document: Document
    files_needed: bool


def named_files(
    data: JsonObject, struct: type[Struct] = Config, at: Key = ()
) -> Iterator[NamedFile]:
    """Yield the texts of a config that its types mark as paths; `at` is where `data` is."""
    yield from _walk(_fields(struct), data, at)


def resolve_paths(document: Document, *, files_needed: bool) -> None:
    """Make every path but those of prompts, which are read, absolute, and report files that do not exist."""
    for named in named_files(document.data):
        if named.key[0] != "prompts":
            _resolve(named, document, files_needed)


def resolve_dataset(dataset: JsonObject, document: Document, files_needed: bool, at: Key) -> None:
    """Make the paths of a dataset absolute; `at` is where it is."""
    for named in named_files(dataset, DatasetConfig, at):
        _resolve(named, document, files_needed)


def _fields(struct: type[Struct]) -> JsonObject:
    return {field.name: field.type for field in msgspec.structs.fields(struct)}


def _walk(fields: JsonMapping, holder: JsonObject, at: Key) -> Iterator[NamedFile]:
    for name, hint in fields.items():
        value, key = holder.get(name), (*at, name)
        mark = _mark(hint)
        if isinstance(mark, PathMark):
            texts = enumerate(value) if isinstance(value, list) and mark.kind == "data" else ()
            yield from (
                NamedFile((*key, n), value, holder, mark.kind)
                for n, text in texts
                if _is_text(text)
            )
            if _is_text(value):
                yield NamedFile(key, holder, holder, mark.kind)
        elif isinstance(value, dict):
            yield from _walk(_inner(hint, mark, holder), value, key)
        elif get_origin(core := core_type(hint)) is list:
            for n, entry in mappings(value):
                yield from _walk(_inner(get_args(core)[0], None, entry), entry, (*key, n))


def _is_text(value: Any) -> bool:
    """Return whether this is a text that says something; wrong types are found later."""
    return isinstance(value, str) and value != ""


def _mark(hint: Any) -> PathMark | ParamsMark | None:
    marks = getattr(hint, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, PathMark | ParamsMark)), None)


def _inner(hint: Any, mark: ParamsMark | None, entry: JsonMapping) -> JsonMapping:
    """Return the fields of a mapping: those of its Struct, or those that its mark names."""
    if mark is not None:
        return mark.fields(entry)
    if isinstance(hint, dict):
        return hint
    core = core_type(hint)
    return _fields(core) if isinstance(core, type) and issubclass(core, Struct) else {}


def _resolve(named: NamedFile, document: Document, files_needed: bool) -> None:
    text = named.text
    if named.kind == "given" or (named.kind in _PLACES and reading.is_remote(text)):
        return
    at = _Place(named.key, named.entry, document, files_needed)
    named.write_text(_WAYS[named.kind](text.removeprefix("file://"), at))


def _output_path(text: str, at: _Place) -> str:
    if reading.is_foreign(text):
        at.document.report(
            f"nothing can be written to {text!r}", at.key, "give a folder, or s3://, gs:// or az://"
        )
    return os.path.abspath(os.path.expanduser(text))


def _code(text: str, at: _Place) -> str:
    if ".py:" not in text:
        return text
    path, _, function = text.rpartition(":")
    return f"{existing(path, at.key, at.document)}:{function}"


def _template(text: str, at: _Place) -> str:
    return (
        existing(text, at.key, at.document) if is_template_file(text, at.key, at.document) else text
    )


def _data(text: str, at: _Place) -> str:
    """The file made absolute. What plug-ins of other types call a path may be something else: it stays."""
    before = len(at.document.problems)
    path = absolute(text, at.key, at.document)
    exists = "\0" not in path and os.path.exists(path)
    is_file = at.entry.get("type") in (*_FILE_TYPES, "")
    if not is_file or exists or not at.files_needed or len(at.document.problems) > before:
        return path if exists or is_file else text
    if not glob.has_magic(path):
        _report_missing(text, path, at.key, at.document)
    elif next(glob.iglob(path, recursive=True), None) is None:
        at.document.report(f"no file matches {text!r}", at.key, "correct the pattern, or remove it")
    return path


_WAYS: dict[str, Callable[[str, _Place], str]] = {
    "read": lambda text, at: existing(text, at.key, at.document),
    "written": _output_path,
    "placed": lambda text, at: absolute(text, at.key, at.document),
    "code": _code,
    "template": _template,
    "data": _data,
}


def is_template_file(text: str, key: Key, document: Document) -> bool:
    """Return whether a prompt's text is a file: one that exists, or one that can only be meant as a
    path."""
    if not text or len(text) > 1000 or "\n" in text or "\0" in text or "{{" in text:
        return False
    if text.lower().endswith(_TEMPLATE_SUFFIXES) and not any(map(str.isspace, text)):
        return True
    return os.path.isfile(os.path.join(_base(key, document), os.path.expanduser(text)))


def absolute(text: str, key: Key, document: Document) -> str:
    path = os.path.expanduser(text)
    if os.path.isabs(path):
        return os.path.normpath(path)
    return os.path.abspath(os.path.join(_base(key, document), path))


def _base(key: Key, document: Document) -> Path:
    return Path.cwd() if document.setter(key) else document.base


def existing(text: str, key: Key, document: Document) -> str:
    """The absolute path of a file that must exist."""
    before = len(document.problems)
    path = absolute(text, key, document)
    if len(document.problems) == before and ("\0" in path or not os.path.exists(path)):
        _report_missing(text, path, key, document)
    return path


def _report_missing(text: str, path: str, key: Key, document: Document) -> None:
    document.report(f"there is no file {text!r}", key, similar_files(Path(path.replace("\0", ""))))


def mappings(value: Any) -> Iterator[tuple[int, JsonObject]]:
    """The mappings among the entries of a list, with their numbers."""
    entries = list_of(value)
    for n, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield n, entry
