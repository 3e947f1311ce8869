"""The names of a run's files, and the small file that remembers them until the run is finished.

Names carry the time at which the run began. A run that was killed goes on under its first time, so it leaves one file;
a command after a finished run is a new run.
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from assay.errors import UserError
from assay.store.files import write_file
from assay.store.stores import FlatStore

STATE = "sygra.json"
_KINDS = ("json", "jsonl")
_FORBIDDEN = set('/\\:*?"<>|\0')


class Names:
    """`[run_name_]output[_time].json`, and the like with a post-processor's name for `output`."""

    def __init__(self, run_name: str, with_time: bool) -> None:
        bad = sorted(_FORBIDDEN & set(run_name)) or [c for c in run_name if not c.isprintable()]
        if bad or run_name in (".", "..") or len(run_name.encode()) > 150:
            raise UserError(
                f"run_name {run_name!r} cannot be part of a file's name", fix="use letters, digits, `-`, `_` and `.`"
            )
        self._prefix = f"{run_name}_" if run_name else ""
        self.with_time = with_time

    def of(self, name: str, stamp: str, suffix: str) -> str:
        time_part = f"_{stamp}" if self.with_time else ""
        return f"{self._prefix}{name}{time_part}.{suffix}"

    def distinct(self, folder: Path, stamp: str) -> Callable[[str], Path]:
        """Where the file of a post-processor goes; the second of one name gets a number."""
        taken: Counter[str] = Counter()

        def path_of(name: str) -> Path:
            taken[name] += 1
            number = f"-{taken[name]}" if taken[name] > 1 else ""
            return folder / self.of(f"{name}{number}", stamp, "json")

        return path_of


class Begun(msgspec.Struct):
    """When the current run began, as a file name and in seconds."""

    stamp: str
    started: float
    finished: bool = False


def begin(folder: Path, output_dir: Path, names: Names) -> Begun:
    """The run that was begun here and not finished, or a new one, whose name no other file has."""
    path = folder / STATE
    try:
        known = msgspec.json.decode(path.read_bytes(), type=Begun)
    except (FileNotFoundError, msgspec.DecodeError):
        known = None
    if known is not None and not known.finished:
        return known
    now = time.time()
    stamp = first = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now))
    number = 1
    while names.with_time and any((output_dir / names.of("output", stamp, kind)).exists() for kind in _KINDS):
        number += 1
        stamp = f"{first}-{number}"
    begun = Begun(stamp, now)
    keep(folder, begun)
    return begun


def keep(folder: Path, begun: Begun) -> None:
    write_file(folder / STATE, msgspec.json.encode(begun))


def set_aside(folder: Path) -> None:
    """Make room for a run from the beginning; the rows that were there stay beside it under another name."""
    if folder.exists():
        store = FlatStore(folder)
        with store.lock("run", store.id):  # nobody else may be writing to it
            pass
        folder.rename(folder.with_name(f"{folder.name}-{time.strftime('%Y-%m-%d_%H-%M-%S')}-{time.time_ns() % 10**9}"))
