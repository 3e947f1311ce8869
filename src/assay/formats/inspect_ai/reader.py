"""inspect_ai's logs as experiments: one for each log, whatever became of its run. Shards of a run are one."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay import reading
from assay.foreign import (
    Foreign,
    ForeignCase,
    Headline,
    Rest,
    files_below,
    head_of,
)
from assay.formats.inspect_ai.archive import Archive, Unreadable
from assay.formats.inspect_ai.header import LogHeader, header_of
from assay.formats.inspect_ai.numbers import LogNumbers
from assay.formats.inspect_ai.rows import Around, case_of
from assay.formats.inspect_ai.shapes import Decoder, LogSample, finite, finite_value, is_filled
from assay.readers._results import FileResults
from assay.sdk import JsonObject, UserError, as_object, id_hash, reader
from assay.store.keyset import Seen
from assay.text.json_extents import BrokenExtent, extents

Broken = Callable[[str], None]
_ZIP = b"PK\x03\x04"
_HEADER, _START = "header.json", "_journal/start.json"
_SAMPLES = "samples/"
_LISTS = {"samples", "reductions"}
_JSON = re.compile(
    rb'\s*\{\s*"version"\s*:\s*-?[\d.]+\s*,\s*"status"\s*:\s*"\w*"\s*,\s*"eval"\s*:\s*\{'
)
# The list of an eval set, `logs.json`, has names of files there, and headers below them.
_FIELD = re.compile(rb'\s*\{\s*"\w+"\s*:')
_MARKS = (b'"eval"', b'"run_id"', b'"task_id"', b'"plan"')


def is_log(path: Path) -> bool:
    """Return whether a file is a log, by its content."""
    head = head_of(path)
    if head.startswith(_ZIP):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("utf-8", "replace")
        return name in (_START, _HEADER) or (name.endswith(".json") and _has_header(path))
    return _JSON.match(head) is not None or (
        _FIELD.match(head) is not None and all(mark in head for mark in _MARKS)
    )


def _has_header(path: Path) -> bool:
    try:
        members = Archive(path).members
    except (UserError, OSError):
        return False
    return _HEADER in members or _START in members


class LogFile:
    """A log's file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._archive = Archive(path) if head_of(path).startswith(_ZIP) else None

    def header(self, rest: Rest) -> LogHeader:
        """The header; UserError if it cannot be read."""
        try:
            if self._archive is None:
                return header_of(dict(self._fields()), self.path, rest)
            member = self._archive.members.get(_HEADER) or self._archive.members.get(_START)
            if member is None:
                raise ValueError("it has no header")
            with self._archive as archive:
                return header_of(archive.read(member), self.path, rest)
        except (ValueError, RecursionError, Unreadable) as error:
            fix = "copy the file again"
            raise UserError(
                f"the log cannot be read: {error}", where=str(self.path), fix=fix
            ) from None

    def _fields(self) -> Iterator[tuple[str, Any]]:
        """The fields of a JSON file but its samples; those before the end of one that was cut off."""
        with reading.opened(self.path) as file:
            try:
                for key, _, data in extents(file, skip=_LISTS):
                    if data:
                        yield key, finite_value(data)
            except BrokenExtent as error:
                if not error.at_end:
                    raise

    def samples(self, broken: Broken) -> Iterator[tuple[str, bytes]]:
        """(place, JSON) of every sample; what cannot be read is reported."""
        return (
            self._of_json(broken)
            if self._archive is None
            else self._of_archive(self._archive, broken)
        )

    def _of_archive(self, archive: Archive, broken: Broken) -> Iterator[tuple[str, bytes]]:
        if archive.torn:
            broken(f"{self.path}: the file is cut off; what stands whole before its end was read")
        with archive:
            for name, member in archive.members.items():
                if not name.startswith(_SAMPLES) or not name.endswith(".json"):
                    continue
                try:
                    yield name, archive.read(member)
                except Unreadable as error:
                    broken(f"{self.path}, {name!r}: {error}")

    def _of_json(self, broken: Broken) -> Iterator[tuple[str, bytes]]:
        with reading.opened(self.path) as file:
            try:
                for _, number, data in extents(file, {"samples"}, _LISTS):
                    if number is not None:
                        yield f"sample {number + 1}", data
            except BrokenExtent as error:
                broken(f"{self.path}: {error}")


def one_line(data: bytes) -> bytes:
    """The JSON as a line of a file can hold it: parts of it are passed on as they are."""
    if b"\n" in data:
        try:
            data = msgspec.json.format(data, indent=-1)
        except (ValueError, RecursionError):
            data = finite(data)
    if not data.isascii():
        data.decode()  # an error that names the byte
    return data


SHARDS = ".shards"
RECOVERED = "-recovered"
_ENDS = {
    "started": "the run had not ended when this log was written",
    "cancelled": "the run was cancelled",
}


