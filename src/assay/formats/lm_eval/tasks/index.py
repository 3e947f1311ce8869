"""All tasks, groups and tags of the task folders, by name.

Reading 14,000 YAML files takes seconds: a folder's index is kept, and is good while the folder is as it was. Nothing
but msgspec is imported to read it.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from assay.formats.lm_eval.facade.sources import installed_tasks, missing
from assay.sdk import JsonObject, UserError, write_file
from assay.store.files import state_folder

Kind = Literal["task", "group", "tag", "class"]
Progress = Callable[[int, int], None]
_IGNORED = ("__pycache__", ".ipynb_checkpoints")
_FORMAT = 3  # of the file; a change makes every index anew


class IndexEntry(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """A name. `members`: a tag's tasks in order, or what a group lists; `refusal`: why it cannot run anywhere;
    `packages`: those that its hooks import besides Python's and Assay's own; `hub_metrics`: metrics whose code the
    hooks take from the hub."""

    name: str
    kind: Kind
    file: str = ""
    members: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    output_type: str = ""
    dataset_path: str = ""
    dataset_name: str = ""
    num_fewshot: int | None = None
    refusal: str = ""
    packages: tuple[str, ...] = ()
    hub_metrics: tuple[str, ...] = ()
    is_unsafe: bool = False

    @property
    def unsupported(self) -> str:
        """Return why it cannot run on this machine; "" if it can."""
        hub = f"needs code of the hub: {', '.join(self.hub_metrics)}" if self.hub_metrics else ""
        return self.refusal or hub or (missing(self.packages) if self.packages else "")


class BrokenFile(msgspec.Struct, array_like=True):
    """A file that is not a task, with the reason."""

    file: str
    problem: str
    where: str = ""


class TaskIndex(msgspec.Struct, array_like=True):
    entries: dict[str, IndexEntry] = {}
    broken: list[BrokenFile] = []


class _StoredIndex(msgspec.Struct, array_like=True):
    stamp: str
    outside: dict[str, str]  # included files that are not in the folder, with their stamps
    entries: list[IndexEntry]
    broken: list[BrokenFile]


def roots(include_path: Sequence[str | Path] = ()) -> list[Path]:
    """Return folders of tasks, the last of which has the last word: an installed lm-eval's, those of ASSAY_TASKS, then
    those that are asked for."""
    folders = [
        installed_tasks(),
        *filter(None, os.environ.get("ASSAY_TASKS", "").split(os.pathsep)),
        *include_path,
    ]
    paths = [Path(folder).expanduser().resolve() for folder in folders if folder]
    for path in paths:
        if not path.is_dir():
            raise UserError(
                f"the folder of tasks {path} is not there",
                fix="check --include-path and ASSAY_TASKS",
            )
    return list(dict.fromkeys(reversed(paths)))[::-1]


def index(include_path: Sequence[str | Path] = (), progress: Progress | None = None) -> TaskIndex:
    """Return every name of the folders; one of a later folder replaces that of an earlier one."""
    whole = TaskIndex(entries={}, broken=[])
    for root in roots(include_path):
        kept = _stored_index(root) or _make(root, progress)
        whole.entries.update((entry.name, entry) for entry in kept.entries)
        whole.broken += kept.broken
    return whole


def _place(root: Path) -> Path:
    name = hashlib.blake2b(str(root).encode(), digest_size=8).hexdigest()
    return state_folder() / "benchmarks" / f"{name}.msgpack"


def _stored_index(root: Path) -> _StoredIndex | None:
    try:
        kept = msgspec.msgpack.decode(_place(root).read_bytes(), type=_StoredIndex)
    except (OSError, msgspec.MsgspecError):
        return None
    is_current = kept.stamp == _stamp(root) and all(
        _state(file) == state for file, state in kept.outside.items()
    )
    return kept if is_current else None


def _stamp(root: Path) -> str:
    """Return what a folder is: an installed package's version; for other folders the names, sizes and times of all files."""
    package = root.parent
    installed = [name.name for name in package.parent.glob(f"{package.name}-*.dist-info")]
    if package.name == "lm_eval" and installed:
        return f"{_FORMAT} {sorted(installed)} {_state(package)}"
    state = hashlib.blake2b(digest_size=16)
    for path in sorted(_files(str(root))):
        state.update(f"{path} {_state(path)}\n".encode())
    return f"{_FORMAT} {state.hexdigest()}"


