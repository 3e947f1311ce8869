"""Named objects that several machines share, and the one thing that they must do right: create what does not exist.

A folder is such a place by itself. Buckets are in `cloud.py`.
"""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec

from assay import reading
from assay.errors import StoreError, install_command
from assay.reading import is_remote
from assay.store.files import (
    make_folder,
    new_file,
    store_error,
    sync_folder,
    temporary_of,
    write_file,
)

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class Entry(msgspec.Struct, frozen=True):
    """An object in a listing. `stamp` is another one when the content is: an ETag, or size and time of a file."""

    name: str
    size: int
    stamp: str
    mtime_ns: int = 0


class Objects(ABC):
    """A place for objects. Names are relative, with `/`; a listing may be stale, reading and creating may not.

    What goes wrong is a StoreError that says where; no message ever has a credential.
    """

    address: str  # for people, and for another process to open it again

    @abstractmethod
    def create(self, name: str, content: bytes) -> bool:
        """Whether the object was made; False if there is one of that name. A reply that was lost on its way is an
        ordinary False: callers read what is there, and find their own content."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """The whole content; None if there is no such object."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Put this content in place of whatever is there: for objects that have one writer, or whose writers agree."""

    @abstractmethod
    def names(self, prefix: str) -> Iterator[Entry]:
        """The objects whose names begin with the prefix, which ends with `/` or is empty, in the order of names."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove an object; an unknown one is not an error."""

    def read_many(self, names: Iterable[str]) -> Iterator[bytes | None]:
        """What `read` gives of each name, in their order; a bucket reads ahead."""
        return map(self.read, names)

    def entry(self, name: str) -> Entry | None:
        """What a listing would say of one object."""
        folder = name.rpartition("/")[0]
        return next(
            (entry for entry in self.names(f"{folder}/" if folder else "") if entry.name == name),
            None,
        )

    def level(self, prefix: str) -> tuple[list[Entry], list[str]]:
        """The objects directly below a prefix, and the prefixes directly below it."""
        entries = list(self.names(prefix))
        inner = [entry.name[len(prefix) :].partition("/") for entry in entries]
        direct = [entry for entry, (_, slash, _) in zip(entries, inner, strict=True) if not slash]
        return direct, list(
            dict.fromkeys(f"{prefix}{first}/" for first, slash, _ in inner if slash)
        )

    def fetch(self, name: str, path: Path) -> Entry | None:
        """Make a file of an object, with its time; None if there is no such object."""
        content, entry = self.read(name), self.entry(name)
        if content is None or entry is None:
            return None
        write_file(path, content)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))
        return entry

    def swap(self, name: str, path: Path, before: str | None) -> str | None:
        """Put a file's content in place of the object that has the stamp `before`, None for no object. The new stamp;
        None if the object is another one by now, which then stays as it is."""
        entry, content = self.entry(name), reading.content(path)
        if (entry.stamp if entry else None) != before:
            return None
        self.write(name, content)
        entry = self.entry(name)
        return entry.stamp if entry else None


class FolderObjects(Objects):
    """Files below a folder that all workers see. `link` creates a name atomically, also over NFS."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self.address = str(self.folder)

    def create(self, name: str, content: bytes) -> bool:
        path = self.folder / name
        # threads, and hosts of equal names
        temporary = temporary_of(path.with_name(f"{uuid4().hex}.{path.name}"))
        try:
            make_folder(path.parent)
            try:
                with open(new_file(temporary, path), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(temporary, path)
                sync_folder(path.parent)
                return True
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            if error.filename2 is not None and error.errno in _NO_LINKS:
                what, fix = (
                    "this file system has no hard links, which several writers need",
                    "use another, or a bucket",
                )
                raise StoreError(what, where=str(path), fix=fix) from None
            raise store_error(error, path) from error

    def read(self, name: str) -> bytes | None:
        try:
            return reading.content(self.folder / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, self.folder / name) from error

    def write(self, name: str, content: bytes) -> None:
        write_file(self.folder / name, content)

    def names(self, prefix: str) -> Iterator[Entry]:
        try:
            for name in sorted(_below(self.folder / prefix, prefix)):
                try:
                    stat = os.stat(self.folder / name)
                except FileNotFoundError:
                    continue
                yield _entry(name, stat)
        except OSError as error:
            raise store_error(error, self.folder / prefix) from error

    def entry(self, name: str) -> Entry | None:
        try:
            with reading.opened(
                self.folder / name
            ) as file:  # over NFS only opening shows what another machine wrote
                stat = os.fstat(file.fileno())
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise store_error(error, self.folder / name) from error
        return _entry(name, stat)

    def delete(self, name: str) -> None:
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise store_error(error, self.folder / name) from error


def _entry(name: str, stat: os.stat_result) -> Entry:
    return Entry(name, stat.st_size, f"{stat.st_size}-{stat.st_mtime_ns}", stat.st_mtime_ns)


def _below(folder: Path, prefix: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):  # also one that was removed a moment ago
        return
    for entry in entries:
        name = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), f"{name}/")
        elif not entry.name.startswith("."):
            yield name


def open_objects(place: str | Path, *, probe: bool = False) -> Objects:
    """The objects at a folder or in a bucket; `probe` finds out first whether the place keeps its promises."""
    text = str(place)
    if is_remote(text):
        try:
            from assay.store.shared.cloud import open_cloud
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != "obstore":
                raise
            fix = install_command("cloud")
            raise StoreError("buckets need the extra `cloud`", where=text, fix=fix) from None
        return open_cloud(text, probe=probe)
    objects = FolderObjects(text.removeprefix("file://"))
    if probe:
        from assay.store.shared.probe import check

        check(objects)
    return objects
