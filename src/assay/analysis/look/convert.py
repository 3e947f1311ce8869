"""`assay convert`: results in one format are imported, and exported in another; what the other cannot hold is named.

All is made in a hidden folder beside the target, which then takes its place at once: what was stopped looks like
nothing.
"""

import os
import shutil
from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from operator import attrgetter, ne
from pathlib import Path
from typing import Any, NamedTuple

from assay import reading, registry
from assay.analysis.look.export import SAMPLES, TABLES, Export, Tables
from assay.analysis.look.joining import HOLDS
from assay.engine.experiment.imports.own_folder import (
    OwnFolder,
    blocks_of,
    check_free,
    own_results,
)
from assay.engine.experiment.imports.results import folder_names, import_one
from assay.engine.experiment.resolve import find_source
from assay.engine.experiment.trust import CONFIG
from assay.foreign import Read, check_no_sidecar, read_foreign
from assay.sdk import Evaluation, JsonMapping, JsonObject, Response, UserError, shown
from assay.shown import Shown
from assay.store.files import make_folder, store_error, sweep, sync_folder, temporary_of
from assay.store.log import FileLog
from assay.store.shared.mirror import local
from assay.usercode import failing, marks_of

OWN = "assay"
_PLAIN_ROWS = {"responses": Response(item_id=""), "evaluations": Evaluation(item_id="")}
_EMPTY = (None, {}, [], "")


class Converted(Shown, kw_only=True):
    """What one conversion wrote. `left_out` counts the rows that have what the format has no place for: whole rows by
    their table (`metrics`), others by table and field (`responses.messages`)."""

    source: str
    path: str
    format: str
    items: int = 0
    responses: int = 0
    evaluations: int = 0
    left_out: dict[str, int] = {}
    unchanged: bool = False
    notes: list[str] = []


def formats() -> list[str]:
    """The formats that can be read as well as written."""
    return sorted({*registry.reader.names()} & {*registry.writer.names()})


def convert(
    source: str | Path,
    target: str | Path,
    *,
    to: str = "",
    format_name: str = "",
    params: JsonMapping | None = None,
    without_sidecar: bool = False,
) -> list[Converted]:
    """Write what is at `source`, in whatever format, to `target`, in the format that `to` or its suffix names. Several
    experiments get a file or folder each in it. What exists is never replaced; `without_sidecar` leaves sidecars of an
    earlier version unread, where their presence would be an error."""
    if reading.address(target):
        raise UserError(
            "a conversion is written to a path here",
            where=str(target),
            fix="name one, then copy it",
        )
    path, place = local(source), Path(target)
    name = _format(to, place)
    _check_apart(path, place)
    write = registry.writer.get(name, base=Path.cwd(), where="--to")
    own, rest = JsonObject(), dict(params or {})
    for key in rest.keys() & registry.parameters(write):
        own[key] = rest.pop(key)
    read = _experiments_at(path, format_name, rest)
    if not without_sidecar:
        check_no_sidecar(path)
    targets = _targets(read, place, name)
    job = _Conversion(name, registry.check_params(write, own, where="--set"), str(source))
    if name == OWN:
        return [job.write_own(each, at) for each, at in zip(read, targets, strict=True)]
    for at in targets:
        _check_absent(at)
    return [job.write(each, at) for each, at in zip(read, targets, strict=True)]


def _targets(read: Sequence[Read], place: Path, name: str) -> list[Path]:
    """Return the path of each experiment: the one that was named, or one below it where there are several."""
    if len(read) == 1:
        return [place]
    suffix = next((suffix for suffix, format in suffixes().items() if format == name), "")
    return [place / f"{each}{suffix}" for each in folder_names(read)]


def _check_apart(path: Path, place: Path) -> None:
    if path.resolve() == place.resolve():
        raise UserError(
            "source and target are the same", where=str(place), fix="name another target"
        )
    inside = path.is_dir() and place.resolve().is_relative_to(path.resolve())
    if inside and (path / "manifest.json").exists():
        raise UserError(
            "the target is inside the source", where=str(place), fix="name a place outside of it"
        )


def _experiments_at(path: Path, format_name: str, params: JsonMapping) -> list[Read]:
    if format_name in ("", OWN):
        own = own_results(path) if os.path.isdir(path) else []
        if own:
            return [Read(OWN, each) for each in own]
    return read_foreign(path, format_name, params)


def suffixes() -> dict[str, str]:
    """The format of a file by its suffix: that of its name, or of the file that its writer names."""
    found: dict[str, str] = {}
    for name in formats():
        whole = marks_of(registry.writer.get(name)).get("whole")
        suffix = Path(str(whole)).suffix if whole else f".{name}"
        found.setdefault(suffix, name) if suffix else None
    return found


