"""The experiments that are looked at: those below some paths, by ids that addresses can name."""

import os
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from assay.analysis.look.ls import Listed, ls
from assay.datasets._labels import FILE as LABELS
from assay.sdk import ROWS_FILE, AssayError, UserError, nearest, shown
from assay.store.log import FileLog
from assay.store.shared.mirror import local, refresh
from assay.text.plain import plain

if TYPE_CHECKING:
    from assay.engine.experiment.sources import Source

T = TypeVar("T")
_AGE = 5.0  # seconds, of copies of rows that are in a bucket
_AGE_OF_LISTS = 30.0  # a listing for each folder costs money


class Experiments:
    """`ids` are paths below the roots (with several roots, their names come first), so that an address outlives the
    process. Nothing outside the roots can be named. `origins` says of a root that is a copy of another program's
    results what the user calls it. `annotator` is who labels, if that was said at the start. `still`: what was read
    once is taken as it was then, because what is made of it is of one moment."""

    annotator = ""
    still = False

    def __init__(
        self, paths: Sequence[str | Path] = (".",), origins: Mapping[Path, str] | None = None
    ) -> None:
        self.roots = [local(path, rows=False) for path in paths]
        self.names = [plain(shown(str(root))) for root in self.roots]
        self._origins = origins or {}
        self._listed: dict[str, Listed] = {}
        self._folders: dict[str, Path] = {}
        self._sources: dict[str, tuple[object, Source]] = {}
        self._cached: dict[Hashable, dict[Hashable, tuple[object, Any]]] = {}
        self._making: dict[Hashable, threading.Lock] = {}

    def list(self) -> dict[str, Listed]:
        """Every experiment, read anew, by id."""
        if self.still and self._listed:
            return self._listed
        listed: dict[str, Listed] = {}
        for root in self.roots:
            refresh(root, rows=False, age=_AGE_OF_LISTS)
            for entry in ls(root, foreign=False):
                listed[self._id(root, Path(entry.folder), listed)] = entry
        self._folders = {id: Path(entry.folder) for id, entry in listed.items()}
        self._listed = listed
        return listed

    def _id(self, root: Path, folder: Path, taken: dict[str, Listed]) -> str:
        inside = os.path.relpath(folder, root)
        name = (
            os.path.basename(self._origins.get(root, "").rstrip("/"))
            or root.resolve().name
            or "root"
        )
        id = name if inside == "." else inside if len(self.roots) == 1 else f"{name}/{inside}"
        return id if id not in taken else self._origins.get(root, str(folder))

    def folder(self, id: str) -> Path:
        if id not in self._folders:
            self.list()
        if id not in self._folders:
            raise UserError(f"there is no experiment {id!r}", fix=nearest(id, self._folders))
        return self._folders[id]

    def source(self, id: str) -> "Source":
        """The rows of an experiment; what was examined stays until a file changes."""
        return self._current(id)[1]

    def _current(self, id: str) -> tuple[object, "Source"]:
        # a list of experiments needs no rows
        from assay.engine.experiment.sources import source_in

        if self.still and id in self._sources:
            return self._sources[id]
        folder = self.folder(id)
        refresh(folder, age=_AGE)
        state, source = self._sources.get(id, (None, None))
        if source is None or source.path != folder or state != _state(source):
            source = source_in(folder)
            if not source.files:  # a folder of another program, which `ls` knows
                from assay.engine.experiment.resolve import find_source

                source = find_source(folder)
            self._sources[id] = _state(source), source
        return self._sources[id]

    def cached(
        self, key: tuple[Hashable, ...], ids: Sequence[str], make: Callable[[], T], most: int = 64
    ) -> T:
        """What `make` gives, made once until a file of these experiments changes, labels among them. Whoever asks for
        what is being made waits for it. Of a kind, which is the key's first part, there are at most so many."""
        with self._making.setdefault(key, threading.Lock()):
            state = [] if self.still else [*map(self._now, ids)]
            kind = self._cached.setdefault(key[0], {})
            before, value = kind.pop(key, (None, None))
            try:
                value = make() if before != state else value
            except BaseException:
                self._making.pop(key, None)
                raise
            kind[key] = state, value
            for oldest in list(kind)[:-most] if len(kind) > most else ():
                kind.pop(oldest, None)
                self._making.pop(oldest, None)
            return cast("T", value)

    def _now(self, id: str) -> object:
        """Return what changes with the files of an experiment; where its rows are out of reach, that is unknown."""
        try:
            files, source = self._current(id)
        except AssayError:
            return object()
        return files, _stat(source, LABELS)


def _state(source: "Source") -> object:
    """The files behind a source as they are now: rows, wherever they are, and the manifest."""
    own = [(source.folder or source.path.parent) / name for name in ROWS_FILE.values()]
    more = [file for files in source.more.values() for file in files]
    files = dict.fromkeys([*own, *source.files.values(), *more])
    return [FileLog(file).segments() for file in files], _stat(source, "manifest.json")


def _stat(source: "Source", name: str) -> tuple[int, int] | None:
    try:
        stat = os.stat((source.folder or source.path.parent) / name)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _copies(path: str | Path) -> dict[Path, str]:
    """The copies of results of other programs at a path that has nothing of ours, and what the user calls each."""
    place = local(path, rows=False)
    if place.is_dir() and ls(place, foreign=False):
        return {}
    from assay.engine.experiment.imports.copies import imported_copies

    copies = imported_copies(place) if place.exists() else []
    if place.is_file() and not copies:
        fix = "name an experiment's folder, or results of another program that `assay import` can read"
        raise UserError(f"{str(path)!r} is a file, not a folder", fix=fix)
    return {copy.folder: copy.origin for copy in copies}


def _measure(folder: Path) -> None:
    """The means of a copy's labels, newer than its rows: without metrics there is no leaderboard."""
    from assay.engine.experiment.existing import aggregate
    from assay.threads import run_blocking

    rows, metrics = (folder / ROWS_FILE[kind] for kind in ("evaluation", "aggregation"))
    if rows.exists() and not (
        metrics.exists() and metrics.stat().st_mtime_ns >= rows.stat().st_mtime_ns
    ):
        with suppress(AssayError):  # rows without scores have none
            run_blocking(lambda: aggregate(folder, None).run())


def experiments_below(paths: Sequence[str | Path]) -> Experiments:
    """The experiments in and below these folders; none at all is a mistake of the caller."""
    copies = [_copies(path) for path in paths]
    for folder in chain.from_iterable(copies):
        _measure(folder)
    roots = [
        root for path, several in zip(paths, copies, strict=True) for root in several or [path]
    ]
    experiments = Experiments(
        roots, {root: name for several in copies for root, name in several.items()}
    )
    experiments.names = [plain(shown(str(path))) for path in paths]
    if not experiments.list():
        below = ", ".join(repr(str(path)) for path in paths)
        raise UserError(
            f"there are no experiments below {below}", fix="make one: assay init, then assay run"
        )
    return experiments
