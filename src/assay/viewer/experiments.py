"""The experiments that are looked at: those below some paths, by ids that addresses can name."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.analysis.look.ls import Listed, ls
from assay.errors import UserError
from assay.records import ROWS_FILE
from assay.registry import nearest
from assay.store.log import FileLog

if TYPE_CHECKING:
    from assay.engine.experiment.sources import Source


class Experiments:
    """`ids` are paths below the roots (with several roots, their names come first), so that an address outlives the
    process. Nothing outside the roots can be named."""

    def __init__(self, paths: Sequence[str | Path] = (".",)) -> None:
        self.roots = [Path(path) for path in paths]
        self.names = [str(root) for root in self.roots]
        self._folders: dict[str, Path] = {}
        self._sources: dict[str, tuple[object, Source]] = {}
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
