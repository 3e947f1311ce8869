"""A task's YAML file with its includes. Nothing is executed: `!function` becomes a `Hook`."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, cast

import yaml

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Hook

# files that were read already, so that many can include one
Parsed = MutableMapping[Path, dict[str, Any]]
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):
    folder: str


def _hook(loader: _Loader, node: yaml.Node) -> Hook:
    return Hook(str(loader.construct_scalar(node)), loader.folder)


_Loader.add_constructor("!function", _hook)


def load(
    file: Path, parsed: Parsed | None = None, visited: set[Path] | None = None
) -> dict[str, Any]:
    """The file's keys over those of the files that it includes, in their order; nothing is merged more deeply.

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
        parsed[file] = _read(file)
    return with_includes(parsed[file], file, parsed, visited)


def with_includes(
    keys: Mapping[str, Any], file: Path, parsed: Parsed, visited: set[Path] | None = None
) -> dict[str, Any]:
    """Keys that stand in `file`, over those of the files that they include."""
    keys = dict(keys)
    visited = {file} if visited is None else visited
    merged: dict[str, Any] = {}
    for name in _listed(keys.pop("include", [])):
        if not isinstance(name, str):
            raise UserError(f"include {name!r} is not the name of a file", where=str(file))
        try:
            merged |= load(file.parent / Path(name), parsed, visited)
        except OSError:
            raise UserError(f"it includes {name}, which cannot be read", where=str(file)) from None
        merged.pop("task_list", None)
    return merged | keys


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _read(file: Path) -> dict[str, Any]:
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
    return cast("dict[str, Any]", keys)
