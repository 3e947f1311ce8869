"""The experiments that are looked at: those below some paths, by ids that addresses can name."""

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.analysis.look.ls import Listed, ls
from assay.datasets._labels import FILE as LABELS
from assay.errors import UserError
from assay.records import ROWS_FILE
from assay.registry import nearest
from assay.store.log import FileLog
from assay.text.plain import plain

if TYPE_CHECKING:
    from assay.engine.experiment.sources import Source

T = TypeVar("T")
_MOST_KEPT = 64


class Experiments:
    """`ids` are paths below the roots (with several roots, their names come first), so that an address outlives the
    process. Nothing outside the roots can be named. `annotator` is who labels, if that was said at the start."""

    annotator = ""

    def __init__(self, paths: Sequence[str | Path] = (".",)) -> None:
        self.roots = [Path(path) for path in paths]
        self.names = [plain(str(root)) for root in self.roots]
        self._folders: dict[str, Path] = {}
        self._sources: dict[str, tuple[object, Source]] = {}
        self._kept: dict[Hashable, tuple[object, Any]] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self.kept: dict[Any, Any] = {}  # what pages keep from one request to the next

    def list(self) -> dict[str, Listed]:
        """Every experiment, read anew, by id."""
        listed: dict[str, Listed] = {}
        for root in self.roots:
            for entry in ls(root):
                listed[self._id(root, Path(entry.folder), listed)] = entry
        self._folders = {id: Path(entry.folder) for id, entry in listed.items()}
        return listed

    def _id(self, root: Path, folder: Path, taken: dict[str, Listed]) -> str:
        inside = os.path.relpath(folder, root)
        name = root.resolve().name or "root"
        id = name if inside == "." else inside if len(self.roots) == 1 else f"{name}/{inside}"
        return id if id not in taken else str(folder)

    def folder(self, id: str) -> Path:
        if id not in self._folders:
            self.list()
        if id not in self._folders:
            raise UserError(f"there is no experiment {id!r}", fix=nearest(id, self._folders))
        return self._folders[id]

    def source(self, id: str) -> "Source":
        """The rows of an experiment; what was examined stays until a file changes."""
        from assay.engine.experiment.sources import find_source, newest_inside  # a list of experiments needs no rows

        folder = newest_inside(self.folder(id))
        state = [(kind, FileLog(folder / name).segments()) for kind, name in ROWS_FILE.items()]
        if id not in self._sources or self._sources[id][0] != state:
            self._sources[id] = (state, find_source(folder))
        return self._sources[id][1]

    def cached(self, key: Hashable, ids: Sequence[str], make: Callable[[], T]) -> T:
        """What `make` gives, made once until a file of these experiments changes. Whoever asks for what is being made
        waits for it."""
        with self._making.setdefault(key, threading.Lock()):
            state = [self._state(id) for id in ids]
            kept = self._kept.pop(key, None)
            try:
                value: T = make() if kept is None or kept[0] != state else kept[1]
            except BaseException:
                self._making.pop(key, None)
                raise
            self._kept[key] = state, value
            for oldest in list(self._kept)[:-_MOST_KEPT]:
                self._kept.pop(oldest, None)
                self._making.pop(oldest, None)
            return value

    def _state(self, id: str) -> object:
        """The files behind an experiment as they are now: rows, wherever they are, and what stands beside them."""
        source = self.source(id)
        files = [*source.files.values(), *(file for files in source.more.values() for file in files)]
        beside = [(source.folder or source.path.parent) / name for name in ("manifest.json", LABELS)]
        stats = [(file.stat().st_mtime_ns, file.stat().st_size) for file in beside if file.exists()]
        return [FileLog(file).segments() for file in files], stats
