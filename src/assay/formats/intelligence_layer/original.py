"""The original's files as one of our stores, to be read, and a folder that has both layouts.

`runs/<id>.json` is an overview and `runs/<id>/output/<example>.json` an output;
`evaluations/<id>.json` (or `.partial_json`) is an overview and `evaluations/<id>/<example>.json` a
result; `aggregations/<id>.json` is an overview. An id that is not a plain file name is encoded; the
true one stands in the file.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from assay.sdk import JsonObject, Kind, Log, Manifest, Store, safe_name
from assay.store.memory_log import MemoryLog
from assay.store.stores import MANIFEST, FolderStore

_OVERVIEWS = {"overview": ".json", "partial": ".partial_json"}


def entry_name(folder: Path, id: str) -> str:
    """Return the name of an id's entry. The original took any id for a name: what is listed under
    it is meant."""
    safe = safe_name(id)
    if safe == id or not folder.is_dir():
        return safe
    return id if {id, f"{id}.json"} & {entry.name for entry in folder.iterdir()} else safe


class OriginalStore:
    """What the original wrote of one kind: overviews are manifests, and the files of examples,
    which are in the folder `examples` of their artefact, are rows: `read` gives those of a file."""

    def __init__(
        self,
        root_directory: Path,
        kind: Kind,
        examples: str = "",
        read: Callable[[JsonObject], list[Any]] | None = None,
    ) -> None:
        root_directory.mkdir(parents=True, exist_ok=True)
        self.folder = root_directory / f"{kind}s"
        self._examples, self._read = examples, read

    def ids(self) -> list[str]:
        files = [file for ending in _OVERVIEWS.values() for file in self.folder.glob(f"*{ending}")]
        found: list[Any] = [_json(file) for file in files if file.is_file()]
        return sorted(
            {row["id"] for row in found if isinstance(row, dict) and isinstance(row.get("id"), str)}
        )

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        paths = {slot: self.path(id, ending) for slot, ending in _OVERVIEWS.items()}
        plan = {slot: _json(path) for slot, path in paths.items() if path.is_file()}
        return Manifest(kind=kind, id=id, plan=plan) if plan else None

    def rows(self, id: str) -> "OriginalRows":
        log = OriginalRows()
        if self._read is not None:
            for file in self.examples(id):
                log.append(msgspec.json.Encoder().encode_lines(self._read(_json(file))))
        return log

    def examples(self, id: str) -> Iterator[Path]:
        """Yield the files of an artefact's examples, also those in the folders that a slash in an
        id made."""
        folder = self.path(id) / self._examples
        if not (folder / MANIFEST).exists():
            yield from (file for file in sorted(folder.rglob("*.json")) if file.is_file())

    def path(self, id: str, ending: str = "") -> Path:
        return self.folder / f"{entry_name(self.folder, id)}{ending}"


def _json(path: Path) -> JsonObject:
    return json.loads(path.read_text(encoding="utf-8"))


class OriginalRows(MemoryLog):
    """The files of an artefact's examples, as they were when it was opened. What is added or
    replaced is in `ours`, with a copy of the others."""

    ours: Log | None = None

    def append(self, lines: bytes) -> None:
        if self.ours is not None:
            if not self.ours.segments():
                self.ours.append(b"".join(self.blocks()))
            self.ours.append(lines)
        super().append(lines)

    def replace(self, lines: Iterable[bytes]) -> None:
        super().replace(lines)
        if self.ours is not None:
            self.ours.replace(self.blocks())


class FileStore(FolderStore):
    """A folder of ours, in which there may be artefacts of the original."""

    def __init__(self, root: Path, original: OriginalStore) -> None:
        super().__init__(root)
        self.original = original

    def ids(self, kind: Kind) -> list[str]:
        return sorted({*super().ids(kind), *self.original.ids()})

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        return super().manifest(kind, id) or self.original.manifest(kind, id)

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        ours = super().log(kind, id, name)
        if name or ours.segments():
            return ours
        theirs = self.original.rows(id)
        theirs.ours = ours
        return theirs if theirs.segments() else ours


def manifests(store: Store, kind: Kind) -> Iterable[Manifest]:
    """All manifests, sorted by id. In files it is a FileNotFoundError, as in the original, if
    nothing of this kind was ever stored."""
    if isinstance(store, FileStore) and not store.original.folder.exists():
        raise FileNotFoundError(f"nothing was stored in {store.original.folder} yet")
    return filter(None, [store.manifest(kind, id) for id in store.ids(kind)])
