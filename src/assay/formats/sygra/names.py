"""Names: which folder with a `graph_config.yaml` a task's name means, the YAML in it, and the names of a run's files.

Task names count from the current folder, dotted or with slashes, with or without `tasks` before them. YAML is read by
the rules of version 1.1 (`yes` is true), because these files were written for such a reader. File names carry the time
at which the run began. A run that was killed continues under its first time, so it leaves one file; a command after a
finished run is a new run.
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import yaml

from assay import reading
from assay.config.source import why_too_much
from assay.config.yaml12 import check_nesting
from assay.sdk import JsonObject, UserError, nearest, write_file
from assay.store.stores import FlatStore

GRAPH_FILE = "graph_config.yaml"
_RECIPES = "sygra."


class TaskFolder(msgspec.Struct, frozen=True):
    """`name` is dotted and the same for every spelling; `base` is the folder that names and data paths count from."""

    name: str
    folder: Path
    base: Path

    @property
    def graph(self) -> Path:
        return self.folder / GRAPH_FILE


def find_task(name: str, base: Path) -> TaskFolder:
    """The task that a name means: `tasks.a.b`, `a.b`, `tasks/a/b`, `a/b`, or a path to the folder or its YAML."""
    written = name.strip().removesuffix(f"/{GRAPH_FILE}").rstrip("/")
    base = base.resolve()
    looked = _candidates(written, base) if written else []
    for folder in looked:
        if (folder / GRAPH_FILE).is_file():
            return TaskFolder(_dotted_name(folder, base), folder, base)
    tasks = [
        _dotted_name(path.parent, base)
        for path in sorted((base / "tasks").glob(f"**/{GRAPH_FILE}"))
    ]
    wanted = f"tasks.{_dotted_name(Path(written), base).removeprefix('tasks.')}"
    fix = nearest(wanted, tasks) or "run it from the folder that holds `tasks/`"
    if written.startswith(_RECIPES):
        fix = f"Assay brings no recipes: copy SyGra's folder {written.replace('.', '/')} to that place"
    raise UserError(
        f"there is no task {name!r}",
        where=", ".join(
            str(_relative_path(folder / GRAPH_FILE, base)) for folder in reversed(looked)
        ),
        fix=fix,
    )


def read_yaml(path: Path) -> JsonObject:
    """The mapping in a YAML file; an empty file is an empty one."""
    try:
        text = reading.text(path, "utf-8-sig")
        check_nesting(text)
        content = yaml.load(text, Loader=yaml.CSafeLoader)
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}", where=str(path)) from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        line = "" if mark is None else f":{mark.line + 1}"
        raise UserError(f"{path.name} is not YAML: {what}", where=f"{path}{line}") from None
    if why := why_too_much(content):
        raise UserError(f"{path.name} cannot be used: {why}", where=str(path))
    if content is not None and not isinstance(content, dict):
        raise UserError(
            f"{path.name} must hold keys and values, not {type(content).__name__}", where=str(path)
        )
    return content or {}


def _candidates(written: str, base: Path) -> list[Path]:
    if "/" in written:
        path = Path(written).expanduser()
        places = [base / path, base / "tasks" / path]
    else:
        parts = written.split(".")
        places = (
            [base.joinpath(*parts)]
            if parts[0] == "tasks"
            else [base.joinpath("tasks", *parts), base / written]
        )
        places.append(base.joinpath(*parts))
    return list(dict.fromkeys(place.resolve() for place in places))


def _dotted_name(folder: Path, base: Path) -> str:
    shown = _relative_path(folder, base)
    return ".".join(part for part in shown.parts if part not in ("/", ".", ".."))


def _relative_path(path: Path, base: Path) -> Path:
    return path.relative_to(base) if path.is_relative_to(base) else path


STATE = "sygra.json"
_KINDS = ("json", "jsonl")
_FORBIDDEN = set('/\\:*?"<>|\0')


class Names:
    """`[run_name_]output[_time].json`, and the like with a post-processor's name for `output`."""

    def __init__(self, run_name: str, with_time: bool) -> None:
        bad = sorted(_FORBIDDEN & set(run_name)) or [c for c in run_name if not c.isprintable()]
        if bad or run_name in (".", "..") or len(run_name.encode()) > 150:
            raise UserError(
                f"run_name {run_name!r} cannot be part of a file's name",
                fix="use letters, digits, `-`, `_` and `.`",
            )
        self._prefix = f"{run_name}_" if run_name else ""
        self.with_time = with_time

    def of(self, name: str, stamp: str, suffix: str) -> str:
        time_part = f"_{stamp}" if self.with_time else ""
        return f"{self._prefix}{name}{time_part}.{suffix}"

    def distinct(self, folder: Path, stamp: str) -> Callable[[str], Path]:
        """Return where the file of a post-processor goes; the second of one name gets a number."""
        taken: Counter[str] = Counter()

        def path_of(name: str) -> Path:
            taken[name] += 1
            number = f"-{taken[name]}" if taken[name] > 1 else ""
            return folder / self.of(f"{name}{number}", stamp, "json")

        return path_of


class Begun(msgspec.Struct):
    """When the current run began, as a part of file names."""

    stamp: str
    finished: bool = False


def begin(folder: Path, output_dir: Path, names: Names) -> Begun:
    """The run that was begun here and not finished, or a new one, whose name no other file has."""
    path = folder / STATE
    try:
        earlier = msgspec.json.decode(reading.content(path), type=Begun)
    except (FileNotFoundError, msgspec.DecodeError):
        earlier = None
    if earlier is not None and not earlier.finished:
        return earlier
    stamp = first = time.strftime("%Y-%m-%d_%H-%M-%S")
    number = 1
    while names.with_time and any(
        (output_dir / names.of("output", stamp, kind)).exists() for kind in _KINDS
    ):
        number += 1
        stamp = f"{first}-{number}"
    begun = Begun(stamp)
    keep(folder, begun)
    return begun


def keep(folder: Path, begun: Begun) -> None:
    write_file(folder / STATE, msgspec.json.encode(begun))


def set_aside(folder: Path) -> None:
    """Make room for a run from the beginning; its existing rows stay beside it under another name."""
    if folder.exists():
        store = FlatStore(folder)
        with store.lock("run", store.id):  # no other process may be writing to it
            pass
        folder.rename(
            folder.with_name(
                f"{folder.name}-{time.strftime('%Y-%m-%d_%H-%M-%S')}-{time.time_ns() % 10**9}"
            )
        )
