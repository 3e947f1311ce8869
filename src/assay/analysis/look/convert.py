"""`assay convert`: results in one format become results in another, and nothing is lost on the way back.

What is written is read again and compared with its source; what the format could not hold goes to a sidecar. All of it
is made in a hidden folder beside the target, which then takes its place at once: what was stopped looks like nothing.
"""

import gc
import os
import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from assay import reading, registry
from assay.analysis.look.export import SAMPLES, Export, Tables
from assay.analysis.look.readback import write_sidecar
from assay.engine.experiment.imports.foreign import Foreign, Read, files_below, read_foreign
from assay.engine.experiment.imports.own_folder import OwnFolder, check_free, own_results
from assay.engine.experiment.imports.results import folder_names, import_one
from assay.engine.experiment.imports.sidecar import (
    BESIDE_FILE,
    INSIDE_FOLDER,
    SidecarHead,
    head_of_sidecar,
)
from assay.engine.experiment.sources import find_source
from assay.engine.experiment.trust import CONFIG
from assay.errors import UserError, shown
from assay.shown import Shown
from assay.store.files import make_folder, store_error, sweep, sync_folder, temporary_of
from assay.store.keys import canonical, digest
from assay.store.shared.mirror import local
from assay.store.written import LEDGER, digest_of
from assay.usercode import failing

OWN = "assay"
_OBJECTS = 50_000  # that are made before Python looks for cycles among them
Step = Callable[[int, int], None]


class Converted(Shown, kw_only=True):
    """What one conversion wrote: `aside` counts the rows that are wholly or in part in the sidecar."""

    source: str
    path: str
    format: str
    sidecar: str = ""
    items: int = 0
    responses: int = 0
    evaluations: int = 0
    aside: dict[str, int] = {}
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
    params: Mapping[str, Any] | None = None,
    step: Step | None = None,
) -> list[Converted]:
    """Write what is at `source`, in whatever format, to `target`, in the format that `to` or its suffix names. Several
    experiments get a file or folder each in it. What exists is never replaced; `step` is told how far it is."""
    if reading.address(target):
        raise UserError(
            "a conversion is written to a path here",
            where=str(target),
            fix="name one, then copy it",
        )
    path, place = local(source), Path(target)
    name = _format(to, place)
    if path.resolve() == place.resolve():
        raise UserError(
            "source and target are the same", where=str(place), fix="name another target"
        )
    _check_apart(path, place)
    write = registry.writer.get(name, base=Path.cwd(), where="--to")
    known = registry.parameters(write)
    own = {key: value for key, value in (params or {}).items() if key in known}
    rest = {key: value for key, value in (params or {}).items() if key not in known}
    read = _read(path, format_name, rest)
    suffix = next((suffix for suffix, format in suffixes().items() if format == name), "")
    targets = (
        [place] if len(read) == 1 else [place / f"{each}{suffix}" for each in folder_names(read)]
    )
    job = _Conversion(
        name,
        registry.check_params(write, own, where="--set"),
        str(source),
        step or (lambda *_: None),
    )
    before = gc.get_threshold()
    gc.set_threshold(
        before[0] and max(before[0], _OBJECTS), *before[1:]
    )  # rows are in no cycles: a sixth of the time
    try:
        return [job.convert(each, at) for each, at in zip(read, targets, strict=True)]
    finally:
        gc.set_threshold(*before)


def _check_apart(path: Path, place: Path) -> None:
    if (
        path.is_dir()
        and place.resolve().is_relative_to(path.resolve())
        and (path / "manifest.json").exists()
    ):
        raise UserError(
            "the target is inside the source", where=str(place), fix="name a place outside of it"
        )


def _read(path: Path, format_name: str, params: Mapping[str, Any]) -> list[Read]:
    if format_name in ("", OWN):
        own = own_results(path) if os.path.isdir(path) else []
        if own:
            return [Read(OWN, each) for each in own]
    return read_foreign(path, format_name, params)


def suffixes() -> dict[str, str]:
    """The format of a file by its suffix: that of its name, or of the file that its writer names."""
    found: dict[str, str] = {}
    for name in formats():
        whole = getattr(registry.writer.get(name), "__assay__", {}).get("whole")
        suffix = Path(str(whole)).suffix if whole else f".{name}"
        found.setdefault(suffix, name) if suffix else None
    return found


