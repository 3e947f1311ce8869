"""Results of other programs that a verb was given directly: imported once to the user's cache, and read there.

A copy is made again when its source changes, and removed when nothing has read it for a month.
"""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import NamedTuple

from assay.engine.experiment.imports.results import folder_names, import_one
from assay.foreign import check_no_sidecar, read_known
from assay.sdk import VERSION, UserError, cache_folder, digest

_KEPT = 30 * 86_400.0  # seconds since it was read last
_logger = getLogger(__name__)


class Copy(NamedTuple):
    """An experiment of another program, by its name, and the folder of ours that has its rows. `origin` is what the
    user calls it: its file, or where several are in one, that and its name."""

    name: str
    folder: Path
    origin: str


def imported_copies(path: Path) -> list[Copy]:
    """A copy of each experiment of another program at a path; none if nothing there is one. Of several, those that
    cannot be read are left out, with a warning."""
    read = read_known(path)
    if not read:
        return []
    check_no_sidecar(path)
    made_by = VERSION.encode()  # another Assay may read it in another way
    place = (
        cache_folder()
        / "imported"
        / digest("imported", made_by, os.fsencode(os.path.abspath(path))).hex()
    )
    _remove_old(place.parent)
    copies: list[Copy] = []
    for each, name in zip(read, folder_names(read), strict=True):
        try:
            imported = import_one(each, place / name, waits=True)
            copies.append(
                Copy(each.foreign.dataset, place / name, _origin(path, imported.files, name))
            )
        except UserError as error:
            if each is read[-1] and not copies:
                raise
            _logger.warning("left out: %s", error)
    with suppress(OSError):
        os.utime(place)
    if len(copies) == 1:
        return [copies[0]._replace(origin=str(path))]
    return copies


def _origin(path: Path, files: Sequence[str], name: str) -> str:
    """`path` for the user's own spelling of it."""
    inside = os.path.relpath(files[0], os.path.abspath(path)) if len(files) == 1 else "."
    return f"{path}: {name}" if inside.startswith(".") else str(path / inside)


def _remove_old(place: Path) -> None:
    oldest = time.time() - _KEPT
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)
