"""Which objects belong to the copy of a bucket's folder: what the readers of an experiment need, or a list of them."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from assay.errors import UserError
from assay.store.files import INSIDE
from assay.store.ledger import LEDGER
from assay.store.shared.objects import Entry, Objects
from assay.store.stores import MANIFEST

# what a list of experiments reads
SMALL = (MANIFEST, "metrics.json", "metrics.jsonl", "config.yaml", "status.json")
MOST_FOREIGN = 10_000  # objects below a folder that is not an experiment's
_WHOLE = ("generations/", "superseded/", "rejected/", f"{INSIDE}/")
_NO_EXPERIMENTS = (
    "superseded",
    "rejected",
    "generations",
    "shards",
    "claims",
    "workers",
    "shares",
    "files",
    "node_modules",
)
_PARALLEL = 16


def experiment_files(objects: Objects, *, segments: bool = True) -> dict[str, list[Entry]]:
    """The objects of an experiment by folder, of segments those of the last generation, if any; of anything else
    all."""
    entries, folders = objects.level("")
    if not is_experiment({"": entries, **dict.fromkeys(folders)}):
        every = list(islice(objects.names(""), MOST_FOREIGN + 1))
        if len(every) > MOST_FOREIGN:
            what = f"there are more than {MOST_FOREIGN:,} objects below it, and it is not an experiment"
            raise UserError(what, where=objects.address, fix="name the folder of an experiment")
        return by_folder(every)
    plan = {"": [entry for entry in entries if is_visible(entry.name)]}
    if not segments:
        return plan
    for folder in (folder for folder in folders if folder in _WHOLE):
        plan |= by_folder(objects.names(folder))
    numbers = [entry.name for entry in plan.get("generations/", ())]
    last = max(numbers, key=lambda name: (len(name), name), default="")
    last = last.removeprefix("generations/").removesuffix(".json")
    if last:
        plan |= by_folder(objects.names(f"shards/{last}/"))
    for folder in (folder for folder in folders if folder.endswith(".d/")):
        direct, inner = objects.level(folder)
        plan |= by_folder(direct)
        if last and f"{folder}{last}/" in inner:
            plan |= by_folder(objects.names(f"{folder}{last}/"))
    return plan


def experiments_below(objects: Objects) -> tuple[dict[str, list[Entry]], dict[str, set[str]]]:
    """The small files of all experiments below, by folder, and the names of the folders in each folder. No rows are
    listed."""
    plan: dict[str, list[Entry]] = {}
    below: dict[str, set[str]] = {}
    prefixes = [""]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        while prefixes:
            inner: list[str] = []
            for prefix, (entries, folders) in zip(
                prefixes, pool.map(objects.level, prefixes), strict=True
            ):
                if any(entry.name == prefix + MANIFEST for entry in entries):
                    plan[prefix] = [
                        entry for entry in entries if entry.name[len(prefix) :] in SMALL
                    ]
                elif not prefix and (entries or folders):
                    plan[prefix] = []
                inner += filter(_may_hold_experiments, folders)
                below[prefix] = set(map(_last, folders))
            prefixes = inner
    return plan, below


def by_folder(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    folders: dict[str, list[Entry]] = {}
    for entry in entries:
        folder, slash, _ = entry.name.rpartition("/")
        folders.setdefault(folder + slash, []).append(entry)
    return folders


def is_visible(name: str) -> bool:
    return name[0] != "." or name == LEDGER


def is_experiment(folders: Mapping[str, Iterable[Entry] | None]) -> bool:
    """Whether these folders with their objects are an experiment's."""
    return "generations/" in folders or any(
        entry.name == MANIFEST for entry in folders.get("") or ()
    )


def is_part(folder: str) -> bool:
    """Whether a folder in an experiment's holds what belongs to it."""
    return f"{folder}/" in _WHOLE or folder == "shards" or folder.endswith(".d")


def _may_hold_experiments(folder: str) -> bool:
    name = _last(folder)
    return (
        name not in _NO_EXPERIMENTS
        and not name.endswith(".d")
        and (name[0] != "." or name == INSIDE)
    )


def _last(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2]
