"""The sidecar of a converted file: what its format could not hold, put back when the file is read.

`FILE.assay.jsonl` beside a file, `assay_sidecar.jsonl` in a folder. Its first line says what was converted, then comes
a line for each row (see `patches.py`), then the files of the source that no format holds. Rows are found by address,
not by position; what is edited, added or removed in the converted file stays so.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from assay import reading
from assay.engine.experiment.dataset import content_stamp
from assay.engine.experiment.imports.foreign import Foreign, ForeignCase, Headline
from assay.engine.experiment.imports.patches import (
    RowKind,
    RowLine,
    address,
    completed_row,
    digest_of_value,
    whole_row,
)
from assay.engine.experiment.imports.sidecar_lines import SidecarLines
from assay.engine.experiment.trust import CONFIG
from assay.errors import UserError
from assay.records import ROWS_FILE, Evaluation, Response
from assay.store.files import write_file
from assay.store.keyset import Seen
from assay.store.log import FileLog

INSIDE_FOLDER, BESIDE_FILE = "assay_sidecar.jsonl", ".assay.jsonl"
VERSION = 1
FILES = {
    "metrics": ROWS_FILE["aggregation"],
    "calls": "calls.jsonl",
    "traces": "traces.jsonl",
}  # lines of rows
_MARK = b'{"assay_sidecar":'


class SidecarHead(msgspec.Struct, kw_only=True):
    """What was converted: `source`, a digest, and `params` tell whether it would be again, `files` whether what was
    written is still there; `config` is the text of the source's config."""

    assay_sidecar: int = VERSION
    format: str = ""
    source: str = ""
    params: dict[str, Any] = {}
    files: dict[str, str] = {}
    dataset: str = ""
    planned: int | None = None
    config: str = ""

    def __post_init__(self) -> None:
        if self.assay_sidecar > VERSION:
            what = (
                f"this sidecar is of version {self.assay_sidecar}, which this Assay does not know"
            )
            raise UserError(
                what, fix="update Assay, or remove the sidecar: then only the file itself is read"
            )


class FileLine(msgspec.Struct):
    """A line of a file of the source."""

    file: str
    row: msgspec.Raw


@runtime_checkable
class Restoring(Protocol):
    """Results that have more than rows: files that a folder of ours holds beside them."""

    def restore(self, folder: Path) -> None: ...


def sidecar_of(path: Path) -> Path:
    """Where the sidecar of a file or folder is."""
    return path / INSIDE_FOLDER if path.is_dir() else path.with_name(path.name + BESIDE_FILE)


def head_of_sidecar(path: Path) -> SidecarHead | None:
    """The first line of a sidecar; None where there is none, or a file of somebody else."""
    try:
        with reading.opened(path) as file:
            first = file.readline()
    except OSError:
        return None
    if not first.startswith(_MARK[:-1]):
        return None
    try:
        return msgspec.json.decode(first, type=SidecarHead)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"the sidecar cannot be read: {error}", where=str(path), fix="restore it, or remove it"
        ) from None


def completed(foreign: Foreign, path: Path) -> Foreign:
    """The results at a path with what their sidecar puts back; the results themselves where there is no sidecar."""
    for place in (getattr(foreign, "path", None), path):
        if isinstance(place, Path):
            sidecar = sidecar_of(place)
            head = head_of_sidecar(sidecar)
            if head is not None:
                return Completed(foreign, sidecar, head)
    return foreign


def restore(foreign: Foreign, folder: Path) -> None:
    """Write what the results have beside rows into the folder that they were imported to."""
    if isinstance(foreign, Restoring):
        foreign.restore(folder)


