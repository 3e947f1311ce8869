"""Whole files written so that a reader gets the old bytes or the new ones, never a mixture.

New files and folders that may hold prompts and answers are their owner's alone; ASSAY_PRIVATE=0 leaves that to the
umask. Temporary files are named after their process, and those of dead ones are swept by the next run in a folder.
"""

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from assay.errors import StoreError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_TEMPORARY = re.compile(r"\..+\.([0-9a-f]{8})\.([0-9]+)\.tmp", re.DOTALL)
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


def store_error(error: OSError, path: Path) -> StoreError:
    """The operating system's complaint about a path, in our wording."""
    if error.errno in _FULL:
        what, fix = "the disk is full", "free some space and run again: every finished row is kept"
    elif error.errno in _READ_ONLY:
        what, fix = (
            "this place cannot be written or read",
            "change its permissions, or choose another folder",
        )
    else:
        what, fix = (
            f"the file system refused: {error.strerror or error}",
            "run again once this is repaired",
        )
    return StoreError(what, where=str(path), fix=fix)


def private_mode(mode: int = 0o666) -> int:
    """Of a new file that may hold prompts and answers."""
    return mode if os.environ.get("ASSAY_PRIVATE") == "0" else mode & 0o700


def open_own(path: Path, flags: int) -> int:
    """A descriptor of a file that is ours to write: made if it is missing; a link or a pipe of its name is refused."""
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, private_mode())
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise _not_ours(path) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _not_ours(path)
    return fd


def refuse_link(folder: Path) -> None:
    """For folders within a result folder: what is made or removed in them must not be elsewhere."""
    if folder.is_symlink():
        raise _not_ours(folder)


def _not_ours(path: Path) -> StoreError:
    what = "this is a link or a special file, which Assay does not write through"
    return StoreError(what, where=str(path), fix="remove it, or put the file itself there")


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, where there is none."""
    if not os.path.isdir(folder):
        if folder.parent != folder:
            make_folder(folder.parent)
        folder.mkdir(private_mode(0o777), exist_ok=True)


def temporary_suffix() -> str:
    """The end of a temporary name of this process."""
    return f".{here()}.{os.getpid()}.tmp"


def temporary_of(path: Path) -> Path:
    """Where the new content of a file is written first."""
    return path.with_name(f".{path.name[:180]}{temporary_suffix()}")


@cache
def here() -> str:
    """The place where process numbers mean something: this host, and in a container this one."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return blake2b(f"{os.uname().nodename} {namespace}".encode(), digest_size=4).hexdigest()


def sweep(folder: Path) -> None:
    """Remove temporary files of processes of this place that have ended."""
    for entry in os.scandir(folder):
        name = _TEMPORARY.fullmatch(entry.name)
        if name is None or name[1] != here() or lives(int(name[2])):
            continue
        with suppress(OSError):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(
                entry.path
            )


def lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (OSError, OverflowError) as error:
        return not isinstance(error, ProcessLookupError)
    return True


class NewFile:
    """The next content of a file. `commit` puts it in the file's place, atomically and safe from a power cut; until
    then, and without it, the file is as it was. A file that is replaced keeps its mode."""

    def __init__(self, path: Path, *, private: bool = True) -> None:
        self.path = path
        self._temporary = temporary_of(path)
        self._private = private
        self._file: BinaryIO | None = None

    def __enter__(self) -> "NewFile":
        return self

    def write(self, content: bytes) -> None:
        """Further content; its folder is made with the first."""
        try:
            (self._file or self._open()).write(content)
        except OSError as error:
            raise store_error(error, self.path) from error

    def _open(self) -> BinaryIO:
        if os.path.exists(self.path) and not self.path.is_file():
            what = "this is not a file, and cannot be replaced by one"
            raise StoreError(what, where=str(self.path), fix="name a file")
        make_folder(self.path.parent)
        fd = new_file(self._temporary, self.path, private=self._private)
        self._file = file = os.fdopen(fd, "wb", buffering=1 << 20)
        return file

    def commit(self) -> None:
        try:
            file = self._file or self._open()
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(self._temporary, self.path)
            self._file = None
            sync_folder(self.path.parent)
        except OSError as error:
            raise store_error(error, self.path) from error

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._temporary.unlink(missing_ok=True)
            with suppress(OSError):  # what was not written yet, on a full disk
                self._file.close()
            self._file = None


def write_file(path: Path, content: bytes | Iterable[bytes], *, private: bool = True) -> None:
    """Put `content` in place of the file."""
    with NewFile(path, private=private) as file:
        try:
            for part in [content] if isinstance(content, bytes) else content:
                file.write(part)
        except OSError as error:
            raise store_error(error, path) from error
        file.commit()


def new_file(temporary: Path, path: Path, *, private: bool = True) -> int:
    """Descriptor of a file of our own making, whatever stands there, with the mode of the one that it will replace."""
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_mode() if private else 0o666
    )
    with suppress(OSError):  # there is none, or a file system without modes
        os.fchmod(fd, path.stat().st_mode & 0o777)
    return fd


def sync_folder(folder: Path) -> None:
    """Make new and renamed entries of a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def state_folder() -> Path:
    """Where this user's Assay remembers what no experiment's folder is to hold."""
    outer = os.environ.get("XDG_STATE_HOME", "")
    usual = Path(outer if os.path.isabs(outer) else os.path.expanduser("~/.local/state"), "assay")
    return Path(os.environ.get("ASSAY_STATE_DIR") or usual)


def cache_folder() -> Path:
    """Where this user's Assay keeps what can be fetched or computed again."""
    outer = os.environ.get("XDG_CACHE_HOME", "")
    usual = Path(outer if os.path.isabs(outer) else os.path.expanduser("~/.cache"), "assay")
    return Path(os.environ.get("ASSAY_CACHE_DIR") or usual)


_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)

INSIDE = ".assay"  # the folder in which commands keep experiments behind files of their own
_NO_EXPERIMENTS = {"superseded", "rejected", "node_modules", "__pycache__"}


def walk_folders(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and those below it that may hold experiments, in the order of their paths,
    each with the names of its entries."""
    try:
        with os.scandir(folder) as entries:
            members = sorted(entries, key=lambda entry: entry.name)
    except OSError:  # a folder that may not be read holds nothing to show
        return
    yield folder, [entry.name for entry in members]
    for entry in members:
        hidden = entry.name[0] == "." and entry.name != INSIDE
        if not hidden and entry.name not in _NO_EXPERIMENTS and entry.is_dir(follow_symlinks=False):
            yield from walk_folders(entry.path)


def safe_name(id: str) -> str:
    """A file or folder name for an id, which is any text: the id itself if it is plainly safe, else a readable start,
    `~` and a hash. Different ids have different names: no safe id contains `~`.
    """
    if _SAFE.fullmatch(id) and not id.endswith("."):
        return id
    readable = _UNSAFE.sub("-", id[:200])[:40].strip(".-") or "id"
    return f"{readable}~{blake2b(id.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
