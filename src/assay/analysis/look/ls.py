"""The experiments below a folder, from their manifests, status and metrics files alone: no row is read."""

import os
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from assay import reading
from assay.engine.calls.failures import Failures, told_once
from assay.errors import UserError, shown
from assay.reading import is_remote
from assay.records import ROWS_FILE, manifest_sections
from assay.registry import formats
from assay.store.files import walk_folders

State = Literal["complete", "failed", "running", "stopped", "killed", "partial", "broken"]
SILENT_AFTER = 15.0  # seconds: a run that is alive writes its status every two


class Listed(msgspec.Struct, kw_only=True):
    """One experiment. `values` has, for each metric, the lowest and the highest value of its rows, and their number;
    `errors` are responses, `label_errors` labels of answered ones, and `reasons` the commonest of both. It `failed` if
    all rows of a task or scorer are errors."""

    folder: str
    name: str = ""
    state: State = "partial"
    items: int | None = None
    planned: int | None = None
    responses: int = 0
    errors: int = 0
    evaluations: int = 0
    label_errors: int = 0
    reasons: list[str] = []
    values: dict[str, tuple[float, float, int]] = {}
    updated: float = 0.0
    problem: str | None = None


class _SectionMetadata(msgspec.Struct):
    failures: list[Failures] = []


class ManifestSection(msgspec.Struct):
    """What is needed of a manifest's section."""

    name: str = ""
    complete: bool = False
    planned: int | None = None
    present: int | None = None
    counts: dict[str, int] = {}
    metadata: _SectionMetadata = msgspec.field(default_factory=_SectionMetadata)
    started: float = 0.0
    ended: float | None = None


class _RunState(msgspec.Struct):
    state: str = ""
    last_update: float = 0.0
    processed_samples: int = 0
    failed_samples: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether the run that writes it has not ended, as far as it tells."""
        return self.state == "running"


class _Value(msgspec.Struct):
    metric_name: str = ""
    value: float | None = None


section_of = msgspec.json.Decoder(ManifestSection).decode
_status = msgspec.json.Decoder(_RunState).decode
_value = msgspec.json.Decoder(_Value).decode


def ls(root: str | Path = ".", *, foreign: bool = True) -> list[Listed]:
    """Every experiment in or below a folder, with its state, counts and metrics, in the order of
    their paths. If there are none, and `foreign` ones are wanted, those are listed that other
    programs left there."""
    if is_remote(root):
        return [
            replace(entry, folder=shown(entry.folder))
            for entry in ls(_copy(str(root)), foreign=foreign)
        ]
    if not os.path.isdir(root):
        raise UserError(
            f"there is no folder {str(root)!r}", fix="name a folder that holds experiments"
        )
    others = [import_module(f"assay.formats.{name}.folders") for name in formats("folders")]
    folder = str(root).removeprefix("file://")
    return list(_experiments(folder, others)) or (_foreign_copies(folder) if foreign else [])


def _foreign_copies(folder: str) -> list[Listed]:
    """Return what other programs left in a folder that has nothing of ours."""
    if not any(files for _, _, files in os.walk(folder)):
        return []
    from assay.engine.experiment.imports.copies import imported_copies  # it takes readers, and time

    copies = imported_copies(Path(folder))
    return [replace(_entry_of(str(copy.folder)), folder=copy.origin) for copy in copies]


def _copy(address: str) -> Path:
    from assay.store.shared.mirror import local  # `assay ls` is to be quick

    return local(address, rows=False)


def _experiments(folder: str, others: list[Any]) -> Iterator[Listed]:
    """Ours, and what formats recognise as theirs."""
    for place, names in walk_folders(folder):
        if "manifest.json" in names:
            yield _entry_of(place)
        for other in others:
            yield from other.listed(Path(place), names)


def listed_of(folder: str | Path) -> Listed | None:
    """The experiment in a folder itself; None if there is none."""
    return _entry_of(str(folder)) if os.path.exists(os.path.join(folder, "manifest.json")) else None


def _sections_of(folder: str) -> dict[str, ManifestSection]:
    try:
        content = manifest_sections(_content(folder, "manifest.json"), folder)
        return {kind: section_of(content[kind]) for kind in ROWS_FILE if kind in content}
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"the manifest cannot be read: {error}") from None


def _entry_of(folder: str) -> Listed:
    name = folder.encode("utf-8", "backslashreplace").decode()
    try:
        if folder != name:
            raise UserError("the name of its folder is not UTF-8; rename it")
        sections = _sections_of(folder)
    except UserError as error:
        return Listed(folder=name, state="broken", problem=error.what)
    listed = _of_sections(folder, sections)
    status = _status_of(folder)
    if status.is_open:  # the manifest counts at the end
        listed.errors = status.failed_samples
        listed.responses = status.processed_samples + status.failed_samples
    listed.state = _state(status, listed.state)
    return listed


def _of_sections(folder: str, sections: dict[str, ManifestSection]) -> Listed:
    kinds = ("dataset", "run", "evaluation")
    items, run, evaluation = (sections.get(kind, ManifestSection()) for kind in kinds)
    failed = evaluation.metadata.failures
    failures = told_once(run.metadata.failures, failed)
    every = [*sections.values()]
    names = filter(None, [section.name for section in every])
    return Listed(
        folder=folder,
        name=next(names, os.path.basename(folder)),
        state=_stored_state(every, failures),
        items=items.counts.get("items"),
        planned=run.planned,
        responses=_total(run.counts),
        errors=run.counts.get("errored", 0),
        evaluations=_total(evaluation.counts),
        label_errors=sum(each.errored - each.unanswered for each in failed),
        reasons=[line for each in failures for line in each.lines()],
        values=_values(folder),
        updated=max([section.ended or section.started for section in every], default=0.0),
    )


def _stored_state(sections: list[ManifestSection], failures: list[Failures]) -> State:
    """Return what the manifest says of a run that has ended."""
    if any(each.is_total for each in failures):
        return "failed"
    complete = sections and all(section.complete for section in sections)
    return "complete" if complete else "partial"


def _total(counts: dict[str, int]) -> int:
    return sum(count for name, count in counts.items() if name != "transient")


def _status_of(folder: str) -> _RunState:
    """Return what one process, or what workers together, say of the run."""
    if os.path.isdir(os.path.join(folder, "generations")):
        from assay.analysis.look.status import of_workers

        if (told := of_workers(folder)) is not None:
            answered = told.rows - told.errors
            return _RunState(
                told.state, time.time(), processed_samples=answered, failed_samples=told.errors
            )
    try:
        return _status(_content(folder, "status.json"))
    except (ValueError, OSError, RecursionError):
        return _RunState()


def _state(status: _RunState, stored: State) -> State:
    """Return the status file's word, or that of the manifest. A status that says `running` and has
    fallen silent belongs to a killed process."""
    if status.is_open:
        return "running" if time.time() - status.last_update < SILENT_AFTER else "killed"
    return "stopped" if status.state == "stopped" else stored


def _values(folder: str) -> dict[str, tuple[float, float, int]]:
    values: dict[str, tuple[float, float, int]] = {}
    try:
        lines = _content(folder, "metrics.jsonl").splitlines()
    except OSError:
        return values
    for line in lines:
        try:
            row = _value(line)
        except (ValueError, RecursionError):
            continue
        if row.value is not None:
            low, high, count = values.get(row.metric_name, (row.value, row.value, 0))
            values[row.metric_name] = (min(low, row.value), max(high, row.value), count + 1)
    return values


def _content(folder: str, name: str) -> bytes:
    with reading.opened(os.path.join(folder, name)) as file:
        return file.read()