class Completed:
    """Foreign results and their sidecar as one."""

    def __init__(self, foreign: Foreign, sidecar: Path, head: SidecarHead) -> None:
        self._foreign = foreign
        self._sidecar = sidecar
        self._head = head
        self._matched = self._edited = self._new = 0
        self._missing = False
        self.dataset = head.dataset or foreign.dataset

    @property
    def planned(self) -> int | None:
        return self._head.planned if self._head.planned is not None else self._foreign.planned

    @property
    def rejected(self) -> int:
        return self._foreign.rejected

    @property
    def source(self) -> Mapping[str, Any]:
        return {**self._foreign.source, "sidecar": content_stamp(self._sidecar.absolute())}

    @property
    def facts(self) -> Mapping[str, Any]:
        return self._foreign.facts

    def headlines(self) -> list[Headline]:
        return self._foreign.headlines()

    def notes(self) -> list[str]:
        notes = list(self._foreign.notes())
        if self._fits() and (self._edited or self._new or self._missing):
            notes.append(
                f"since the conversion, rows were edited ({self._edited:,}) or added ({self._new:,}), or removed: "
                "metrics are not taken from the sidecar; `assay aggregate` computes them"
            )
        elif not self._fits():
            notes.append(
                f"no row is in {self._sidecar.name}, which was written for another file: it was not used"
            )
        return notes

    def cases(self) -> Iterator[ForeignCase]:
        lines = SidecarLines(self._sidecar)
        self._matched = self._edited = self._new = 0
        seen = Seen()
        for case in self._foreign.cases():
            item = None if case.item is None else self._item(dict(case.item), lines, seen)
            response = (
                None if case.response is None else self._row("response", case.response, lines)
            )
            evaluations = [
                row
                for each in case.evaluations
                if (row := self._row("evaluation", each, lines)) is not None
            ]
            if item is not None or response is not None or evaluations or case.spans:
                yield ForeignCase(
                    item,
                    cast("Response | None", response),
                    cast("list[Evaluation]", evaluations),
                    case.spans,
                )
        self._missing = lines.unused()
        if self._fits():
            yield from map(_as_case, lines.whole_rows())

    def restore(self, folder: Path) -> None:
        if not self._fits():
            return
        present = [name for name, file in FILES.items() if FileLog(folder / file).segments()]
        if self._edited or self._new or self._missing:
            present.append("metrics")
        for name in {line.file for line in _file_lines(self._sidecar)} & FILES.keys() - {*present}:
            rows = (
                bytes(line.row) + b"\n" for line in _file_lines(self._sidecar) if line.file == name
            )
            FileLog(folder / FILES[name]).replace(rows)
        if (
            self._head.config
        ):  # its owner is whoever wrote the sidecar: this process has not vouched for it
            write_file(folder / CONFIG, self._head.config.encode())

    def _fits(self) -> bool:
        return bool(self._matched) or not self._new

    def _item(self, item: dict[str, Any], lines: SidecarLines, seen: Seen) -> dict[str, Any] | None:
        digest = digest_of_value(item)
        if not seen.add(hash((item.get("id"), digest)) & 0xFFFF_FFFF_FFFF_FFFF):
            return None
        return cast("dict[str, Any] | None", self._row("item", item, lines, digest))

    def _row(self, kind: RowKind, row: Any, lines: SidecarLines, digest: str = "") -> Any:
        """The completed row; None for one that the source did not have."""
        digest = digest or digest_of_value(row)
        line = lines.take(kind, address(row), digest)
        if line is None:
            self._new += 1
            return row
        self._matched += 1
        if line.extra and line.was == digest:
            return None
        self._edited += line.was != digest
        return completed_row(row, line, digest)


def _as_case(line: RowLine) -> ForeignCase:
    row = whole_row(line)
    if isinstance(row, Response):
        return ForeignCase(response=row)
    return ForeignCase(evaluations=[row]) if isinstance(row, Evaluation) else ForeignCase(item=row)


def _file_lines(path: Path) -> Iterator[FileLine]:
    decode = msgspec.json.Decoder(FileLine).decode
    for _, text in FileLog(path).scan():
        if text.startswith(b'{"file":'):
            yield decode(text)
