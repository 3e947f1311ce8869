"""Where artefacts live: one folder for a whole experiment, a root with a folder for each artefact, or memory.

The two layouts on disk differ only in which directory an artefact has. Ids never become paths (see `safe_name`).
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from uuid import uuid4
from weakref import WeakValueDictionary

import msgspec

from assay import reading
from assay.errors import StoreError, UserError
from assay.interfaces import Log, Store
from assay.records import (
    FILES_VERSION,
    ROWS_FILE,
    Kind,
    Manifest,
    ManifestShape,
    manifest_sections,
)
from assay.registry import nearest
from assay.store.files import refuse_link, safe_name, store_error, write_file
from assay.store.lock import FolderLock
from assay.store.log import FileLog
from assay.store.memory_log import MemoryLog
from assay.store.new_rows import NewRows
from assay.store.sealed import MANIFEST as MANIFEST, manifest_text

LOG_NAMES = ("", "calls", "traces", "superseded", "rejected")
# beside the manifest
EXPERIMENT_FILES = (*ROWS_FILE.values(), "config.yaml", "metrics.json", "status.json")
_FOLDERS: dict[Kind, str] = {
    "dataset": "datasets",
    "run": "runs",
    "evaluation": "evaluations",
    "aggregation": "aggregations",
}


class _DiskStore(ABC):
    """All that both layouts share."""

    def __init__(self) -> None:
        # One object per file: a log that was replaced must not be appended to through an older descriptor.
        self._logs: WeakValueDictionary[Path, FileLog] = WeakValueDictionary()
        self._locks: dict[Path, FolderLock] = {}

    @abstractmethod
    def directory(self, kind: Kind, id: str) -> Path:
        """Where the artefact's files are, or will be."""

    @abstractmethod
    def _directories(self, kind: Kind) -> Iterable[Path]:
        """Every directory that may hold an artefact of this kind."""

    @abstractmethod
    def _remove(self, kind: Kind, directory: Path) -> None: ...

    def ids(self, kind: Kind) -> list[str]:
        found = (read_manifests(directory, kind).get(kind) for directory in self._directories(kind))
        return sorted(manifest.id for manifest in found if manifest is not None)

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        found = read_manifests(self.directory(kind, id), kind).get(kind)
        return found if found is not None and found.id == id else None

    def put_manifest(self, manifest: Manifest) -> None:
        directory = self._own(manifest.kind, manifest.id)
        manifest.files_version = FILES_VERSION
        section = msgspec.Raw(msgspec.json.encode(manifest))
        _write_sections(directory, _sections(directory) | {manifest.kind: section})

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        return self._file_log(kind, id, name)

    def new_rows(
        self, kind: Kind, id: str, name: str = "", *, read: Callable[[bytes], object] | None = None
    ) -> NewRows:
        """Rows that will take the place of a log's; `read` is given all of their bytes, some at a time."""
        return NewRows(self._file_log(kind, id, name), read)

    def _file_log(self, kind: Kind, id: str, name: str) -> FileLog:
        path = self._own(kind, id) / _log_file(kind, name)
        log = self._logs.get(path)
        if log is None:
            if name in ("superseded", "rejected"):
                refuse_link(path.parent)
            log = self._logs[path] = FileLog(path)
        return log

    def delete(self, kind: Kind, id: str) -> None:
        if self.manifest(kind, id) is None:
            return
        directory = self.directory(kind, id)
        with self.lock(kind, id):
            try:
                self._remove(kind, directory)
            except OSError as error:
                raise store_error(error, directory) from error
        for path in [path for path in self._logs if path.is_relative_to(directory)]:
            self._logs[path].close()

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        directory = self._own(kind, id)
        return self._locks.setdefault(directory, FolderLock(directory))

    def _own(self, kind: Kind, id: str) -> Path:
        """The artefact's directory, unless another artefact has it: a flat folder holds one of each kind,
        and some file systems take `A` and `a` for the same name."""
        directory = self.directory(kind, id)
        holder = read_manifests(directory, kind).get(kind)
        if holder is not None and holder.id != id:
            raise UserError(
                f"this folder holds the {kind} {holder.id!r}, not {id!r}",
                where=str(directory),
                fix=f"use the id {holder.id!r}, or another folder",
            )
        return directory


class FlatStore(_DiskStore):
    """An experiment folder: one artefact of each kind in one directory. `id` is their id by default."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = Path(folder)
        self.id = self.folder.resolve().name or "experiment"

    def directory(self, kind: Kind, id: str) -> Path:
        return self.folder

    def _directories(self, kind: Kind) -> Iterable[Path]:
        return [self.folder]

    def _remove(self, kind: Kind, directory: Path) -> None:
        sections = _sections(directory)
        sections.pop(kind, None)
        _write_sections(directory, sections)
        names = ["", "superseded", "rejected"]
        if not {"run", "evaluation"} & set(sections):  # these two share their calls and traces
            names += ["calls", "traces"]
        for name in names:
            path = directory / _log_file(kind, name)
            path.unlink(missing_ok=True)
            shutil.rmtree(path.with_suffix(".d"), ignore_errors=True)
        if kind == "aggregation":
            (directory / "metrics.json").unlink(missing_ok=True)


class View(FlatStore):
    """An experiment folder that shows some artefacts from elsewhere; nothing is ever written to those."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder)
        self._shown: dict[tuple[Kind, str], tuple[Log, Manifest | None]] = {}

    def show(self, kind: Kind, id: str, log: Log, manifest: Manifest | None) -> None:
        self._shown[kind, id] = log, manifest

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        shown = self._shown.get((kind, id))
        return super().manifest(kind, id) if shown is None else shown[1]

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        shown = self._shown.get((kind, id))
        return super().log(kind, id, name) if shown is None or name else shown[0]


