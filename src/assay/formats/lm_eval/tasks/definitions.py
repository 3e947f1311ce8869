"""Names of tasks, tags and groups, patterns and paths → what they stand for."""

import difflib
import glob
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from assay.formats.lm_eval.tasks.definition import Definition, TaskMember, leaves
from assay.formats.lm_eval.tasks.index import IndexEntry, Progress, TaskIndex, entry_of, index
from assay.formats.lm_eval.tasks.task_keys import definition, load, with_includes
from assay.sdk import JsonObject, UserError, as_object, list_of

_GROUP_KEYS = {"group", "group_alias", "task", "aggregate_metric_list", "metadata"}


def members(
    names: Sequence[str],
    *,
    include_path: Sequence[str | Path] = (),
    overrides: JsonObject | None = None,
    progress: Progress | None = None,
) -> list[TaskMember]:
    """Return what the names stand for, in their order. A tag stands for its tasks, a pattern for all names that match it.

    `overrides` are keys of the task that replace those of its YAML; `generation_kwargs` and `metadata` are updated, and
    `num_fewshot` leaves a task alone that says 0. They are in `changes` of every definition.
    """
    whole = index(include_path, progress)
    build = _Build(whole, overrides or {})
    items: dict[str, TaskMember] = {}
    for entry in _entries(
        [part.strip() for name in names for part in name.split(",") if part.strip()], whole
    ):
        for member in build.entry(entry, {}):
            items.setdefault(member.name, member)
    _check_shared(list(items.values()))
    return list(items.values())


def definitions(items: Sequence[TaskMember]) -> list[Definition]:
    """Return the tasks of members, each once, in order."""
    found = [leaf.definition for item in items for leaf in leaves(item)]
    return list({task.task: task for task in found if task is not None}.values())


def _entries(names: Sequence[str], whole: TaskIndex) -> Iterator[IndexEntry]:
    for name in dict.fromkeys(names):
        path = Path(name).expanduser()
        if name.endswith(".yaml"):
            files = sorted(glob.glob(str(path)))
            if not files:
                raise UserError(f"there is no file {name}")
        elif matches := _matches(name, whole):
            yield from matches
            continue
        elif path.is_dir():
            files = sorted(path.glob("*.yaml"))
            if not files:
                fix = "name a task, or a folder of YAML files"
                raise UserError(f"the folder {name} has no .yaml file", fix=fix)
        else:
            raise _unknown(name, whole)
        yield from (_of_file(Path(file)) for file in files)


def _matches(name: str, whole: TaskIndex) -> list[IndexEntry]:
    if name in whole.entries:
        return [whole.entries[name]]
    if not set(name) & set("*?["):
        return []
    return [whole.entries[match] for match in sorted(whole.entries) if fnmatchcase(match, name)]


def _unknown(name: str, whole: TaskIndex) -> UserError:
    broken = next((file for file in whole.broken if Path(file.file).stem == name), None)
    if broken:
        return UserError(
            f"the task {name!r} cannot be read: {broken.problem}", where=broken.where or broken.file
        )
    if not whole.entries:
        fix = "pip install lm-eval, or name a folder of tasks (--include-path, ASSAY_TASKS)"
        return UserError(f"there is no benchmark {name!r}: no tasks are installed", fix=fix)
    close = difflib.get_close_matches(name, whole.entries, n=3, cutoff=0.6)
    fix = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else "assay list benchmarks shows all names"
    )
    return UserError(f"there is no benchmark {name!r}", fix=fix)


def _of_file(file: Path) -> IndexEntry:
    entry = entry_of(load(file), str(file.resolve()))
    if entry is None:
        raise UserError(
            "the file names no task and no group", where=str(file), fix="add the key `task`"
        )
    return entry


def _check_shared(items: Sequence[TaskMember]) -> None:
    owner: dict[str, str] = {}
    for item in items:
        for task in definitions([item]):
            if owner.setdefault(task.task, item.name) != item.name:
                what = f"the task {task.task!r} is in both {owner[task.task]!r} and {item.name!r}"
                raise UserError(what, fix="name only one of them")


class _Build:
    """Members of one request; each YAML file is read once."""

    def __init__(self, whole: TaskIndex, overrides: JsonObject) -> None:
        self.whole = whole
        self.overrides = overrides
        self.parsed: dict[Path, JsonObject] = {}
        self.open: list[str] = []  # groups that are being built, the outermost first

    def entry(self, entry: IndexEntry, outer: JsonObject) -> list[TaskMember]:
        """`outer`: keys that a group sets for its tasks."""
        if entry.kind == "tag":
            tasks = [self.whole.entries.get(name) for name in entry.members]
            return [member for task in tasks if task for member in self.entry(task, outer)]
        keys = load(Path(entry.file), self.parsed)
        if entry.kind == "group":
            return [self.group(entry.name, keys, outer, entry.file)]
        return [self.task({**keys, **outer}, entry.file)]

    def task(self, keys: JsonObject, file: str) -> TaskMember:
        task = definition(keys, file, self.overrides)
        version = task.metadata.get("version")
        return TaskMember(name=task.task, alias=task.task_alias, definition=task, version=version)

    def group(self, name: str, keys: JsonObject, outer: JsonObject, file: str) -> TaskMember:
        if name in self.open:
            raise UserError(
                f"the group {name!r} is a member of itself: {' › '.join([*self.open, name])}",
                where=file,
            )
        own = {key: value for key, value in keys.items() if key not in {*_GROUP_KEYS, "tag"}}
        aggregate = keys.get("aggregate_metric_list") or []
        self.open.append(name)
        children: dict[str, TaskMember] = {}
        for item in list_of(keys.get("task")):
            inner = self.member(item, name, {**own, **outer}, file)
            children |= {child.name: child for child in inner}
        self.open.pop()
        return TaskMember(
            name=name,
            alias=keys.get("group_alias"),
            members=list(children.values()),
            aggregate=[aggregate] if isinstance(aggregate, dict) else aggregate,
            version=as_object(keys.get("metadata")).get("version"),
        )

    def member(self, item: Any, group: str, outer: JsonObject, file: str) -> list[TaskMember]:
        """Return what a line of a group's list stands for: a name, a name with keys, or a group or task that is written
        there."""
        keys = as_object(item) if isinstance(item, dict) else {"task": item}
        is_group = "group" in keys
        name = keys["group"] if is_group else keys.get("task")
        if not isinstance(name, str):
            what = f"a member of the group {group!r} has neither `task` nor `group`"
            raise UserError(what, where=file)
        entry = self.whole.entries.get(name)
        if entry is not None:
            left_out = _GROUP_KEYS if is_group or entry.kind == "group" else {"group", "task"}
            own = {key: value for key, value in keys.items() if key not in left_out}
            return self.entry(entry, {**outer, **own})
        if is_group:
            return [self.group(f"{group}::{name}", keys, outer, file)]
        if len(keys) == 1:
            unknown = _unknown(name, self.whole)
            what = f"a member of the group {group!r}: {unknown.what}"
            raise UserError(what, where=file, fix=unknown.fix)
        keys = with_includes(keys, Path(file), self.parsed)
        return [self.task({**outer, **keys, "task": f"{group}::{name}"}, "")]
