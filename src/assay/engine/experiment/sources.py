"""What a path stands for: an experiment folder, or one file of rows from anywhere.

Rows are read where they are. A folder that was evaluated from rows elsewhere remembers in its manifest where those are.
"""

from pathlib import Path

import msgspec

from assay.config import Config, Need, load
from assay.engine.experiment.trust import CONFIG, check_rows, stored_config, write_config
from assay.engine.run.evidence import NOUNS, Evidence, examine
from assay.sdk import ROWS_FILE, JsonMapping, JsonObject, Kind, Manifest, UserError
from assay.store.log import FileLog
from assay.store.shared.mirror import placed, refresh
from assay.store.stores import FolderStore, read_manifests

ConfigSource = str | Path | JsonMapping | Config
_ANSWERS: tuple[Kind, ...] = ("run", "evaluation")
# the key of an evaluation's metadata under which the files are that it was made from
ELSEWHERE = "rows"


class Source(msgspec.Struct, kw_only=True):
    """`files` has the rows of each kind, `more` further files where an evaluation was made from several runs. `folder`
    is None for a file that is not part of an experiment's folder. `facts` is what a reader of all rows learned, for the
    next one that asks."""

    path: Path
    name: str
    origin: str = ""
    files: dict[Kind, Path]
    folder: Path | None = None
    more: dict[Kind, list[Path]] = {}
    examined: dict[Path, Evidence] = {}
    facts: JsonObject = {}

    @property
    def place(self) -> str:
        """Return where it is, as the user has named it."""
        return self.origin or str(self.path)

    def logs(self, kind: Kind) -> list[FileLog]:
        """All rows of a kind that count, file by file; none if there are none."""
        first = [self.files[kind]] if kind in self.files else []
        return [self._evidence_of(kind, file).log for file in (*first, *self.more.get(kind, ()))]

    def row_files(self) -> set[Path]:
        """Return the files of its responses and labels, wherever they are, and those to come of a
        run that has begun."""
        begun = [self.path / ROWS_FILE[kind] for kind in read_manifests(self.path, *_ANSWERS)]
        own = [file for kind, file in self.files.items() if kind in _ANSWERS]
        more = [file for kind in _ANSWERS for file in self.more.get(kind, ())]
        return {file.resolve() for file in (*begun, *own, *more)}

    def log(self, kind: Kind, missing: str) -> FileLog:
        """The rows of a kind that count; `missing` says what to do where there are none."""
        if not self.has_rows(kind):
            where = str(self.files.get(kind, self.path / ROWS_FILE[kind]))
            raise UserError(
                f"there are no {NOUNS[kind]} in {self.place!r}", where=where, fix=missing
            )
        return self.evidence(kind).log

    def has_rows(self, kind: Kind) -> bool:
        """Return whether there is a file of this kind that is not empty."""
        file = self.files.get(kind)
        return file is not None and any(part.size for part in FileLog(file).segments())

    def looks_sealed(self, kind: Kind) -> bool:
        """Return whether the files have the size and the time of their seal, so that it is enough
        to check their bytes when all of them are read."""
        manifest = self.manifest(kind)
        return manifest is not None and manifest.segments == FileLog(self.files[kind]).segments()

    def evidence(self, kind: Kind) -> Evidence:
        """The rows of a kind, compared with what their manifest says."""
        return self._evidence_of(kind, self.files[kind])

    def _evidence_of(self, kind: Kind, file: Path) -> Evidence:
        if file not in self.examined:
            self.examined[file] = examine(FileLog(file), _manifest(kind, file))
        return self.examined[file]

    def partial(self) -> str:
        """Return what is present of what was planned, where that is not all; empty if the
        evaluations are whole."""
        return self.evidence("evaluation").partial if "evaluation" in self.files else ""

    def manifest(self, kind: Kind) -> Manifest | None:
        """Return what the rows of a kind are, if they are ours."""
        return _manifest(kind, self.files[kind]) if kind in self.files else None


def _manifest(kind: Kind, file: Path) -> Manifest | None:
    return read_manifests(file.parent, kind).get(kind) if file.name == ROWS_FILE[kind] else None


def source_in(folder: Path) -> Source:
    """Return what is in a folder, rows or none."""
    files, more = _files(folder)
    name = folder.resolve().name or "experiment"
    return Source(path=folder, name=name, files=files, folder=folder, more=more)


def _files(folder: Path) -> tuple[dict[Kind, Path], dict[Kind, list[Path]]]:
    """The files of a folder's rows, by kind, and further ones of a kind."""
    found: dict[Kind, Path] = {}
    for kind, name in ROWS_FILE.items():
        if FileLog(folder / name).segments():
            found[kind] = folder / name
    more: dict[Kind, list[Path]] = {}
    for kind, files in elsewhere(folder).items():
        for file in files:
            if not file.exists():
                continue
            if kind in found:
                more.setdefault(kind, []).append(file)
            else:
                found[kind] = file
    items = _items_of_run(folder) if "run" in found and "dataset" not in found else None
    if items is not None:
        found["dataset"] = items
    return found, more


def elsewhere(folder: Path) -> dict[Kind, list[Path]]:
    """The files that the evaluation in a folder was made from, as it remembers them; those of a foreign folder only if
    the user trusts it."""
    found: dict[Kind, list[Path]] = {}
    inside: dict[Kind, list[Path]] = {}  # one repository
    for manifest in read_manifests(folder, "evaluation").values():
        rows: dict[Kind, str | list[str]] = manifest.metadata.get(ELSEWHERE) or {}
        for kind, files in rows.items():
            found[kind] = [*map(placed, [files] if isinstance(files, str) else files)]
        if not rows and folder.resolve().parent.name == "evaluations":
            inside |= _inputs_in_repository(folder, manifest)
    files = [file for files in found.values() for file in files]
    check_rows(folder, files)
    for file in files:
        refresh(file)
    return found | inside


def _inputs_in_repository(folder: Path, manifest: Manifest) -> dict[Kind, list[Path]]:
    """The files behind an artefact that is one of several in a repository."""
    found: dict[Kind, list[Path]] = {}
    store = FolderStore(folder.resolve().parents[1])
    for kind, id in ((entry.get("kind"), entry.get("id")) for entry in manifest.inputs):
        if kind and id and _exists(file := store.directory(kind, id) / ROWS_FILE[kind]):
            found.setdefault(kind, []).append(file)
    return found


def _items_of_run(folder: Path) -> Path | None:
    """The items of a run that is one of several in a repository."""
    run = read_manifests(folder, "run").get("run")
    found = _inputs_in_repository(folder, run) if run else {}
    return next(iter(found.get("dataset", ())), None)


def _exists(file: Path) -> bool:
    refresh(file)
    return file.exists()


# ---- the config of existing rows


def config_of(
    config: ConfigSource | None, source: Source, need: Need, overrides: JsonMapping
) -> Config:
    if isinstance(config, Config):
        return config
    if config is None:
        if source.folder is None or not (source.folder / CONFIG).is_file():
            where = str((source.folder or source.path.parent) / CONFIG)
            raise UserError("there is no config", where=where, fix="name one with -c")
        return stored_config(source.folder, need, overrides)
    return load(config, overrides=overrides, need=need)


def keep_config(folder: Path, config: Config) -> str:
    """A folder that has no config yet gets this one; that of its run stays."""
    return "" if (folder / CONFIG).exists() else write_config(folder, config)
