"""The generations of a root: a plan, its shards, and which segments count. The last one counts, and each is made once.

Opening a generation is how a plan changes, how failures are tried again, and how segments become ordinary files. One
without shards means that one process writes the ordinary files, as in every experiment folder.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
from xxhash import xxh3_64_intdigest

from assay.errors import LockedError, StoreError
from assay.records import ROWS_FILE, JsonObject
from assay.store.files import make_folder
from assay.store.keyset import Seen
from assay.store.log import FileLog
from assay.store.shared.claims import Workers
from assay.store.shared.objects import FolderObjects, Objects
from assay.store.shared.segments import Segments, key_of

KEYED = ("responses", "evaluation_results")  # a row of these stands for work that is done once
# in the order of commits: what a row was made from comes before it
STEMS = ("calls", "traces", *KEYED)
BASE = (ROWS_FILE["dataset"], *(f"{stem}.jsonl" for stem in STEMS))


class Generation(msgspec.Struct, kw_only=True):
    """`plan` is what determines the rows, for comparing; `config` is the whole config, `options` are those of the
    command line, `paths` the responses that are evaluated; `files` has the hashes of the files that travel with the
    plan, by path; `base` has the sizes of the items and of the rows that it began with, by the names of their files."""

    number: int = 0
    shards: int = 0
    verb: Literal["", "run", "evaluate"] = ""
    id: str = ""
    digest: str = ""
    plan: JsonObject = {}
    config: JsonObject = {}
    options: JsonObject = {}
    paths: list[str] = []
    versions: dict[str, str] = {}
    files: dict[str, str] = {}
    base: dict[str, int] = {}
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

    @property
    def closing(self) -> str:
        """The object that says that its logs are being closed: its rows become part of whole files."""
        return f"whole/{self.number}.closed"


def last_generation(objects: Objects) -> Generation | None:
    last: Generation | None = None
    while (
        content := objects.read(generation_name(0 if last is None else last.number + 1))
    ) is not None:
        try:
            last = msgspec.json.decode(content, type=Generation)
        except ValueError as error:
            where = f"{objects.address}/{generation_name(0 if last is None else last.number + 1)}"
            raise StoreError(
                f"the generation cannot be read: {error}", where=where, fix="restore it"
            ) from None
    return last


def begin(objects: Objects, generation: Generation) -> bool:
    """Make a generation the last one; False if another was quicker."""
    if isinstance(objects, FolderObjects):
        _make_folders(objects.folder, generation.number)
    return objects.create(generation_name(generation.number), msgspec.json.encode(generation))


def close(objects: Objects, generation: Generation) -> None:
    """After this nobody can commit a row of the generation, and before this its whole files stay as they are."""
    objects.create(generation.closing, b"")
    for stem in STEMS:
        for shard in range(generation.shards):
            generation.segments(objects, stem, shard).close()


def is_open(objects: Objects, generation: Generation) -> bool:
    """Whether workers can add rows to what a generation began with. If not, an opener was cut short."""
    if objects.read(generation.closing) is not None:
        return False
    entries = {name: objects.entry(name) for name in BASE}
    return generation.base == {
        name: entry.size for name, entry in entries.items() if entry is not None
    }


def living(objects: Objects, generation: Generation) -> list[str]:
    """The workers that are at work. Of one that died on another machine this is known after a lease."""
    workers = generation.workers(objects)
    count = {beat.worker: beat.count for beat in workers.all()}
    while silent := [worker for worker in count if workers.is_alive(worker)]:
        beats = filter(None, map(workers.last, silent))
        if alive := [beat.worker for beat in beats if beat.count != count[beat.worker]]:
            return alive
        time.sleep(min(0.5, workers.lease / 10))
    return []


def make_ordinary(folder: Path) -> None:
    """Before one process writes rows: the segments of the last generation become part of the ordinary files, and no
    worker can commit to them any more. The caller holds the folder's lock."""
    if not (folder / generation_name(0)).exists():
        return
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
    close(objects, last)
    compact(folder, last)
    begin(objects, Generation(number=last.number + 1, id=last.id))


def compact(folder: Path, generation: Generation) -> None:
    """Put the rows of a closed generation's segments into the ordinary files of a folder that shows them."""
    for stem in STEMS:
        log = FileLog(folder / f"{stem}.jsonl")
        segments = log.path.with_suffix(".d") / str(generation.number)
        if segments.is_dir():
            # many runs have no calls and no traces of their own
            if log.path.exists() or next(log.scan(), None):
                log.replace(_lines(log))
            log.close()
            shutil.rmtree(segments)
    # readers take the largest number: late commits are not read
    _make_folders(folder, generation.number + 1)


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
