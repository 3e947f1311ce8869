"""The experiments below a folder, from their manifests, status and metrics files alone: no row is read."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from assay.errors import UserError
from assay.store.names import INSIDE

State = Literal["complete", "running", "stopped", "killed", "partial", "broken"]
SILENT_AFTER = 15.0  # seconds: a run that is alive writes its status every two
_SKIPPED = {"superseded", "rejected", "node_modules", "__pycache__"}


class Listed(msgspec.Struct, kw_only=True):
    """One experiment. `values` has, for each metric, the lowest and the highest value of its rows, and their number."""

    folder: str
    name: str = ""
    state: State = "partial"
    items: int | None = None
    planned: int | None = None
    responses: int = 0
    errors: int = 0
    evaluations: int = 0
    values: dict[str, tuple[float, float, int]] = {}
    updated: float = 0.0
    problem: str | None = None


class _Section(msgspec.Struct):
    """What a listing needs of a manifest's section."""

    name: str = ""
    complete: bool = False
    planned: int | None = None
    counts: dict[str, int] = {}
    started: float = 0.0
    ended: float | None = None


class _Status(msgspec.Struct):
    state: str = ""
    last_update: float = 0.0


class _Value(msgspec.Struct):
    metric_name: str = ""
    value: float | None = None


_sections = msgspec.json.Decoder(dict[str, _Section]).decode
_status = msgspec.json.Decoder(_Status).decode
_value = msgspec.json.Decoder(_Value).decode


def ls(root: str | Path = ".") -> list[Listed]:
    """Every experiment in or below a folder, with its state, counts and metrics, in the order of their paths."""
    if not os.path.isdir(root):
        raise UserError(f"there is no folder {str(root)!r}", fix="name a folder that holds experiments")
    return [_listed(folder) for folder in _folders(str(root))]


def _folders(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            members = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # a folder that may not be read holds nothing to show
        return
    if any(entry.name == "manifest.json" for entry in members):
        yield folder
    for entry in members:
        hidden = entry.name[0] == "." and entry.name != INSIDE
        if not hidden and entry.name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
            yield from _folders(entry.path)


def _listed(folder: str) -> Listed:
    try:
        sections = _sections(_content(folder, "manifest.json"))
    except (ValueError, OSError) as error:
        return Listed(folder=folder, state="broken", problem=f"the manifest cannot be read: {error}")
    empty = _Section()
    items, run = sections.get("dataset", empty), sections.get("run", empty)
    evaluation = sections.get("evaluation", empty)
    ended = [section.ended or section.started for section in sections.values()]
    return Listed(
        folder=folder,
        name=next((section.name for section in sections.values() if section.name), os.path.basename(folder)),
        state=_state(folder, sections),
        items=items.counts.get("items"),
        planned=run.planned,
        responses=_total(run.counts),
        errors=run.counts.get("errored", 0),
        evaluations=_total(evaluation.counts),
        values=_values(folder),
        updated=max(ended, default=0.0),
    )


def _total(counts: dict[str, int]) -> int:
    return sum(count for name, count in counts.items() if name != "transient")


def _state(folder: str, sections: dict[str, _Section]) -> State:
    """The status file's word; one that says `running` and has fallen silent belongs to a killed process."""
    try:
        status = _status(_content(folder, "status.json"))
    except (ValueError, OSError):
        status = _Status()
    if status.state == "running":
        return "running" if time.time() - status.last_update < SILENT_AFTER else "killed"
    if status.state == "stopped":
        return "stopped"
    return "complete" if sections and all(section.complete for section in sections.values()) else "partial"


def _values(folder: str) -> dict[str, tuple[float, float, int]]:
    values: dict[str, tuple[float, float, int]] = {}
    try:
        lines = _content(folder, "metrics.jsonl").splitlines()
    except OSError:
        return values
    for line in lines:
        try:
            row = _value(line)
        except ValueError:
            continue
        if row.value is not None:
            low, high, count = values.get(row.metric_name, (row.value, row.value, 0))
            values[row.metric_name] = (min(low, row.value), max(high, row.value), count + 1)
    return values


def _content(folder: str, name: str) -> bytes:
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()
