"""The original's files as one of our stores, on any file system that has fsspec's methods (the hub's, or the local one
without it), and a folder that has both layouts.

`runs/<id>.json` is an overview and `runs/<id>/output/<example>.json` an output; `evaluations/<id>.json` (or
`.partial_json`) is an overview and `evaluations/<id>/<example>.json` a result; `aggregations/<id>.json` is an overview.
An id that is not a plain file name is encoded; the true one stands in the file.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from assay.errors import install_command
from assay.formats.intelligence_layer.types import BadValue, extra
from assay.interfaces import Log, Store
from assay.records import Kind, Manifest
from assay.store.files import safe_name
from assay.store.memory_log import MemoryLog
from assay.store.stores import MANIFEST, FolderStore

_REPOSITORY_TYPE = "dataset"
_OVERVIEWS = {"overview": ".json", "partial": ".partial_json"}
Row = dict[str, Any]


class FileSystemBasedRepository:
    """A folder of a file system; it is made if it is missing."""

    def __init__(self, file_system: Any, root_directory: Path) -> None:
        self._file_system = file_system
        self._root_directory = root_directory
        self.mkdir(root_directory)

    def write_utf8(self, path: Path, content: str, create_parents: bool = False) -> None:
        if create_parents:
            self.mkdir(path.parent)
        self._file_system.write_text(self.path_to_str(path), content, encoding="utf-8")

    def read_utf8(self, path: Path) -> str:
        return self._file_system.read_text(self.path_to_str(path), encoding="utf-8")

    def remove_file(self, path: Path) -> None:
        self._file_system.rm_file(self.path_to_str(path))

    def exists(self, path: Path) -> bool:
        return self._file_system.exists(self.path_to_str(path))

    def mkdir(self, path: Path) -> None:
        """Make a folder with its parents; another process may have made it meanwhile."""
        if self.exists(path):
            return
        try:
            self._file_system.makedir(self.path_to_str(path), create_parents=True)
        except FileExistsError:
            return

    def file_names(self, path: Path, file_type: str = "json") -> Sequence[str]:
        """The names, without their ending, of the files of one type."""
        files = [Path(file) for file in self._file_system.ls(self.path_to_str(path), detail=False)]
        return [file.stem for file in files if file.suffix == f".{file_type}"]

    @staticmethod
    def path_to_str(path: Path) -> str:
        return path.as_posix()

    def _entries(self, folder: Path) -> list[str]:
        if not self.exists(folder):
            return []
        return [
            Path(entry).name
            for entry in self._file_system.ls(self.path_to_str(folder), detail=False)
        ]

    def _name(self, folder: Path, id: str) -> str:
        """The original took any id for a name: what is listed under it is meant."""
        safe = safe_name(id)
        return id if safe != id and {id, f"{id}.json"} & set(self._entries(folder)) else safe


class LocalFileSystem:
    """As much of fsspec's local file system as repositories use."""

    def write_text(self, path: str, value: str, encoding: str = "utf-8") -> None:
        Path(path).write_text(value, encoding=encoding)

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        return Path(path).read_text(encoding=encoding)

    def rm_file(self, path: str) -> None:
        Path(path).unlink()

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def makedir(self, path: str, create_parents: bool = True) -> None:
        Path(path).mkdir(parents=create_parents)

    def ls(self, path: str, detail: bool = False) -> list[str]:
        return [str(entry) for entry in Path(path).iterdir()]

    def isdir(self, path: str) -> bool:
        return Path(path).is_dir()


class HuggingFaceRepository(FileSystemBasedRepository):
    """`repository_id` is `owner/name`; the repository is created if it is not there."""

    def __init__(self, repository_id: str, token: str, private: bool) -> None:
        if not repository_id or repository_id.endswith("/"):
            raise BadValue(
                f"{repository_id!r} is not a repository of the hub",
                fix="write owner/name, without a final /",
            )
        self.create_repository(repository_id, token, private)
        super().__init__(_hub().HfFileSystem(token=token), Path("datasets") / repository_id)
        self._repository_id = repository_id

    def mkdir(self, path: Path) -> None:
        """The hub has no folders but those of its files."""

    def create_repository(self, repository_id: str, token: str, private: bool) -> None:
        _hub().create_repo(
            repo_id=repository_id,
            token=token,
            repo_type=_REPOSITORY_TYPE,
            private=private,
            exist_ok=True,
        )

    def delete_repository(self) -> None:
        """Remove the repository with all that is in it; one that is gone is not an error."""
        _hub().delete_repo(
            repo_id=self._repository_id,
            token=self._file_system.token,
            repo_type=_REPOSITORY_TYPE,
            missing_ok=True,
        )


