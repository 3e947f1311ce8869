"""The tasks that a config's entries name: definitions with what is changed of them, and what they are then called."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import msgspec

from assay.formats.lm_eval.tasks.definition import Definition, Hook, TaskMember, leaves
from assay.formats.lm_eval.tasks.definitions import members
from assay.formats.lm_eval.tasks.index import index
from assay.sdk import JsonObject, UserError, digest

# of an entry: changes that no definition has
_OWN = ("limit", "samples", "system_instruction", "chat", "sound")
_NOT_KEYS = ("file", "changes", "metadata", "task_alias")
_OVERRIDES = ("num_fewshot", "generation_kwargs")


class ChosenTask(msgspec.Struct, kw_only=True, dict=True):
    """A task of an entry. `name` says what is not as the named task defines it."""

    definition: Definition
    entry: JsonObject
    name: str

    @cached_property
    def metadata(self) -> JsonObject:
        """Return what its items say of it: an answer is scored by the same definition, and again if that changes."""
        own = {
            "benchmark": self.name,
            "task": self.definition.task,
            "definition": identity(self.definition),
        }
        return {**own, "request": mark(self.entry)}


def chosen_tasks(entries: Sequence[JsonObject]) -> Iterator[ChosenTask]:
    """The tasks of all entries, in order."""
    for entry in entries:
        for member in requested_members(**_request(entry)):
            for leaf in leaves(member):
                assert leaf.definition is not None
                name = leaf.name + modification(leaf.definition.changes, entry)
                yield ChosenTask(definition=leaf.definition, entry=entry, name=name)


def _request(entry: JsonObject) -> JsonObject:
    overrides = {key: entry[key] for key in _OVERRIDES if entry.get(key) not in (None, {})}
    text = msgspec.json.encode(overrides, order="sorted").decode()
    return {
        "names": entry["task"],
        "include_path": entry.get("include_path") or "",
        "overrides": text,
    }


def request_of(text: str) -> JsonObject:
    """The arguments of `requested` that `mark` wrote."""
    return msgspec.json.decode(text)


def refuse(task: ChosenTask) -> None:
    """Raise what is known to be wrong with a task before anything is read."""
    definition = task.definition
    if definition.unsafe_code and not task.entry.get("unsafe_code"):
        what = f"{definition.task} runs code that the model writes"
        raise UserError(
            what, fix="if you agree to that, add --unsafe-code, or `unsafe_code: true` to its entry"
        )
    folders = [folder] if (folder := task.entry.get("include_path")) else []
    entry = index(folders).entries.get(definition.task)
    if entry is not None and (reason := entry.unsupported):
        raise UserError(f"{definition.task} cannot be run: {reason}")


def forget() -> None:
    """Read definitions again: files may have been edited since another config was loaded."""
    requested_members.cache_clear()
    task.cache_clear()


@cache
def requested_members(
    names: str, include_path: str = "", overrides: str = "{}"
) -> list[TaskMember]:
    """Return what one entry asks for; read once for a config."""
    folders = [include_path] if include_path else []
    return members(names.split(","), include_path=folders, overrides=msgspec.json.decode(overrides))


def task_folders(entries: Sequence[JsonObject]) -> list[str]:
    """Folders and files of tasks that entries name themselves: their hooks are code that the config vouches for."""
    given = [entry.get(name) for entry in entries for name in ("include_path", "task")]
    paths = dict.fromkeys(str(path) for path in given if path)
    return [path for path in paths if "/" in path or path.endswith(".yaml")]


@cache
def task(request: str, name: str, trusted: tuple[str, ...] = ()) -> Definition:
    """The definition that an item was made by: `request` is its entry as `mark` wrote it. Items may be a stranger's:
    folders of code must be among those that the config names."""
    asked = request_of(request)
    for path in task_folders([{"task": asked["names"], "include_path": asked["include_path"]}]):
        if path not in trusted:
            raise UserError(f"the item is of a task in {path}, which the config does not name")
    for member in requested_members(**asked):
        for leaf in leaves(member):
            if leaf.name == name and leaf.definition is not None:
                return leaf.definition
    raise UserError(
        f"there is no task {name!r} any more", fix="install the lm-eval that made the items"
    )


def identity(definition: Definition) -> str:
    """Return what a task's numbers depend on: its keys, and the code of its functions."""
    keys = {
        name: getattr(definition, name)
        for name in definition.__struct_fields__
        if name not in _NOT_KEYS
    }
    return digest("task", msgspec.json.encode(keys, enc_hook=_hook, order="sorted")).hex()


def _hook(value: Any) -> Any:
    return [value.name, value.identity] if isinstance(value, Hook) else repr(value)


def mark(entry: JsonObject) -> str:
    """Return what items keep of their entry, so that answers are scored by the same definition."""
    return msgspec.json.encode(_request(entry)).decode()


def modification(changes: Mapping[str, tuple[Any, Any]], entry: JsonObject) -> str:
    """` (modified: num_fewshot 5→0, limit 20)`, or nothing where all is as the task defines it."""
    parts = [f"{key} {_short(before)}→{_short(after)}" for key, (before, after) in changes.items()]
    parts += [f"{key} {_short(entry[key])}" for key in _OWN if entry.get(key)]
    if entry.get("seed", 1234) != 1234:
        parts.append(f"seed {entry['seed']}")
    return f" (modified: {', '.join(parts)})" if parts else ""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=repr).decode()
    return text if len(text) <= 40 else f"{text[:39]}…"
