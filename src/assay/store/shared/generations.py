"""The generations of a root: a plan, its shards, and which segments count. The last one counts, and each is made once.

Opening a generation is how a plan changes, how failures are tried again, and how segments become ordinary files. One
without shards means that one process writes the ordinary files, as in every experiment folder.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from xxhash import xxh3_64_intdigest

from assay.errors import LockedError, StoreError
from assay.store.files import make_folder
from assay.store.keyset import Seen
from assay.store.log import FileLog
from assay.store.shared.claims import Workers
from assay.store.shared.objects import FolderObjects, Objects
from assay.store.shared.segments import Segments, key_of

KEYED = ("responses", "evaluation_results")  # a row of these stands for work that is done once
STEMS = ("calls", "traces", *KEYED)  # in the order of commits: what a row was made from comes before it


class Generation(msgspec.Struct, kw_only=True):
    """`plan` is what determines the rows, for comparing; `config` is the whole config, `options` are those of the
    command line, `paths` the responses that are evaluated; `files` has the hashes of the files that travel with the
    plan, by path; `base` names the objects that hold whole files of this generation, where the root is a bucket."""

    number: int = 0
    shards: int = 0
    verb: Literal["", "run", "evaluate"] = ""
    id: str = ""
    digest: str = ""
    plan: dict[str, Any] = {}
    config: dict[str, Any] = {}
    options: dict[str, Any] = {}
    paths: list[str] = []
    versions: dict[str, str] = {}
    files: dict[str, str] = {}
    base: dict[str, str] = {}
    created: float = 0.0

    def prefix(self, stem: str, shard: int) -> str:
        """Where the segments of a shard's log are."""
        return f"{stem}.d/{self.number}/{shard:05}/"

    def segments(self, objects: Objects, stem: str, shard: int) -> Segments:
        return Segments(objects, self.prefix(stem, shard), key_of if stem in KEYED else None)

    def shard_of(self, item_id: str) -> int:
        """By the item: all of its responses are in one shard, so that scorers that take several have them."""
        return xxh3_64_intdigest(item_id.encode("utf-8", "surrogatepass")) % self.shards

    def workers(self, objects: Objects) -> Workers:
        return Workers(objects, f"workers/{self.number}/")

    def finished(self, shard: int) -> str:
        """The object that says that every cell of a shard has its row."""
        return f"shards/{self.number}/{shard:05}.json"

    @property
    def whole(self) -> str:
        """The object that says that all shards were finished, and what was made of them."""
        return f"whole/{self.number}.json"


def last_generation(objects: Objects) -> Generation | None:
    last: Generation | None = None
    while (content := objects.read(generation_name(0 if last is None else last.number + 1))) is not None:
        try:
            last = msgspec.json.decode(content, type=Generation)
        except ValueError as error:
            where = f"{objects.address}/{generation_name(0 if last is None else last.number + 1)}"
            raise StoreError(f"the generation cannot be read: {error}", where=where, fix="restore it") from None
    return last


def begin(objects: Objects, generation: Generation) -> bool:
    """Make a generation the last one; False if another was quicker."""
    if isinstance(objects, FolderObjects):
        _make_folders(objects.folder, generation.number)
    return objects.create(generation_name(generation.number), msgspec.json.encode(generation))


def close(objects: Objects, generation: Generation) -> None:
    """After this nobody can commit a row of the generation."""
    for stem in STEMS:
        for shard in range(generation.shards):
            generation.segments(objects, stem, shard).close()


def living(objects: Objects, generation: Generation) -> list[str]:
    """The workers that may be at work: all that have not ended, as far as one look can tell."""
    workers = generation.workers(objects)
    return [beat.worker for beat in workers.all() if workers.is_alive(beat.worker)]


def make_ordinary(folder: Path) -> None:
    """Before one process writes rows: the segments of the last generation become part of the ordinary files, and no
    worker can commit to them any more. The caller holds the folder's lock."""
    objects = FolderObjects(folder)
    last = last_generation(objects)
    if last is None or not last.shards:
        return
    if workers := living(objects, last):
        raise LockedError(
            f"this folder is used by {', '.join(workers[:3])}{' and others' if len(workers) > 3 else ''}",
            where=str(folder),
            fix=f"join them with --shard or --workers, or wait (for a killed one, a lease): assay status {folder}",
        )
    compact(folder, objects, last)
    begin(objects, Generation(number=last.number + 1, id=last.id))


def compact(folder: Path, objects: Objects, generation: Generation) -> None:
    """Put the rows of a generation's segments into the ordinary files of a folder that shows them."""
    close(objects, generation)
    for stem in STEMS:
        log = FileLog(folder / f"{stem}.jsonl")
        segments = log.path.with_suffix(".d") / str(generation.number)
        if segments.is_dir():
            log.replace(_lines(log))
            log.close()
            shutil.rmtree(segments)
    _make_folders(folder, generation.number + 1)  # readers take the largest number: late commits are not read


def _lines(log: FileLog) -> Iterator[bytes]:
    """The lines of the file, and those of the segments that it lacks: a process that died before it had begun the next
    generation has put them there, and may have changed them since. A line without a key stands for itself."""
    size = log.path.stat().st_size if log.path.exists() else 0
    key = key_of if log.path.stem in KEYED else bytes
    seen = Seen()
    for position, line in log.scan():
        number = xxh3_64_intdigest(key(line))
        if position < size:
            seen.add(number)
        elif number in seen:
            continue
        yield line + b"\n"


def _make_folders(folder: Path, number: int) -> None:
    for stem in STEMS:
        make_folder(folder / f"{stem}.d" / str(number))


def generation_name(number: int) -> str:
    return f"generations/{number}.json"
