"""The copy of a bucket's folder on this disk: brought up to date before it is read, pushed when a verb has changed it.

An object is fetched again only if its stamp is another one, and a change goes back only if the bucket still has what
the copy was made from. A copy that a process is writing to is left alone. `.mirror.json` in each folder has the stamps.
"""

import fcntl
import os
import shutil
from collections.abc import Container, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from assay import reading
from assay.errors import AssayError, StoreError
from assay.store.files import make_folder, store_error, write_file
from assay.store.lock import LOCK
from assay.store.shared.contents import (
    SMALL,
    by_folder,
    experiment_files,
    experiments_below,
    is_experiment,
    is_part,
    is_visible,
)
from assay.store.shared.objects import Entry, Objects
from assay.store.stores import MANIFEST, read_manifests

LABELS = "labels.jsonl"
RECORD = ".mirror.json"
_BESIDE = ("superseded/", "rejected/")
_PARALLEL = 16


class Copied(msgspec.Struct, array_like=True):
    """The object that a file was copied from, and the file as it was then."""

    stamp: str
    size: int
    mtime_ns: int

    def is_as_copied(self, path: Path) -> bool:
        try:
            stat = path.stat()
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns) == (self.size, self.mtime_ns)


Record = dict[str, Copied]


class Replica:
    """The copy of one prefix in a folder. `lock` is a file that all copies of a bucket share: threads and processes
    update and push one after another."""

    def __init__(self, objects: Objects, folder: Path, lock: Path) -> None:
        self.objects = objects
        self.folder = folder
        self._lock = lock

    def update(self, *, rows: bool = True, segments: bool = True, own: bool = False) -> None:
        """Have what readers of an experiment need, or a worker, which needs no `segments`; without `rows` what a list
        of the experiments below needs. `own`: this process holds the folder's lock, nobody else changes the copy."""
        with self._alone():
            if not rows:
                plan, folders = experiments_below(self.objects)
                for prefix, names in folders.items():
                    self._drop(prefix, names)
                self._sync(plan, SMALL)
            elif own or not _is_written(self.folder):
                plan = experiment_files(self.objects, segments=segments)
                if not plan:
                    self._forget("")
                if not segments:
                    self._sync(plan, None, own)
                    return
                self._drop_generations(plan)
                parts_only = is_experiment(plan)
                gone: dict[str, list[Entry]] = {
                    folder: [] for folder in self._copied_folders(parts_only=parts_only)
                }
                self._sync(gone | plan, None, own)
                self._fetch_sealed()

    def update_files(self, names: Iterable[str]) -> None:
        """Have only these objects."""
        with self._alone():
            self._sync(by_folder(filter(None, map(self.objects.entry, names))), ())

    def push(self) -> None:
        """Put what was changed here in place of what it was made from; nothing at all if that is no longer there."""
        with self._alone():
            changes = {prefix: self._changes(prefix) for prefix in self._written_folders()}
            for prefix in (prefix for prefix, names in changes.items() if names):
                there = {entry.name: entry.stamp for entry in self.objects.level(prefix)[0]}
                record = self._load(prefix)
                for name in changes[prefix]:
                    copied = record.get(name)
                    if name != LABELS and there.get(prefix + name) != (
                        copied.stamp if copied else None
                    ):
                        raise self._conflict(prefix + name)
            # rows before the manifest, which seals them
            for prefix in sorted(changes, reverse=True):
                self._push_folder(prefix, changes[prefix])
            for prefix in changes:
                self._push_removals(prefix)

    # -- what is gone

    def _drop(self, prefix: str, folders: Container[str]) -> None:
        """Remove the copies of experiments that are gone."""
        with suppress(FileNotFoundError):
            for entry in list(os.scandir(self.folder / prefix)):
                if entry.is_dir(follow_symlinks=False) and entry.name not in folders:
                    self._forget(f"{prefix}{entry.name}/")

    def _drop_generations(self, plan: Mapping[str, object]) -> None:
        """Remove the segments of earlier ones."""
        for path in self.folder.glob("*.d/*"):
            prefix = f"{path.relative_to(self.folder).as_posix()}/"
            if path.is_dir() and not any(needed.startswith(prefix) for needed in plan):
                shutil.rmtree(path, ignore_errors=True)

    def _copied_folders(self, *, parts_only: bool = True) -> list[str]:
        """Those of which something was copied; an experiment inside another is not a part of it."""
        folders = (
            path.parent.relative_to(self.folder).as_posix() for path in self.folder.rglob(RECORD)
        )
        inner = [folder for folder in folders if folder != "."]
        return [
            f"{folder}/" for folder in inner if not parts_only or is_part(folder.partition("/")[0])
        ]

    def _forget(self, prefix: str) -> None:
        """Remove a copy, unless it has what was never pushed."""
        folder = self.folder / prefix
        if (folder / RECORD).is_file() and not self._changes(prefix) and not _is_written(folder):
            shutil.rmtree(folder, ignore_errors=True)

    def _fetch_sealed(self) -> None:
        """The segments that manifests name and a listing, which may be stale, has not."""
        try:
            manifests = read_manifests(self.folder).values()
        except AssayError:  # readers say so
            return
        sealed = (part.name for manifest in manifests for part in manifest.segments)
        missing = [
            name
            for name in sealed
            if "/" in name and _is_safe(name) and not (self.folder / name).exists()
        ]
        if missing:
            self._sync(by_folder(Entry(name, 0, "") for name in missing), ())

    # -- from the bucket

    def _sync(
        self,
        plan: Mapping[str, list[Entry]],
        listed_names: Container[str] | None,
        own: bool = False,
    ) -> None:
        """Fetch what is new in each folder and remove what is gone, which only these names can be; None: any."""
        plan = {
            name: plan[name]
            for name in plan
            if (own and not name) or not _is_written(self.folder / name)
        }
        for prefix in plan:
            make_folder(self.folder / prefix)
        records = {prefix: self._load(prefix) for prefix in plan}
        before = {prefix: dict(record) for prefix, record in records.items()}
        stale: list[tuple[str, str]] = []
        for prefix, record in records.items():
            entries = filter(lambda entry: _is_safe(entry.name), plan[prefix])
            stamps = {entry.name[len(prefix) :]: entry.stamp for entry in entries}
            folder = self.folder / prefix
            stale += [(prefix, name) for name in _stale(folder, record, stamps)]
            gone = [name for name in record if name not in stamps]
            for name in gone if listed_names is None else filter(listed_names.__contains__, gone):
                if record.pop(name).is_as_copied(folder / name):
                    (folder / name).unlink(missing_ok=True)
        # manifests first: rows may be newer than their seal, but not older
        self._take_all([place for place in stale if place[1] == MANIFEST], records)
        self._take_all([place for place in stale if place[1] != MANIFEST], records)
        for prefix, record in records.items():
            if record != before[prefix]:
                self._save(prefix, record)

    def _take_all(self, places: list[tuple[str, str]], records: Mapping[str, Record]) -> None:
        """Fetch objects, by prefix and name, and note in the records what was fetched."""

        def take(place: tuple[str, str]) -> Copied | None:
            return self._take(*place, records[place[0]])

        with ThreadPoolExecutor(_PARALLEL) as pool:
            for (prefix, name), copied in zip(places, pool.map(take, places), strict=True):
                if copied is not None:
                    records[prefix][name] = copied

    def _take(self, prefix: str, name: str, record: Record) -> Copied | None:
        path, copied = self.folder / prefix / name, record.get(name)
        mine = b""
        if path.exists() and not (copied and copied.is_as_copied(path)):  # changed on both sides
            if name == LABELS:
                mine = reading.content(path)
            aside = path.parent / ".set-aside" / f"{name}-{path.stat().st_mtime_ns}"
            make_folder(aside.parent)
            with suppress(FileExistsError):
                os.link(path, aside)  # others may read it meanwhile
        make_folder(path.parent)
        entry = self.objects.fetch(prefix + name, path)
        if entry is None:
            return None
        stat = path.stat()
        if mine:
            write_file(path, _merged(reading.content(path), mine))
        return Copied(entry.stamp, stat.st_size, stat.st_mtime_ns)

    # -- to the bucket

    def _written_folders(self) -> list[str]:
        """The folders in which verbs change files: the experiment's own, and those of segments that were replaced."""
        segments = [folder for folder in self._copied_folders() if ".d/" in folder]
        return ["", *(folder for folder in _BESIDE if (self.folder / folder).is_dir()), *segments]

    def _changes(self, prefix: str) -> list[str]:
        """The files that are not, or no longer, what was copied."""
        folder, record = self.folder / prefix, self._load(prefix)
        try:
            files = [
                entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)
            ]
        except FileNotFoundError:
            return []
        changed = [
            name
            for name in files
            if name not in record or not record[name].is_as_copied(folder / name)
        ]
        return sorted(filter(is_visible, changed), key=lambda name: (name == MANIFEST, name))

    def _push_folder(self, prefix: str, names: list[str]) -> None:
        folder, record = self.folder / prefix, self._load(prefix)
        for name in names:
            copied = record.get(name)
            before = copied.stamp if copied else None
            stat = (folder / name).stat()
            if name == LABELS:
                stamp = self._push_labels(prefix + name, before)
                stat = (folder / name).stat()
            else:
                stamp = self.objects.swap(prefix + name, folder / name, before)
            if stamp is None:
                raise self._conflict(prefix + name)
            record[name] = Copied(stamp, stat.st_size, stat.st_mtime_ns)
            self._save(prefix, record)

    def _push_removals(self, prefix: str) -> None:
        """Of segments, whose rows are in the file beside them by now."""
        folder, record = self.folder / prefix, self._load(prefix)
        gone = [name for name in record if ".d/" in prefix and not (folder / name).exists()]
        for name in gone:
            self.objects.delete(prefix + name)
            del record[name]
        if gone:
            self._save(prefix, record)

    def _push_labels(self, name: str, before: str | None) -> str:
        """Two people may label at the same time: lines of both are kept."""
        path = self.folder / name
        while (stamp := self.objects.swap(name, path, before)) is None:
            theirs = self.objects.entry(name)
            before = theirs.stamp if theirs else None
            content = _merged(self.objects.read(name) or b"", reading.content(path))
            write_file(path, content)
        return stamp

    def _conflict(self, name: str) -> StoreError:
        return StoreError(
            "this was changed in the bucket since it was read: nothing was overwritten",
            where=f"{self.objects.address}/{name}",
            fix="run the command again: it reads what is there now",
        )

    def _load(self, prefix: str) -> Record:
        try:
            return msgspec.json.decode(reading.content(self.folder / prefix / RECORD), type=Record)
        except (OSError, ValueError):
            return {}

    def _save(self, prefix: str, record: Record) -> None:
        write_file(self.folder / prefix / RECORD, msgspec.json.encode(record))

    @contextmanager
    def _alone(self) -> Generator[None]:
        try:
            make_folder(self._lock.parent)
            fd = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            finally:
                os.close(fd)
        except OSError as error:
            raise store_error(error, self.folder) from error


def _stale(folder: Path, record: Record, stamps: Mapping[str, str]) -> Iterator[str]:
    """Yield the names whose files are not copies of the objects with these stamps."""
    for name, stamp in stamps.items():
        known = name in record and record[name].stamp == stamp
        if not (known and (folder / name).exists()):
            yield name


def _is_safe(name: str) -> bool:
    """Whether an object's name, which anybody may have chosen, is a file's below its folder, and not one of ours."""
    parts = name.split("/")
    return all(part not in ("", ".", "..", RECORD, LOCK) and "\0" not in part for part in parts)


def _is_written(folder: Path) -> bool:
    """Whether a process, this one perhaps, holds the folder's lock."""
    try:
        fd = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _merged(theirs: bytes, mine: bytes) -> bytes:
    """The lines of both, those that both have once."""
    lines = dict.fromkeys(line for line in (*theirs.split(b"\n"), *mine.split(b"\n")) if line)
    return b"".join(line + b"\n" for line in lines)
