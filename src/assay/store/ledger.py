"""Files that a user names: what Assay did not write, or somebody has changed since, is not replaced.

`.assay-written` beside them has lines of a digest and a name. One that begins with `~` is written before a file gets its
name, one without it afterwards: whenever a process is killed, the file that it leaves is known, the old one or the new.
Lines are appended, so that processes may write side by side. The last line of a name counts, and what was only begun.
"""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path

from assay import reading
from assay.errors import UserError
from assay.store.files import NewFile, make_folder, open_own, store_error

LEDGER = ".assay-written"
_BEGUN, _BETWEEN = b"~", b"  "
_BLOCK = 1 << 20
_new_digest = partial(blake2b, digest_size=16)


class OwnFile(NewFile):
    """The next content of a file that a user names; one that is not Assay's is refused unless `force`."""

    def __init__(self, path: Path, *, force: bool = False, private: bool = True) -> None:
        check_replaceable(path, force=force)
        super().__init__(path, private=private)
        self._digest = _new_digest()

    def write(self, content: bytes) -> None:
        self._digest.update(content)
        super().write(content)

    def commit(self) -> None:
        _begin(self.path, self._digest.hexdigest())
        super().commit()
        record(self.path)


def write_named(
    path: Path, content: bytes | Iterable[bytes], *, force: bool = False, private: bool = True
) -> None:
    """Write a file that a user names. A pipe or a device is written to, never replaced."""
    parts = [content] if isinstance(content, bytes) else content
    if address := reading.address(path):
        from assay.store.shared.mirror import writing  # it needs this module

        with writing(address, force=force) as file:
            write_named(file, parts)
    elif os.path.exists(path) and not path.is_file():
        _pour(path, parts)
    else:
        with OwnFile(path, force=force, private=private) as file:
            try:
                for part in parts:
                    file.write(part)
            except OSError as error:
                raise store_error(error, path) from error
            file.commit()


def _pour(path: Path, parts: Iterable[bytes]) -> None:
    try:
        with open(path, "wb") as file:
            file.writelines(parts)
    except OSError as error:
        raise store_error(error, path) from error


def replace_file(temporary: Path, path: Path) -> None:
    """Give a whole file the name that the user chose."""
    try:
        _begin(path, digest_of(temporary))
        os.replace(temporary, path)
    except OSError as error:
        raise store_error(error, path) from error
    record(path)


def check_replaceable(path: Path, *, force: bool = False) -> None:
    """Refuse a file with content that is not, or no longer, what Assay wrote there."""
    if os.path.exists(path) and not path.is_file():
        raise UserError("this is not a file", where=str(path), fix="name a file")
    try:
        if force or not path.is_file() or not path.stat().st_size or was_written(path):
            return
    except OSError as error:
        raise store_error(error, path) from error
    fix = "choose another name, remove the file, or replace it with --force (force=True)"
    raise UserError(
        "the file exists, and Assay did not write what it holds", where=str(path), fix=fix
    )


def was_written(path: Path) -> bool:
    """Return whether a file holds what Assay wrote there last, or was about to write."""
    digests = _digests(path)
    return bool(digests) and digest_of(path) in digests


def written_names(folder: Path) -> list[str]:
    """Return the files of a folder that Assay has written for its user."""
    names = dict.fromkeys(os.fsdecode(name) for _, name in _entries(folder))
    return [name for name in names if name and "/" not in name and "\0" not in name]


def claim(path: Path, content: Iterable[bytes]) -> None:
    """Record a file that holds exactly this."""
    digest = _new_digest()
    for part in content:
        digest.update(part)
    if digest.hexdigest() == digest_of(path):
        record(path)


def record(path: Path) -> None:
    """Note that what the file holds now is Assay's."""
    _add_lines(path.parent, _line(path.name, digest_of(path)))


def adopt(folder: Path, digests: Mapping[str, str]) -> None:
    """Take over, once, what an older list of a folder's files says."""
    if digests and digests.keys().isdisjoint(written_names(folder)):
        _add_lines(folder, b"".join(_line(name, digest) for name, digest in digests.items()))


def digest_of(path: Path) -> str:
    """Return the digest of what a file holds."""
    digest = _new_digest()
    with reading.opened(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _begin(path: Path, digest: str) -> None:
    make_folder(path.parent)
    _add_lines(path.parent, _BEGUN + _line(path.name, digest), durable=True)


def _add_lines(folder: Path, lines: bytes, *, durable: bool = False) -> None:
    ledger = folder / LEDGER
    try:
        with open(open_own(ledger, os.O_RDWR | os.O_APPEND), "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            is_torn = file.read(1) not in (b"", b"\n")  # by a process that was killed
            file.write(b"\n" + lines if is_torn else lines)
            if durable:
                os.fsync(file.fileno())
    except OSError as error:
        raise store_error(error, ledger) from error


def _line(name: str, digest: str) -> bytes:
    return digest.encode() + _BETWEEN + _encoded_name(name) + b"\n"


def _encoded_name(name: str) -> bytes:
    return os.fsencode(name).replace(b"\n", b"\\n")


def _entries(folder: Path) -> list[tuple[bytes, ...]]:
    """Return the digests and names of the ledger's lines."""
    ledger = folder / LEDGER
    lines = reading.content(ledger).splitlines() if ledger.is_file() else []
    return [line.partition(_BETWEEN)[::2] for line in lines]


def _digests(path: Path) -> set[str]:
    """Return what a file may hold: its last content, and what was begun and perhaps put in place."""
    own, begun, last = _encoded_name(path.name), set[bytes](), b""
    for digest, name in _entries(path.parent):
        if name != own:
            continue
        if digest.startswith(_BEGUN):
            begun.add(digest.removeprefix(_BEGUN))
        else:
            begun.discard(digest)
            last = digest
    return {digest.decode("ascii", "replace") for digest in (*begun, last) if digest}
