"""What a path stands for: an experiment folder, or one file of rows from anywhere.

Rows are read where they are. A folder that was evaluated from rows elsewhere remembers in its manifest where those are.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.config import Config, Need, load
from assay.engine.experiment.trust import CONFIG, check_rows, stored_config, write_config
from assay.engine.run.evidence import NOUNS, Evidence, examine
from assay.errors import StoreError, UserError, shown
from assay.records import ROWS_FILE, Kind, Manifest
from assay.store.files import walk_folders
from assay.store.log import FileLog
from assay.store.shared.mirror import local, placed, refresh
from assay.store.stores import MANIFEST, FlatStore, FolderStore, read_manifests

ConfigSource = str | Path | Mapping[str, Any] | Config
MOST_LISTED = 20
_MADE: tuple[Kind, ...] = ("run", "evaluation")
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
    facts: dict[str, Any] = {}

    @property
    def place(self) -> str:
        """Where it is, as the user has named it."""
        return self.origin or str(self.path)

    def logs(self, kind: Kind) -> list[FileLog]:
        """All rows of a kind that count, file by file; none if there are none."""
        first = [self.files[kind]] if kind in self.files else []
        return [self._examined(kind, file).log for file in (*first, *self.more.get(kind, ()))]

    def row_files(self) -> set[Path]:
        """Return the files of its responses and labels, wherever they are."""
        own = [self.files[kind] for kind in _MADE if kind in self.files]
        more = [file for kind in _MADE for file in self.more.get(kind, ())]
        return {file.resolve() for file in (*own, *more)}

    def log(self, kind: Kind, missing: str) -> FileLog:
        """The rows of a kind that count; `missing` says what to do where there are none."""
        file = self.files.get(kind)
        if file is None or not any(segment.size for segment in FileLog(file).segments()):
            where = str(file or self.path / ROWS_FILE[kind])
            raise UserError(
                f"there are no {NOUNS[kind]} in {self.place!r}", where=where, fix=missing
            )
        return self.evidence(kind).log

    def looks_sealed(self, kind: Kind) -> bool:
        """Whether the files have the size and the time of their seal, so that it is enough to check their bytes when
        all of them are read."""
        manifest = self.manifest(kind)
        return manifest is not None and manifest.segments == FileLog(self.files[kind]).segments()

    def evidence(self, kind: Kind) -> Evidence:
        """The rows of a kind, compared with what their manifest says."""
        return self._examined(kind, self.files[kind])

    def _examined(self, kind: Kind, file: Path) -> Evidence:
        if file not in self.examined:
            self.examined[file] = examine(FileLog(file), _manifest(kind, file))
        return self.examined[file]

    def partial(self) -> str:
        """What is present of what was planned, where that is not all; empty if the evaluations are whole."""
        return self.evidence("evaluation").partial if "evaluation" in self.files else ""

    def manifest(self, kind: Kind) -> Manifest | None:
        """What the rows of a kind are, if they are ours."""
        return _manifest(kind, self.files[kind]) if kind in self.files else None


def _manifest(kind: Kind, file: Path) -> Manifest | None:
    store = FlatStore(file.parent)
    return (
        next((store.manifest(kind, id) for id in store.ids(kind)), None)
        if file.name == ROWS_FILE[kind]
        else None
    )


class SeveralExperiments(UserError):
    """There are several experiments at a path, and the verb is about one. `places` are what to name instead of the
    path: none where one file holds them all."""

    def __init__(self, path: str | Path, sources: list[Source]) -> None:
        self.path = str(path)
        named = [source.place for source in sources]
        self.places = [shown(place) for place in named if os.path.exists(place)]
        fix = [f"make a folder of each: assay import {path} -o FOLDER"]
        if self.places:
            fix = ["name one of them:", *self.places[:MOST_LISTED]]
        super().__init__(
            f"there are {len(named):,} experiments at {self.path!r}", fix="\n         ".join(fix)
        )


def find_source(path: str | Path, kind: Kind | None = None, *, foreign: bool = True) -> Source:
    """Return the one experiment at a path; several are an error that names them. `kind` is what a file holds that is
    not called like one of ours. Results of another program are imported, once, to where this user's Assay keeps such
    copies, unless `foreign` is false."""
    sources = _sources_at(local(path), kind, foreign=foreign)
    if len(sources) > 1:
        raise SeveralExperiments(path, sources)
    return sources[0]


def find_sources(paths: Sequence[str | Path], kind: Kind | None = None) -> list[Source]:
    """Return all experiments at some paths, each with a name of its own."""
    return _named_apart([source for path in paths for source in _sources_at(local(path), kind)])


def find_each(paths: str | Path | Sequence[str | Path], kind: Kind | None = None) -> list[Source]:
    """Return the one experiment at each path, with a name of its own."""
    named = [paths] if isinstance(paths, (str, Path)) else paths
    return _named_apart([find_source(path, kind) for path in named])


def _named_apart(sources: list[Source]) -> list[Source]:
    if not sources:
        raise UserError("there is nothing to read", fix="name an experiment's folder")
    seen: set[Path] = set()
    for source in sources:
        if (place := source.path.resolve()) in seen:
            raise UserError(f"{str(source.path)!r} is given twice", fix="name each experiment once")
        seen.add(place)
    return name_apart(sources)


def _sources_at(path: Path, kind: Kind | None, *, foreign: bool = True) -> list[Source]:
    if os.path.isdir(path):  # False for a name that no file can have
        return _sources_in(path, foreign=foreign)
    if not os.path.isfile(path):
        raise _nothing_at(path)
    own: Kind | None = next((known for known, name in ROWS_FILE.items() if name == path.name), None)
    if own is None or (kind is not None and own != kind):
        imported = _imported(path) if foreign else []
        return imported or [Source(path=path, name=path.stem, files={kind or _kind_of(path): path})]
    ours = bool(FlatStore(path.parent).ids(own))
    beside = _source_in(path.parent)
    return [msgspec.structs.replace(beside, path=path, folder=path.parent if ours else None)]


def _nothing_at(path: Path) -> UserError:
    from assay.config.source import similar_files

    return UserError(f"there is no file or folder {str(path)!r}", fix=similar_files(path))


def _sources_in(folder: Path, *, foreign: bool) -> list[Source]:
    """Return the experiments in a folder: itself if it has a manifest or rows, otherwise those of ours at any depth, and
    those of other programs only where there are none."""
    itself = _source_in(folder)
    if read_manifests(folder) or itself.files.keys() - {"dataset"}:
        return [itself]
    return sources_below(folder) or (foreign and _imported(folder)) or [itself]


def sources_below(folder: Path) -> list[Source]:
    """Return the experiment of ours that a folder is, or those below it. One whose rows another one shows, such as a run
    in a repository beside its evaluation, is a part of that; items and metrics alone are none."""
    found = [_source_in(each) for each in experiment_folders(folder) if _is_ours(each, *_MADE)]
    parts: set[Path] = set()
    for source in found:
        own = source.path.resolve()
        parts |= {file for file in source.row_files() if file.parent != own}
    return [source for source in found if not (rows := source.row_files()) or not rows <= parts]


def _is_ours(folder: Path, *kinds: Kind) -> bool:
    """Whether there is a manifest of ours, or one that is damaged beside rows."""
    try:
        return bool(read_manifests(folder, *kinds))
    except StoreError:
        return any(FileLog(folder / name).segments() for name in ROWS_FILE.values())


def _imported(path: Path) -> list[Source]:
    """Return the experiments of other programs at a path, as folders of ours."""
    # most paths are folders of ours
    from assay.engine.experiment.imports.copies import imported_copies

    return [
        msgspec.structs.replace(_source_in(copy.folder), name=copy.name, origin=copy.origin)
        for copy in imported_copies(path)
    ]


def experiment_folders(folder: Path) -> list[Path]:
    """Return the folder itself if it has a manifest of ours, otherwise those below it that have one."""
    if _is_ours(folder):
        return [folder]
    below = (Path(each) for each, names in walk_folders(str(folder)) if MANIFEST in names)
    return [each for each in below if _is_ours(each)]


def folders_at(path: str | Path, *, rows: bool = True) -> list[tuple[Path, str]]:
    """Return the folders of all experiments at a path, ours or copies of another program's, and what the user calls
    each; none is an error. `rows` are fetched from a bucket."""
    named = local(path, rows=rows)
    place = named.parent if os.path.isfile(named) else named
    is_ours = place == named or (place / MANIFEST).is_file()
    if folders := experiment_folders(place) if is_ours else []:
        return [(folder, shown(str(folder))) for folder in folders]
    if not os.path.exists(named):
        raise _nothing_at(named)
    if copies := _imported(named):
        return [(copy.path, copy.place) for copy in copies]
    fix = "name an experiment's folder; `assay ls` lists those below one"
    raise UserError(f"there is no experiment in {str(path)!r}", fix=fix)


def name_apart(sources: list[Source]) -> list[Source]:
    """The sources, those of one name called by their paths."""
    names = Counter(source.name for source in sources)
    for source in sources:
        if names[source.name] > 1:
            source.name = source.place
    return sources


def _source_in(folder: Path) -> Source:
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
    store = FlatStore(folder)
    found: dict[Kind, list[Path]] = {}
    inside: dict[Kind, list[Path]] = {}  # one repository
    for manifest in filter(
        None, [store.manifest("evaluation", id) for id in store.ids("evaluation")]
    ):
        rows: dict[Kind, str | list[str]] = manifest.metadata.get(ELSEWHERE) or {}
        for kind, files in rows.items():
            found[kind] = [*map(placed, [files] if isinstance(files, str) else files)]
        if not rows:
            inside |= _inputs_in_repository(folder, manifest)
    files = [file for files in found.values() for file in files]
    check_rows(folder, files)
    for file in files:
        refresh(file)
    return found | inside


def _inputs_in_repository(folder: Path, manifest: Manifest) -> dict[Kind, list[Path]]:
    """The files behind an evaluation that is one of several artefacts in a repository."""
    found: dict[Kind, list[Path]] = {}
    if folder.resolve().parent.name == "evaluations":
        store = FolderStore(folder.resolve().parents[1])
        for kind, id in ((entry.get("kind"), entry.get("id")) for entry in manifest.inputs):
            if kind and id and _exists(file := store.directory(kind, id) / ROWS_FILE[kind]):
                found.setdefault(kind, []).append(file)
    return found


def _items_of_run(folder: Path) -> Path | None:
    """The items of a run that is one of several in a repository."""
    store = FlatStore(folder)
    manifest = next((store.manifest("run", id) for id in store.ids("run")), None)
    for entry in manifest.inputs if manifest else ():
        if entry.get("kind") == "dataset" and entry.get("id"):
            file = (
                FolderStore(folder.resolve().parents[1]).directory("dataset", entry["id"])
                / ROWS_FILE["dataset"]
            )
            return file if _exists(file) else None
    return None


def _exists(file: Path) -> bool:
    refresh(file)
    return file.exists()


def _kind_of(path: Path) -> Kind:
    """The kind of a file's rows, by the fields of its first one."""
    fields: dict[str, Any] = {}
    for _, line in FileLog(path).scan():
        try:
            row = msgspec.json.decode(line)
        except msgspec.DecodeError:
            break
        fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        break
    for kind, marks in _MARKS.items():
        if any(mark in fields for mark in marks):
            return kind
    raise UserError(
        "the first row of this file is of no known kind",
        where=str(path),
        fix="a row has `metric_name`, `label` and `score`, `response`, or `id`",
    )


_MARKS: dict[Kind, tuple[str, ...]] = {
    "aggregation": ("metric_name",),
    "evaluation": ("label", "passed", "score"),
    "run": ("response", "output"),
    "dataset": ("id", "data", "ground_truth"),
}


# ---- the config of existing rows


def config_of(
    config: ConfigSource | None, source: Source, need: Need, overrides: Mapping[str, Any]
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
