"""Task names: which folder with a `graph_config.yaml` a name means, and the YAML in it.

Names count from the current folder, dotted or with slashes, with or without `tasks` before them. YAML is read by the
rules of version 1.1 (`yes` is true), because these files were written for such a reader.
"""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from assay.errors import UserError
from assay.registry import nearest

GRAPH_FILE = "graph_config.yaml"


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
            return TaskFolder(_dotted(folder, base), folder, base)
    wanted = f"tasks.{_dotted(Path(written), base).removeprefix('tasks.')}"
    raise UserError(
        f"there is no task {name!r}",
        where=", ".join(str(_shown(folder / GRAPH_FILE, base)) for folder in looked),
        fix=nearest(wanted, _known(base)) or "run it from the folder that holds `tasks/`",
    )


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; an empty file is an empty one."""
    try:
        found = yaml.load(path.read_text("utf-8-sig"), Loader=yaml.CSafeLoader)
    except OSError as error:
        raise UserError(f"{path.name} cannot be read: {error.strerror}", where=str(path)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        line = "" if mark is None else f":{mark.line + 1}"
        raise UserError(f"{path.name} is not YAML: {what}", where=f"{path}{line}") from None
    if found is not None and not isinstance(found, dict):
        raise UserError(f"{path.name} must hold keys and values, not {type(found).__name__}", where=str(path))
    return found or {}


def _candidates(written: str, base: Path) -> list[Path]:
    if "/" in written:
        path = Path(written).expanduser()
        places = [base / path, base / "tasks" / path]
    else:
        parts = written.split(".")
        places = [base.joinpath(*parts)] if parts[0] == "tasks" else [base.joinpath("tasks", *parts), base / written]
        places.append(base.joinpath(*parts))
    return list(dict.fromkeys(place.resolve() for place in places))


def _dotted(folder: Path, base: Path) -> str:
    shown = _shown(folder, base)
    return ".".join(part for part in shown.parts if part not in ("/", ".", ".."))


def _shown(path: Path, base: Path) -> Path:
    return path.relative_to(base) if path.is_relative_to(base) else path


def _known(base: Path) -> list[str]:
    return [_dotted(path.parent, base) for path in sorted((base / "tasks").glob(f"**/{GRAPH_FILE}"))]