def _state(file: str | Path) -> str:
    try:
        state = os.stat(file)
    except OSError:
        return ""
    return f"{state.st_size} {state.st_mtime_ns}"


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _IGNORED:
                    yield from _files(entry.path)
            else:
                yield entry.path


def _make(root: Path, progress: Progress | None) -> _StoredIndex:
    from assay.formats.lm_eval.tasks.task_keys import load

    stamp = _stamp(root)
    files = sorted(path for path in _files(str(root)) if path.endswith(".yaml"))
    parsed: dict[Path, JsonObject] = {}
    entries: dict[str, IndexEntry] = {}
    broken: list[BrokenFile] = []
    for number, file in enumerate(files):
        if progress and number % 100 == 0:
            progress(number, len(files))
        try:
            _add(entries, load(Path(file), parsed), file)
        except UserError as error:
            broken.append(BrokenFile(file, error.what, error.where))
        except OSError as error:
            broken.append(BrokenFile(file, str(error)))
    if progress:
        progress(len(files), len(files))
    outside = {str(file): _state(file) for file in parsed if not file.is_relative_to(root)}
    made = _StoredIndex(stamp, outside, list(entries.values()), broken)
    place = _place(root)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_file(place, msgspec.msgpack.encode(made))
    except OSError:  # a machine without a writable home makes its index each time
        pass
    return made


def _add(entries: dict[str, IndexEntry], keys: JsonObject, file: str) -> None:
    entry = entry_of(keys, file)
    if entry is None or entry.name in entries:  # the first file of a folder has the name
        return
    entries[entry.name] = entry
    for tag in entry.tags if entry.kind != "group" else ():
        of_tag = entries.setdefault(tag, IndexEntry(tag, "tag"))
        of_tag.members = tuple(sorted({*of_tag.members, entry.name}))


def entry_of(keys: JsonObject, file: str) -> IndexEntry | None:
    """Return what the keys of a file define; None for a fragment."""
    kind: Kind = "class" if "class" in keys else "task"
    if "group" in keys and kind == "task":
        kind = "group"
    name = keys.get("group" if kind == "group" else "task")
    if name is None:
        return None
    if not isinstance(name, str):
        raise UserError(f"the name of the {kind} is not a text: {name!r}", where=file)
    entry = IndexEntry(name, kind, file, tags=tuple(map(str, _several(keys.get("tag") or []))))
    if kind == "group":
        members = keys.get("task")
        entry.members = _member_names(_several(members)) if isinstance(members, list) else ()
    else:
        _describe(entry, keys)
    return entry


def _several(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _describe(entry: IndexEntry, keys: JsonObject) -> None:
    """Say what a task asks, and what it needs."""
    from assay.formats.lm_eval.tasks.task_keys import packages, refusal

    shots = keys.get("num_fewshot")
    entry.output_type = str(keys.get("output_type") or "generate_until")
    entry.dataset_path = str(keys.get("dataset_path") or "")
    entry.dataset_name = str(keys.get("dataset_name") or "")
    entry.num_fewshot = shots if isinstance(shots, int) else None
    entry.refusal = refusal(keys) or failing(entry.file)
    entry.packages, entry.hub_metrics = packages(keys)
    entry.is_unsafe = keys.get("unsafe_code", False) is not False


def _member_names(members: list[Any]) -> tuple[str, ...]:
    names = [
        part.get("group", part.get("task")) if isinstance(part, dict) else part for part in members
    ]
    return tuple(str(name) for name in names if name is not None)


_TASKS = "/lm_eval/tasks/"
_TOO = "lm-eval 0.4.13 fails, too: "
_FAILING = {  # by the file's path in the folder of tasks
    "afrobench/mafand/prompt_2/*": f"{_TOO}doc_to_text gives a tuple",
    "afrobench/mafand/prompt_3/african-english/*": f"{_TOO}doc_to_text gives a tuple",
    "afrobench/masakhapos/*": f"{_TOO}the aggregation of acc needs lists, and of several references it gets a number",
    "darija_bench/darija_summarization/*": f"{_TOO}a metric has no aggregation",
    "libra/*": "its aggregation gives a dictionary, not a number",
    "lingoly/*": f"{_TOO}a metric calls exact_match without predictions",
}


def failing(file: str) -> str:
    """Return why the task of this file cannot run; "" if nothing is known, and for tasks of other folders."""
    _, _, inside = Path(file).as_posix().rpartition(_TASKS)
    return next(
        (reason for pattern, reason in _FAILING.items() if fnmatchcase(inside, pattern)), ""
    )