def _format(to: str, place: Path) -> str:
    name = to.replace("-", "_")
    if name:
        if name not in formats():
            only = " has no reader" if name in registry.writer.names() else ""
            what = (
                f"cannot convert to {to!r}: it{only}"
                if only
                else f"there is no format {to!r} to convert to"
            )
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
    params: dict[str, Any]
    source: str
    step: Step

    def convert(self, read: Read, target: Path) -> Converted:
        if self.format == OWN:
            return self._to_own(read, target)
        head = SidecarHead(
            format=self.format, source=_digest(read.foreign), params=dict(self.params)
        )
        sidecar = _sidecar_at(target, folder=target.is_dir())
        if _is_done(target, head):
            return Converted(
                source=self.source,
                path=shown(str(target)),
                format=self.format,
                sidecar=shown(str(sidecar)),
                unchanged=True,
                notes=["this source was converted before, and what was written is unchanged"],
            )
        with _workspace(target) as work:
            tables = Tables(_rows(read, work))
            result = self._write(tables, read.foreign, head, work / target.name)
            _publish(work, target)
        result.path = shown(str(target))
        result.sidecar = shown(str(_sidecar_at(target, folder=target.is_dir())))
        return result

    def _to_own(self, read: Read, target: Path) -> Converted:
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

    def _write(self, tables: Tables, foreign: Foreign, head: SidecarHead, path: Path) -> Converted:
        write = registry.writer.get(self.format)
        whole = bool(getattr(write, "__assay__", {}).get("whole"))
        counts = {kind: _count(tables, kind) for kind in ("dataset", "run", "evaluation")}
        total = sum(counts.values())
        self.step(0, 2 * total)
        with failing(write, f"the format {self.format!r}", "--to"):
            export = Export(tables, "responses" if whole else SAMPLES, path, whole=whole)
            notes = list(write(export, **self.params) or ())
        again = registry.reader.get(self.format)(path)
        if len(again) != 1:
            what = f"what the format {self.format!r} wrote is read as {len(again)} experiments"
            raise UserError(
                what,
                where=str(path),
                fix="choose another format: this experiment does not fit into it",
            )
        folder, config = tables.source.folder, ""
        if folder is not None and (folder / CONFIG).is_file():
            config = reading.text(folder / CONFIG)
        files = {str(file.relative_to(path.parent)): digest_of(file) for file in _files(path)}
        head.files, head.config, head.dataset = files, config, foreign.dataset
        head.planned = foreign.planned
        sidecar = _sidecar_at(path, folder=path.is_dir())
        aside = write_sidecar(
            sidecar,
            head,
            tables,
            again[0],
            lambda done: self.step(total + min(done, total), 2 * total),
        )
        self.step(2 * total, 2 * total)
        return Converted(
            source=self.source,
            path="",
            format=self.format,
            items=counts["dataset"],
            responses=counts["run"],
            evaluations=counts["evaluation"],
            aside=dict(aside),
            notes=[*tables.partial(), *notes],
        )


def _rows(read: Read, work: Path) -> Any:
    """The rows of an experiment: where they are, or imported beside the target."""
    if isinstance(read.foreign, OwnFolder):
        return read.foreign.rows
    import_one(read, work / "source")
    return find_source(work / "source", foreign=False)


def _digest(foreign: Foreign) -> str:
    return digest("converted", canonical(dict(foreign.source))).hex()


def _count(tables: Tables, kind: Any) -> int:
    manifest = tables.source.manifest(kind)
    return sum(manifest.counts.values()) if manifest is not None else 0


# ---- where it is written


def _sidecar_at(path: Path, *, folder: bool) -> Path:
    return path / INSIDE_FOLDER if folder else path.with_name(path.name + BESIDE_FILE)


def _files(path: Path) -> list[Path]:
    """What a writer has written, but the sidecar."""
    return [file for file in files_below(path, "") if file.name not in (INSIDE_FOLDER, LEDGER)]


def _is_done(target: Path, head: SidecarHead) -> bool:
    """Whether this conversion was made before; anything else that exists is refused."""
    sidecar = _sidecar_at(target, folder=target.is_dir())
    before = head_of_sidecar(sidecar)
    same = before is not None and (before.format, before.source, before.params) == (
        head.format,
        head.source,
        head.params,
    )
    if not target.exists():
        if sidecar.exists() and not same:
            raise _refused(sidecar)
        return False
    if target.is_dir() and not any(target.iterdir()):
        return False
    if before is None or not same:
        raise _refused(target)
    there = {str(file.relative_to(target.parent)): digest_of(file) for file in _files(target)}
    if there != before.files:
        raise _refused(target)
    return True


def _refused(path: Path) -> UserError:
    what = "this exists, and is not what an earlier conversion of the same source has written"
    return UserError(what, where=str(path), fix="choose another name, or remove it")


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


def _publish(work: Path, target: Path) -> None:
    """The sidecar first: a target without it would look whole."""
    made = work / target.name
    try:
        if made.is_file():
            sidecar = _sidecar_at(made, folder=False)
            os.replace(sidecar, target.with_name(sidecar.name))
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise _refused(target)
        os.rename(made, target)
        sync_folder(target.parent)
    except OSError as error:
        raise store_error(error, target) from error
