"""What a path stands for: the experiments there, the same ones for every verb, function and page.

A folder with a manifest or rows is one experiment; otherwise those of ours at any depth below it
are, and results of other programs only where there are none. Verbs about one refuse several and
name them; verbs about many take them all.
"""

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.experiment.sources import Source, source_in
from assay.errors import COMMAND, AssayError, UserError, shown
from assay.reading import Paths, each_of
from assay.records import ROWS_FILE, Kind
from assay.sdk import as_object
from assay.store.files import walk_folders
from assay.store.log import FileLog
from assay.store.shared.mirror import local
from assay.store.stores import MANIFEST, read_manifests

_MOST_LISTED = 20


class SeveralExperiments(UserError):
    """There are several experiments at a path, and the verb is about one. `places` are what to
    name instead of the path: none where one file holds them all."""

    def __init__(self, path: str | Path, sources: list[Source]) -> None:
        named = [source.place for source in sources]
        self.places = [shown(place) for place in named if os.path.exists(place)]
        fix = [f"make a folder of each: assay import {path} -o FOLDER"]
        if self.places:
            more = "…" if len(named) > _MOST_LISTED else ""
            listed = [_command(str(path), place) for place in self.places[:_MOST_LISTED]]
            fix = ["name one of them:", *listed, *more]
        what = f"there are {len(named):,} experiments at {str(path)!r}"
        super().__init__(what, fix="\n         ".join(fix))


def _command(path: str, place: str) -> str:
    """Return the command for a place below a path; the place itself where there is no command."""
    if path not in COMMAND:
        return place
    return shlex.join([place if word == path else word for word in COMMAND])


def find_source(path: str | Path, kind: Kind | None = None, *, foreign: bool = True) -> Source:
    """Return the one experiment at a path; several are an error that names them. `kind` is what
    a file holds that is not called like one of ours. Results of another program are imported,
    once, to where this user's Assay keeps such copies, unless `foreign` is false."""
    sources = _sources_at(local(path), kind, foreign=foreign)
    if len(sources) > 1:
        raise SeveralExperiments(path, sources)
    return sources[0]


def find_sources(paths: Sequence[str | Path], kind: Kind | None = None) -> list[Source]:
    """Return all experiments at some paths, each with a name of its own."""
    return _named_apart([source for path in paths for source in _sources_at(local(path), kind)])


def find_each(paths: Paths, kind: Kind | None = None) -> list[Source]:
    """Return the one experiment at each path, with a name of its own."""
    return _named_apart([find_source(path, kind) for path in each_of(paths)])


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
        if foreign and (imported := _import_copies(path)):
            return imported
        return [Source(path=path, name=path.stem, files={kind or _kind_of(path): path})]
    folder = path.parent if read_manifests(path.parent, own) else None
    return [msgspec.structs.replace(source_in(path.parent), path=path, folder=folder)]


def _nothing_at(path: Path) -> UserError:
    from assay.config.source import similar_files

    return UserError(f"there is no file or folder {str(path)!r}", fix=similar_files(path))


def _sources_in(folder: Path, *, foreign: bool) -> list[Source]:
    """Return the experiments in a folder: itself if it has a manifest or rows, otherwise those
    of ours at any depth, and those of other programs only where there are none."""
    itself = source_in(folder)
    if read_manifests(folder) or itself.files.keys() - {"dataset"}:
        return [itself]
    return sources_below(folder) or (foreign and _import_copies(folder)) or [itself]


def sources_below(folder: Path) -> list[Source]:
    """Return the experiment of ours that a folder is, or those below it. One whose rows another
    one shows, such as a run in a repository beside its evaluation, is a part of that; items and
    metrics alone are none."""
    found = [(each, each.row_files()) for each in map(source_in, experiment_folders(folder))]
    parts: set[Path] = set()
    for source, rows in found:
        parts |= {file for file in rows if file.parent != source.path.resolve()}
    return [source for source, rows in found if rows - parts]


def _is_ours(folder: Path) -> bool:
    """Return whether there is a manifest of ours, or one that is damaged beside rows."""
    try:
        return bool(read_manifests(folder))
    except AssayError:
        return any(FileLog(folder / name).segments() for name in ROWS_FILE.values())


def _import_copies(path: Path) -> list[Source]:
    """Return the experiments of other programs at a path, as folders of ours."""
    # most paths are folders of ours
    from assay.engine.experiment.imports.copies import imported_copies

    return [
        msgspec.structs.replace(source_in(copy.folder), name=copy.name, origin=copy.origin)
        for copy in imported_copies(path)
    ]


def experiment_folders(folder: Path) -> list[Path]:
    """Return the folder itself if it has a manifest of ours, otherwise those below it that have
    one."""
    if _is_ours(folder):
        return [folder]
    below = (Path(each) for each, names in walk_folders(str(folder)) if MANIFEST in names)
    return [each for each in below if _is_ours(each)]


def folders_at(path: str | Path, *, rows: bool = True) -> list[tuple[Path, str]]:
    """Return the folders of all experiments at a path, ours or copies of another program's, and
    what the user calls each; none is an error. `rows` are fetched from a bucket."""
    named = local(path, rows=rows)
    beside = os.path.isfile(named) and (named.parent / MANIFEST).is_file()
    if folders := experiment_folders(named.parent if beside else named):
        return [(folder, shown(str(folder))) for folder in folders]
    if not os.path.exists(named):
        raise _nothing_at(named)
    if copies := _import_copies(named):
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


def _kind_of(path: Path) -> Kind:
    """The kind of a file's rows, by the fields of its first one."""
    row: Any = None
    with suppress(msgspec.DecodeError):
        row = msgspec.json.decode(next((line for _, line in FileLog(path).scan()), b"{}"))
    fields = as_object(row)
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