def _format(to: str, place: Path) -> str:
    name = to.replace("-", "_")
    if name:
        if name in registry.reader.names():
            registry.writer.get(name, where="--to")
        if name not in formats():
            what = f"there is no format {to!r} to convert to"
            if name in registry.writer.names():
                what = f"cannot convert to {to!r}: it has no reader"
            raise UserError(what, where="--to", fix=registry.nearest(name, formats()))
        return name
    if not place.suffix:
        return OWN
    found = suffixes().get(place.suffix)
    if found is None:
        known = ", ".join(sorted(suffixes()))
        raise UserError(
            f"no format has the suffix {place.suffix!r}",
            where=str(place),
            fix=f"name the format with --to (one of {', '.join(formats())}), or use a suffix of {known}",
        )
    return found


class _Conversion(NamedTuple):
    format: str
    params: JsonObject
    source: str

    def write_own(self, read: Read, target: Path) -> Converted:
        """Write a folder of ours: an import."""
        unchanged = check_free(target, read.foreign.source)
        imported = import_one(read, target)
        return Converted(
            source=self.source,
            path=imported.folder,
            format=OWN,
            items=imported.items,
            responses=sum(imported.responses.values()),
            evaluations=sum(imported.evaluations.values()),
            unchanged=unchanged,
            notes=imported.notes,
        )

    def write(self, read: Read, target: Path) -> Converted:
        """Write another format: an import, unless the rows are ours, and an export."""
        with _workspace(target) as work:
            made, tables = work / target.name, Tables(_rows(read, work))
            left_out, notes = self._export(tables, made)
            _publish(made, target)
        return Converted(
            source=self.source,
            path=shown(str(target)),
            format=self.format,
            items=_count(tables, "dataset"),
            responses=_count(tables, "run"),
            evaluations=_count(tables, "evaluation"),
            left_out=left_out,
            notes=[note.replace(str(made), str(target)) for note in (*tables.partial(), *notes)],
        )

    def _export(self, tables: Tables, made: Path) -> tuple[dict[str, int], list[str]]:
        """Write the tables; return how many rows have what is left out, and the writer's notes."""
        write = registry.writer.get(self.format)
        marks = marks_of(write)
        whole = bool(marks.get("whole"))
        export = Export(tables, "responses" if whole else SAMPLES, made, whole=whole)
        with failing(write, f"the format {self.format!r}", "--to"):
            made_by = write(export, **{**marks.get("converting", {}), **self.params})
            notes: list[str] = list(made_by or ())
        holds = marks.get("holds", {} if whole else HOLDS)
        if not holds or self.params.get("extras") is False:
            notes.append(f"{self.format} does not say which fields it holds")
        return _left_out(export, holds), notes


def _rows(read: Read, work: Path) -> Any:
    """The rows of an experiment: where they are, or imported beside the target."""
    if isinstance(read.foreign, OwnFolder):
        return read.foreign.rows
    import_one(read, work / "source")
    return find_source(work / "source", foreign=False)


def _count(tables: Tables, kind: Any) -> int:
    manifest = tables.source.manifest(kind)
    return sum(manifest.counts.values()) if manifest is not None else 0


# ---- what a format cannot hold


def _left_out(export: Export, holds: Mapping[str, Collection[str] | None]) -> dict[str, int]:
    """Count what a format does not hold, which holds these fields of these tables (None: all of them)."""
    if not holds:
        return {}
    tables, left = export.tables, Counter(export.left_out())
    for table in TABLES:
        if table not in tables:
            continue
        if table not in holds:
            left[table] = sum(1 for _ in tables.lines(table))
        elif (held := holds[table]) is not None:
            left.update(_fields_left_out(tables, table, held))
    folder = tables.source.folder
    if folder is not None:
        for name in ("calls", "traces"):
            left[name] = sum(1 for _ in FileLog(folder / f"{name}.jsonl").scan())
        left["config"] = int((folder / CONFIG).is_file())
    return dict(+left)


def _fields_left_out(tables: Tables, table: str, held: Collection[str]) -> Counter[str]:
    """Count the rows that say something in a field that is not held, by field."""
    left: Counter[str] = Counter()
    plain = _PLAIN_ROWS.get(table)
    if plain is None:
        for row in tables.rows(table):
            others = (name for name in row if name not in held and row[name] not in _EMPTY)
            left.update(f"{table}.{name}" for name in others)
        return left
    names = [name for name in plain.__struct_fields__ if name not in held]
    for rows in blocks_of(tables.source, TABLES[table], type(plain)):
        for name in names:
            values = map(attrgetter(name), rows)
            left[f"{table}.{name}"] += sum(map(ne, values, repeat(getattr(plain, name))))
    return left


# ---- where it is written


def _check_absent(target: Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(
            "this exists, and is not replaced",
            where=str(target),
            fix="choose another name, or remove it",
        )


@contextmanager
def _workspace(target: Path) -> Generator[Path]:
    """A hidden folder beside the target; those of processes that have ended are removed."""
    try:
        make_folder(target.parent)
        sweep(target.parent)
        work = temporary_of(target)
        shutil.rmtree(work, ignore_errors=True)
        make_folder(work)
    except OSError as error:
        raise store_error(error, target.parent) from error
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _publish(made: Path, target: Path) -> None:
    _check_absent(target)
    try:
        os.rename(made, target)
        sync_folder(target.parent)
    except OSError as error:
        raise store_error(error, target) from error