def _hub() -> Any:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    what = "repositories on the Hugging Face hub need the package huggingface_hub"
    return extra("huggingface_hub", what, install_command("hf"))


class OriginalStore(FileSystemBasedRepository):
    """What the original wrote of one kind, as one of our stores: overviews are manifests, and the files of examples,
    which are in the folder `examples` of their artefact, are rows: `read` gives those of a file. Only overviews are
    written."""

    def __init__(
        self,
        file_system: Any,
        root_directory: Path,
        kind: Kind,
        examples: str = "",
        read: Callable[[Row], list[Any]] | None = None,
    ) -> None:
        super().__init__(file_system, root_directory)
        self.folder = root_directory / f"{kind}s"
        self._examples, self._read = examples, read

    def ids(self, kind: Kind) -> list[str]:
        if not self.exists(self.folder):
            return []
        names = (
            name for name in self._entries(self.folder) if name.endswith(tuple(_OVERVIEWS.values()))
        )
        paths = [path for path in map(self.folder.joinpath, names) if not self._is_folder(path)]
        found: list[Any] = [self._json(path) for path in paths]
        return sorted(
            {row["id"] for row in found if isinstance(row, dict) and isinstance(row.get("id"), str)}
        )

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        paths = {slot: self._path(id, ending) for slot, ending in _OVERVIEWS.items()}
        is_there = {
            slot: self.exists(path) and not self._is_folder(path) for slot, path in paths.items()
        }
        plan = {slot: self._json(path) for slot, path in paths.items() if is_there[slot]}
        return Manifest(kind=kind, id=id, plan=plan) if plan else None

    def put_manifest(self, manifest: Manifest) -> None:
        for slot, ending in _OVERVIEWS.items():
            if slot in manifest.plan:
                content = msgspec.json.format(
                    msgspec.json.encode(manifest.plan[slot]), indent=2
                ).decode()
                self.write_utf8(self._path(manifest.id, ending), content, create_parents=True)

    def log(self, kind: Kind, id: str, name: str = "") -> "OriginalRows":
        log = OriginalRows()
        if self._read is not None and not name:
            for file in self.examples(id):
                log.append(msgspec.json.Encoder().encode_lines(self._read(self._json(file))))
        return log

    def examples(self, id: str) -> Iterator[Path]:
        """The files of an artefact's examples."""
        folder = self._path(id) / self._examples
        return iter(()) if self.exists(folder / MANIFEST) else self._files(folder)

    def delete(self, kind: Kind, id: str) -> None:
        for path in filter(self.exists, (self._path(id, ending) for ending in _OVERVIEWS.values())):
            self.remove_file(path)

    def lock(self, kind: Kind, id: str) -> AbstractContextManager[None]:
        return nullcontext()

    def file(self, id: str, *names: str) -> Path | None:
        """A file in the artefact's folder. Names are looked for among the existing ones: they never become paths."""
        path = self.folder
        for name in (id, *names):
            if name not in self._entries(path):
                return None
            path /= name
        return path

    def _files(self, folder: Path) -> Iterator[Path]:
        """All JSON files, also those in the folders that a slash in an id made."""
        for entry in sorted(folder / name for name in self._entries(folder)):
            if self._is_folder(entry):
                yield from self._files(entry)
            elif entry.suffix == ".json":
                yield entry

    def _is_folder(self, path: Path) -> bool:
        return self._file_system.isdir(self.path_to_str(path))

    def _json(self, path: Path) -> Row:
        return json.loads(self.read_utf8(path))

    def _path(self, id: str, ending: str = "") -> Path:
        return self.folder / f"{self._name(self.folder, id)}{ending}"


class OriginalRows(MemoryLog):
    """The files of an artefact's examples, as they were when it was opened. What is added or replaced is in
    `ours`, with a copy of the others."""

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
        return sorted({*super().ids(kind), *self.original.ids(kind)})

    def manifest(self, kind: Kind, id: str) -> Manifest | None:
        return super().manifest(kind, id) or self.original.manifest(kind, id)

    def log(self, kind: Kind, id: str, name: str = "") -> Log:
        ours = super().log(kind, id, name)
        if name or ours.segments():
            return ours
        theirs = self.original.log(kind, id)
        theirs.ours = ours
        return theirs if theirs.segments() else ours


def manifests(store: Store, kind: Kind) -> Iterable[Manifest]:
    """All manifests, sorted by id. In files it is a FileNotFoundError, as in the original, if nothing of this kind was
    ever stored."""
    original = getattr(store, "original", store)
    if isinstance(original, OriginalStore) and not original.exists(original.folder):
        raise FileNotFoundError(f"nothing was stored in {original.folder} yet")
    return filter(None, [store.manifest(kind, id) for id in store.ids(kind)])
