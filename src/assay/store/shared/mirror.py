"""Where a path enters that may be in a bucket: its local copy, which all verbs read and write as plain files.

An object has one place in the state directory, whoever asks for it. Errors and results show the address: see
`errors.shown`.
"""

import atexit
import os
import re
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from fnmatch import translate
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from assay import reading
from assay.errors import ADDRESSES, StoreError, UserError, shown
from assay.reading import is_remote
from assay.records import ROWS_FILE
from assay.store.files import make_folder, state_folder, write_file
from assay.store.shared.objects import open_objects
from assay.store.shared.probe import check
from assay.store.shared.replica import Replica

_SERVERS = (  # the variables that tell which server has a bucket
    "AWS_PROFILE",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "GOOGLE_BASE_URL",
)
_updated: dict[tuple[Path, bool], float] = {}


def local(
    place: str | Path, *, rows: bool = True, segments: bool = True, own: bool = False
) -> Path:
    """The path of a file or folder: itself, or a copy that is up to date if it is in a bucket. `rows` are left out
    where only a list of the experiments below is wanted, `segments` by workers, which read those of their shards;
    `own` is for who holds the lock of the folder."""
    if address := reading.address(place):
        return mirror(address, rows=rows, segments=segments, own=own)
    path = Path(str(place).removeprefix("file://"))
    refresh(path)
    return path


def mirror(address: str, *, rows: bool = True, segments: bool = True, own: bool = False) -> Path:
    """The folder or file that is the copy of an address, as the bucket is now. Nothing is there for what does not
    exist."""
    address = address.rstrip("/")
    objects = open_objects(address)
    folder = _place(address)
    name = address.rpartition("/")[2]
    outer = address.rpartition("/")[0]
    if "." in name and not outer.endswith(":/") and open_objects(outer).entry(name) is not None:
        if name in ROWS_FILE.values():
            return mirror(outer) / name
        _replica(outer).update_files([name])
        return folder
    Replica(objects, folder, _lock(address)).update(rows=rows, segments=segments, own=own)
    _updated[folder, rows] = time.monotonic()
    return folder


def placed(place: str) -> Path:
    """Where what a config or manifest remembers, as `named` gives it, is or will be; nothing is fetched."""
    return _place(place.rstrip("/")) if is_remote(place) else Path(place.removeprefix("file://"))


def remembered(place: str) -> Path:
    """The same, fetched; a copy may be some seconds old."""
    path = placed(place)
    refresh(path)
    return path


def refresh(path: Path, *, rows: bool = True, age: float = 30.0) -> None:
    """Bring a copy up to date if that was not done within so many seconds; other paths are left alone."""
    folder = path.parent if path.name in ROWS_FILE.values() else path
    address = address_of(folder)
    if address and time.monotonic() - _updated.get((_place(address), rows), -age) >= age:
        mirror(address, rows=rows)


def push(folder: Path) -> None:
    """Bring back to the bucket what was changed in a copy; other folders are left alone."""
    if address := address_of(folder):
        _check_once(address)
        _replica(address).push()


def _check_once(address: str) -> None:
    """The first time that this user writes to a bucket, find out whether it keeps its promises."""
    passed = _lock(address).with_name("passed")
    if not passed.exists():
        check(open_objects(address))
        if os.environ.get("ASSAY_SINGLE_WRITER") != "1":
            write_file(passed, b"")


def address_of(path: Path) -> str:
    """The address of what a path is a copy of; empty if it is none."""
    text = str(path.absolute())
    address = shown(text)
    return address if address != text else ""


def named(place: str | Path) -> str:
    """A path as configs and manifests remember it: an address, or absolute."""
    if is_remote(text := str(place)):
        return text.rstrip("/")
    path = Path(text.removeprefix("file://")).absolute()
    return address_of(path) or str(path)


def files(pattern: str) -> list[Path]:
    """Copies of the objects that an address or a pattern names."""
    start = re.split(r"[*?\[]", pattern)[0].rpartition("/")[0]
    name = pattern[len(start) + 1 :]
    objects = open_objects(start)
    if any(mark in name for mark in "*?["):
        parts = [
            ".*" if part == "**" else translate(part)[4:-3].replace(".*", "[^/]*")
            for part in name.split("/")
        ]
        fits = re.compile("/".join(parts).replace(".*/", "(?:.*/)?"), re.DOTALL)
        names = [entry.name for entry in objects.names("") if fits.fullmatch(entry.name)]
    else:
        names = [name] if objects.entry(name) is not None else []
    if not names:
        raise UserError(f"no file matches {pattern!r}", fix="correct the address")
    _replica(start).update_files(names)
    return [_place(start) / name for name in names]


@contextmanager
def writing(output: str | Path, *, force: bool = True) -> Generator[Path]:
    """Where to write what is to be at `output`: a bucket gets it when it is whole, in place of what is there if `force`
    says so."""
    if not (address := reading.address(output)):
        yield Path(str(output).removeprefix("file://"))
        return
    outer, _, name = address.rstrip("/").rpartition("/")
    objects = open_objects(outer)
    with TemporaryDirectory(prefix="assay-") as folder:
        yield Path(folder) / name
        for path in sorted(
            path for path in Path(folder).rglob("*") if path.is_file() and path.name[0] != "."
        ):
            part = path.relative_to(folder).as_posix()
            before = objects.entry(part)
            if before is not None and not force:
                fix = "choose another name, or replace it with --force (force=True)"
                raise UserError("there is such an object already", where=f"{outer}/{part}", fix=fix)
            if objects.swap(part, path, before.stamp if before else None) is None:
                fix = "run the command again"
                raise StoreError(
                    "another process has written it meanwhile", where=f"{outer}/{part}", fix=fix
                )


def _replica(address: str) -> Replica:
    return Replica(open_objects(address), _place(address), _lock(address))


def _bucket(address: str) -> tuple[str, str]:
    scheme, _, rest = address.partition("://")
    bucket, _, inner = rest.partition("/")
    return f"{scheme}://{bucket}", inner


def _place(address: str) -> Path:
    bucket, inner = _bucket(address)
    folder = _room(bucket) / bucket.partition("://")[2]
    ADDRESSES[str(folder.absolute())] = bucket
    return folder / inner


def _lock(address: str) -> Path:
    return _room(_bucket(address)[0]) / "lock"


def _room(bucket: str) -> Path:
    """The folder of a bucket's copies: one for each server that may have it, in memory for each process."""
    known = [bucket, *(os.environ.get(name, "") for name in _SERVERS)]
    in_memory = bucket.startswith("memory://")
    if in_memory:
        known = [bucket, str(os.getpid())]
    name = blake2b("\n".join(known).encode(), digest_size=10).hexdigest()
    room = state_folder() / "mirrors" / name
    if in_memory and not room.exists():
        make_folder(room)
        atexit.register(shutil.rmtree, room, ignore_errors=True)
    return room
