"""Whole files written so that a reader gets the old bytes or the new ones, never a mixture."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from assay.errors import StoreError

_FULL = {errno.ENOSPC, errno.EDQUOT}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


def store_error(error: OSError, path: Path) -> StoreError:
    """The operating system's complaint about a path, in our wording."""
    if error.errno in _FULL:
        what, fix = "the disk is full", "free some space and run again: every finished row is kept"
    elif error.errno in _READ_ONLY:
        what, fix = "this place cannot be written or read", "change its permissions, or choose another folder"
    else:
        what, fix = f"the file system refused: {error.strerror or error}", "run again once this is repaired"
    return StoreError(what, where=str(path), fix=fix)


def write_file(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Put `content` in place of the file, atomically and safe from a power cut; its folders are made."""
    if os.path.exists(path) and not path.is_file():
        raise StoreError("this is not a file, and cannot be replaced by one", where=str(path), fix="name a file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb", buffering=1 << 20) as file:
                file.writelines([content] if isinstance(content, bytes) else content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise store_error(error, path) from error


def sync_folder(folder: Path) -> None:
    """Make new and renamed entries of a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