class FolderStore(_DiskStore):
    """A repository root: `datasets/<id>/`, `runs/<id>/`, `evaluations/<id>/`, `aggregations/<id>/`."""

    def __init__(self, root: str | Path) -> None:
        super().__init__()
        self.root = Path(root)

    def directory(self, kind: Kind, id: str) -> Path:
        return self.root / _FOLDERS[kind] / safe_name(id)

    def _directories(self, kind: Kind) -> Iterable[Path]:
        folder = self.root / _FOLDERS[kind]
        return folder.iterdir() if folder.is_dir() else []

    def _remove(self, kind: Kind, directory: Path) -> None:
        (
            directory / MANIFEST
        ).unlink()  # first: what has no manifest is not an artefact, should we stop half-way
        shutil.rmtree(directory)


class MemoryStore:
    """Artefacts that end with the process: for notebooks and tests."""

    def __init__(self) -> None:
        self._manifests: dict[tuple[Kind, str], bytes] = {}
        self._logs: dict[tuple[Kind, str, str], MemoryLog] = {}

    def ids(self, kind: Kind) -> list[str]:
        return sorted(own for known, own in self._manifests if known == kind)

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        encoded = self._manifests.get((kind, id))
        return None if encoded is None else msgspec.json.decode(encoded, type=Manifest)

    def put_manifest(self, manifest: Manifest) -> None:
        manifest.files_version = FILES_VERSION
        self._manifests[manifest.kind, manifest.id] = msgspec.json.encode(manifest)

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        return self._logs.setdefault((kind, id, name), MemoryLog(_log_file(kind, name)))

    def delete(self, kind: Kind, id: str) -> None:
        self._manifests.pop((kind, id), None)
        for name in LOG_NAMES:
            self._logs.pop((kind, id, name), None)

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        return nullcontext()


def open_store(folder: str | Path) -> FlatStore | FolderStore:
    """The store in a folder: a repository root if it has one of its four sub-folders, else an experiment."""
    folder = Path(folder)
    is_root = any((folder / name).is_dir() for name in _FOLDERS.values())
    return FolderStore(folder) if is_root else FlatStore(folder)


def is_repository(folder: Path) -> bool:
    """Return whether the folders below one hold artefacts, as those of a repository do: not whole
    experiments, which have their items."""
    found = False
    for name in _FOLDERS.values():
        for file in (folder / name).glob(f"*/{MANIFEST}"):
            found = True
            if name != "datasets" and "dataset" in read_manifests(file.parent):
                return False
    return found


def directory_of(store: Store, kind: Kind, id: str) -> Path | None:
    """Where files may be put beside an artefact's rows; None for a store without directories."""
    return store.directory(kind, id) if isinstance(store, _DiskStore) else None


def new_id(store: Store) -> str:
    """The id of an artefact that was given none."""
    return store.id if isinstance(store, FlatStore) else uuid4().hex


def _log_file(kind: Kind, name: str) -> str:
    if name not in LOG_NAMES:
        raise UserError(f"there is no log {name!r}", fix=nearest(name, filter(None, LOG_NAMES)))
    if name in ("calls", "traces"):
        return f"{name}.jsonl"
    return f"{name}/{ROWS_FILE[kind]}" if name else ROWS_FILE[kind]


def read_manifests(directory: Path, *kinds: Kind) -> dict[Kind, Manifest]:
    """The manifests in a folder, of these kinds or all, read at once; none where there is no file."""
    sections = _sections(directory)
    wanted: list[Kind] = [kind for kind in kinds or ROWS_FILE if kind in sections]
    try:
        manifests: dict[Kind, Manifest] = {
            kind: msgspec.json.decode(sections[kind], type=Manifest) for kind in wanted
        }
        msgspec.convert(list(manifests.values()), list[ManifestShape], from_attributes=True)
        return manifests
    except (ValueError, RecursionError) as error:
        raise _bad_manifest(directory, error) from None


def _sections(directory: Path) -> dict[str, msgspec.Raw]:
    try:
        content = reading.content(directory / MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise store_error(error, directory / MANIFEST) from error
    try:
        return manifest_sections(content, directory / MANIFEST)
    except (ValueError, RecursionError) as error:
        raise _bad_manifest(directory, error) from None


def _write_sections(directory: Path, sections: dict[str, msgspec.Raw]) -> None:
    write_file(directory / MANIFEST, manifest_text(sections))


def _bad_manifest(directory: Path, error: Exception) -> StoreError:
    return StoreError(
        f"the manifest cannot be read: {error}",
        where=str(directory / MANIFEST),
        fix="correct it, or move it away and run again: the rows beside it are kept",
    )
