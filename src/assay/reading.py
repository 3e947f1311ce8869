"""How files are opened that a user or a folder names: a pipe that nobody writes to or a device without end is refused,
where plain `open` would wait or read forever. What a shell passes as /dev/stdin or /dev/fd/N may be a pipe."""

import errno
import io
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import cast

Paths = str | Path | Sequence[str | Path]
_PASSED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_SCHEMES = ("s3://", "gs://", "az://", "memory://")


_SHORTENED = re.compile(r"(s3|gs|az|memory):/(?=[^/])")


def each_of(paths: Paths) -> list[str | Path]:
    """Return one path, or several, as a list."""
    return [paths] if isinstance(paths, str | Path) else [*paths]


def is_remote(place: str | Path) -> bool:
    """Return whether a place is in a bucket, by its scheme. `file://` is a folder."""
    return str(place).startswith(_SCHEMES)


def is_foreign(place: str | Path) -> bool:
    """Return whether a place has a scheme that is none of ours: as a path it would be an odd folder
    here."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", str(place))) and not str(place).startswith(
        (*_SCHEMES, "file://")
    )


def address(place: str | Path) -> str:
    """The address of a place in a bucket, also of one that pathlib has shortened; empty for a path."""
    text = _SHORTENED.sub(r"\1://", str(place), count=1) if isinstance(place, Path) else place
    return text if is_remote(text) else ""


def opened(path: str | Path, buffering: int = -1) -> io.BufferedReader:
    """The file, to read bytes from; OSError where there is none."""
    return cast("io.BufferedReader", open(path, "rb", buffering, opener=_regular))


def content(path: str | Path) -> bytes:
    with opened(path) as file:
        return file.read()


def text(path: str | Path, encoding: str = "utf-8", errors: str = "strict") -> str:
    """With line feeds for whatever ends its lines."""
    return content(path).decode(encoding, errors).replace("\r\n", "\n").replace("\r", "\n")


def _regular(path: str, flags: int) -> int:
    passed = os.fspath(path).startswith(_PASSED)
    fd = os.open(path, flags | (0 if passed else os.O_NONBLOCK))
    mode = os.fstat(fd).st_mode
    # `open` refuses folders itself
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (passed and stat.S_ISFIFO(mode)):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "it is not a file but a pipe or a device", path)
