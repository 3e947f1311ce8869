"""Files that a user names: what Assay did not write, or somebody has changed since, is not replaced.

`.assay-written` beside them has a line for each file: the digest of what was written, and its name. Lines are appended,
so that processes may write side by side; the last one of a name counts.
"""

import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from assay import reading
from assay.errors import UserError
from assay.store.files import open_own, store_error, write_file

LEDGER = ".assay-written"
_BLOCK = 1 << 20


def write_named(
    path: Path, content: bytes | Iterable[bytes], *, force: bool = False, private: bool = True
) -> None:
    """`write_file` for a file that a user names. A pipe or a device is written to, never replaced."""
    if address := reading.address(path):
        from assay.store.shared.mirror import writing  # it needs this module

        with writing(address, force=force) as file:
            write_file(file, content)
        return
    if os.path.exists(path) and not path.is_file():
        _pour(path, content)
        return
    check_replaceable(path, force=force)
    write_file(path, content, private=private)
    remember(path)


def _pour(path: Path, content: bytes | Iterable[bytes]) -> None:
    try:
        with open(path, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
    except OSError as error:
        raise store_error(error, path) from error


def check_replaceable(path: Path, *, force: bool = False) -> None:
    """Refuse a file with content that is not, or no longer, what Assay wrote there."""
    if os.path.exists(path) and not path.is_file():
        raise UserError("this is not a file", where=str(path), fix="name a file")
    try:
        if (
            force
            or not path.is_file()
            or not path.stat().st_size
            or digest_of(path) == _written(path)
        ):
            return
    except OSError as error:
        raise store_error(error, path) from error
    fix = "choose another name, remove the file, or replace it with --force (force=True)"
    raise UserError(
        "the file exists, and Assay did not write what it holds", where=str(path), fix=fix
    )


def was_written(path: Path) -> bool:
    """Whether a file holds what Assay wrote there last, as the ledger beside it tells."""
    return bool(digest := _written(path)) and digest == digest_of(path)


def written_names(folder: Path) -> list[str]:
    """The files of a folder that Assay has written for its user."""
    names = dict.fromkeys(os.fsdecode(name) for _, name in _ledger(folder))
    return [name for name in names if name and "/" not in name and "\0" not in name]


def remember(path: Path) -> None:
    """Note that what the file holds now is Assay's."""
    try:
        with open(open_own(path.parent / LEDGER, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(b"%b  %b\n" % (digest_of(path).encode(), _name_in_ledger(path)))
    except OSError as error:
        raise store_error(error, path.parent / LEDGER) from error


def _written(path: Path) -> str:
    last = {name: digest for digest, name in _ledger(path.parent)}
    return last.get(_name_in_ledger(path), b"").decode("ascii", "replace")


def _name_in_ledger(path: Path) -> bytes:
    return os.fsencode(path.name).replace(b"\n", b"\\n")


def _ledger(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the digests and the names of what Assay wrote in a folder."""
    file = folder / LEDGER
    for line in reading.content(file).splitlines() if file.is_file() else ():
        digest, _, name = line.partition(b"  ")
        yield digest, name


def digest_of(path: Path) -> str:
    """Of what a file holds."""
    digest = blake2b(digest_size=16)
    with reading.opened(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