@reader
def inspect_ai(path: Path) -> list[Foreign]:
    """Logs of inspect_ai: `.eval` and `.json` files, or a folder with them."""
    files = [file for file in files_below(path, ".eval", ".json") if is_log(file)]
    experiments: dict[str, list[_Run]] = {}
    for run, file in _runs(files):
        experiments.setdefault(run, []).append(_Run(file))
    return [*map(InspectLog, experiments.values())]


def _runs(files: list[Path]) -> Iterator[tuple[str, Path]]:
    """(run, file) of what is to be read. The shards of a run whose merged log is there are not, nor is a log beside
    which there is the same one, recovered."""
    names = {str(file) for file in files}
    for file in files:
        if f"{file.with_suffix('')}{RECOVERED}{file.suffix}" in names:
            continue
        shards = next((parent for parent in file.parents if parent.name.endswith(SHARDS)), None)
        run = str(file) if shards is None else f"{str(shards).removesuffix(SHARDS)}{file.suffix}"
        if shards is None or run not in names:
            yield run, file


class _Run(FileResults):
    """One file, and what was read of it."""

    said = {
        "invalid": "the log is marked as invalid, {invalidation:,} of its samples are by themselves",
        "limit": "{:,} samples reached a limit; they are scored, see metadata.source.limit",
        "error_retries": "{:,} samples were tried again after errors, see metadata.source.error_retries",
    }

    def __init__(self, path: Path) -> None:
        self.document = LogFile(path)
        self._unknown = Rest()
        self.header: LogHeader = self.document.header(self._unknown)
        super().__init__(self.header.task, path)

    def begin(self) -> None:
        super().begin()
        self.numbers = LogNumbers(self.header)
        self.rest.unknown += self._unknown.unknown

    def around(self) -> Around:
        header, numbers = self.header, self.numbers
        scorer = next((scorer for scorer, _ in numbers.labels), "score")
        named = (header.log, header.model, header.epochs, scorer)
        return Around(*named, numbers.labels, numbers.facets, numbers.add)

    def count(self, sample: LogSample) -> None:
        odd = self.odd
        if sample.error is not None:
            odd["unscored"] += not sample.scores
        for name in ("limit", "invalidation", "error_retries"):
            odd[name] += is_filled(getattr(sample, name))

    def notes(self) -> list[str]:
        header, odd = self.header, self.odd
        notes = [_ENDS[header.status]] if header.status in _ENDS else []
        if header.status == "error":
            notes.append(f"the run failed: {header.error.get('message', 'no reason is given')}")
        odd.update(invalidation=0)
        odd["invalid"] = header.invalidated or odd["invalidation"]
        return [*notes, *self.numbers.notes(odd["unscored"]), *super().notes()]


class InspectLog(FileResults):
    """The samples of one experiment, in one file, or in several."""

    format = "inspect_ai"

    def __init__(self, runs: list[_Run]) -> None:
        self._runs = runs
        self._header = runs[0].header
        self.planned = sum(run.header.planned or 0 for run in runs) or None
        super().__init__(self._header.task, *(run.document.path for run in runs))

    @property
    def rejected(self) -> int:
        return sum(run.rejected for run in self._runs)

    @property
    def facts(self) -> JsonObject:
        """Return what the header says beyond rows."""
        version = as_object(self._header.eval.get("packages")).get("inspect_ai", "")
        return {
            **self._header.facts(),
            "read_from": [f"inspect_ai {version}".rstrip()],
            "models": list(dict.fromkeys(run.header.model for run in self._runs)),
            "status": self._header.status,
        }

    def cases(self) -> Iterator[ForeignCase]:
        """Every sample."""
        seen = Seen()
        for run in self._runs:
            run.begin()
            yield from self._cases(run, seen)

    def _cases(self, run: _Run, seen: Seen) -> Iterator[ForeignCase]:
        decode, around, alike = Decoder(), run.around(), run.header.alike
        once = run.header.epochs == 1 and len(self._runs) == 1
        for place, data in run.document.samples(run.unread.add):
            try:
                sample, unknown = decode(one_line(data))
                if alike and isinstance(sample.id, int) and str(sample.id) in alike:
                    sample.id = f"{sample.id}~number"
                case = case_of(sample, unknown, around)
            except (ValueError, TypeError, RecursionError) as error:
                run.unread.add(f"{run.document.path}, {place}: {error}")
                continue
            for name in unknown:
                run.rest.unknown[f"sample.{name}"] += 1
            run.count(sample)
            yield case if once or seen.add(id_hash(str(sample.id))) else _without_item(case, sample)

    def headlines(self) -> list[Headline]:
        """The numbers of the headers."""
        return [headline for run in self._runs for headline in run.numbers.headlines()]

    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for run in self._runs for note in run.notes()))


def _without_item(case: ForeignCase, sample: LogSample) -> ForeignCase:
    """A further epoch: the item is there already, and solvers may have changed what its metadata say."""
    if sample.metadata and case.response is not None:
        case.response.metadata["source"]["metadata"] = sample.metadata
    return case._replace(item=None)
