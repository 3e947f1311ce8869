"""The files of evalscope's runs: which belong together, and their lines by the samples' numbers.

`<run>/predictions/<model>/<dataset>_<subset>.jsonl`, the same below `reviews`, `<run>/reports/<model>/<dataset>.json`.
"""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from assay import reading
from assay.foreign import files_below, head_of, json_row, unknown_version
from assay.readers._results import small_yaml
from assay.sdk import JsonObject
from assay.store.table.decode import row_decoder

Kind = Literal["predictions", "reviews", "reports"]
_LINE = re.compile(rb'\s*\{\s*"index"\s*:')
_REPORT = re.compile(rb'\s*\{\s*"(?:schema_version|name)"\s*:')
_LARGEST = 1 << 26  # bytes of a report
_VERSION = 2
_SAMPLES: tuple[Kind, Kind] = ("predictions", "reviews")


class _Score(msgspec.Struct):
    value: JsonObject = {}


class _Scored(msgspec.Struct):
    score: _Score = msgspec.field(default_factory=_Score)


class _NumberedSample(msgspec.Struct):
    index: int
    sample_score: _Scored = msgspec.field(default_factory=_Scored)


class SubsetFiles(msgspec.Struct, kw_only=True, frozen=True):
    """The samples of one subset, answered by one model; either file may be missing."""

    model: str
    stem: str
    predictions: Path | None = None
    reviews: Path | None = None


class RunFiles(msgspec.Struct, kw_only=True, dict=True):
    """One run's folder, and those of its files that were asked for."""

    folder: Path
    parts: list[SubsetFiles]
    reports: list[Path]

    @cached_property
    def config(self) -> JsonObject:
        """Return the settings of the run; empty if they cannot be read."""
        return small_yaml(self.folder / "configs" / "task_config.yaml")


def kind_of(file: Path) -> Kind | None:
    """Return what a file is, by its first bytes."""
    head = head_of(file)
    if file.suffix == ".jsonl" and _LINE.match(head):
        if b'"sample_score"' in head:
            return "reviews"
        return "predictions" if b'"model_output"' in head else None
    is_report = file.suffix == ".json" and _REPORT.match(head) is not None
    if is_report and b'"dataset_name"' in head and b'"metrics"' in head:
        return "reports" if b'"categories"' in head or b'"execution_summary"' in head else None
    return None


def runs_at(path: Path) -> list[RunFiles]:
    """Return the runs that a path holds, or is part of."""
    found: dict[Path, dict[Kind, list[Path]]] = {}
    for file in files_below(path, ".jsonl", ".json"):
        kind = kind_of(file)
        if kind is not None:
            own = file.absolute()
            root = own.parents[2] if own.parent.parent.name == kind else own.parent
            found.setdefault(root, {}).setdefault(kind, []).append(own)
    return [_run(root, files) for root, files in found.items()]


def _run(root: Path, files: dict[Kind, list[Path]]) -> RunFiles:
    reports = set(files.get("reports", ()))
    named = [*files.get("predictions", ()), *files.get("reviews", ())]
    parts: dict[tuple[str, str], SubsetFiles] = {}
    for file in sorted(named or _samples_of(root, reports), key=lambda file: file.parts[-2:]):
        kind = kind_of(file)
        model = file.parent.name if file.parent.parent.name == kind else ""
        if kind is None or (model, file.stem) in parts:
            continue
        pair = (
            {kind: root / kind / model / file.name for kind in _SAMPLES} if model else {kind: file}
        )
        known = {kind: path for kind, path in pair.items() if kind_of(path) == kind}
        parts[model, file.stem] = SubsetFiles(model=model, stem=file.stem, **known)
        of_model = (root / "reports" / model).glob("*.json") if model else ()
        reports |= {report for report in of_model if kind_of(report)}
    return RunFiles(folder=root, parts=list(parts.values()), reports=sorted(reports))


def _samples_of(root: Path, reports: Collection[Path]) -> list[Path]:
    """Return the files of samples that reports are made from."""
    stems = tuple(report.stem for report in reports)
    names = {report.parent.name for report in reports}
    folders = [root / kind / name for name in names for kind in _SAMPLES]
    files = [file for folder in folders for file in folder.glob("*.jsonl")]
    return [file for file in files if file.stem.startswith(stems)]


def read_report(file: Path) -> JsonObject:
    """Return a report; one of a newer version is refused."""
    try:
        report = json_row(reading.content(file)) if file.stat().st_size <= _LARGEST else {}
    except (ValueError, RecursionError, OSError):
        report = {}
    version = report.get("schema_version")
    if isinstance(version, int) and version > _VERSION:
        raise unknown_version("a report of evalscope", version, file)
    return report


class SampleLines:
    """A file of samples: the last line of each number counts, as evalscope appends when it resumes. `labels` has
    the names of the scores in it."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.places: dict[int, int] = {}
        self.labels: dict[str, None] = {}
        self.problems: list[str] = []
        decode = row_decoder(_NumberedSample)
        at = 0
        for line in self._lines():
            try:
                place = decode(line)
                self.places[place.index] = at
                self.labels |= dict.fromkeys(place.sample_score.score.value)
            except (ValueError, RecursionError):
                if not line.isspace():
                    what = f"the line at byte {at:,} is not a sample and is left out"
                    self.problems.append(f"{self.file}: {what}")
            at += len(line)

    def _lines(self) -> Iterator[bytes]:
        if self.file is not None:
            with reading.opened(self.file) as file:
                yield from file

    def rows(self, indices: list[int]) -> Iterator[JsonObject]:
        """Yield the rows with these numbers, empty for those that the file does not have."""
        if self.file is None:
            yield from ({} for _ in indices)
            return
        with reading.opened(self.file) as file:
            for index in indices:
                if index not in self.places:
                    yield {}
                    continue
                if file.tell() != self.places[index]:
                    file.seek(self.places[index])
                try:
                    yield json_row(file.readline())
                except (ValueError, RecursionError):  # the file has changed meanwhile
                    yield {}
