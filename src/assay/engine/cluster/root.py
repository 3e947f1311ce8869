"""A root: the folder or bucket that all workers of an experiment share, and the local folder that shows it."""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec

from assay.config import load, to_yaml
from assay.engine.cluster.shipping import materialise, with_local_paths
from assay.engine.evaluate.evaluate import scorer_plan
from assay.engine.experiment.existing import evaluate
from assay.engine.experiment.experiment import BoundConfig, Experiment, Options
from assay.engine.experiment.trust import CONFIG, is_trusted
from assay.engine.run.plan import content_hash, describe, plan_digest
from assay.reading import is_remote
from assay.sdk import ROWS_FILE, JsonObject, Manifest, UserError, write_file
from assay.store.shared.generations import Generation, last_generation
from assay.store.shared.mirror import local, push
from assay.store.shared.objects import FolderObjects, open_objects

_ACTING = ("metrics", "outputs", "logging", "env_vars", "evaluation_methods", "models")
_NARROWING = ("mode", "models", "limit", "num_samples")
_FEW = 16


class Whole(msgspec.Struct, kw_only=True):
    """That manifests and metrics were made from all shards: how many rows are in which state, and which metrics."""

    counts: dict[str, int] = {}
    metrics: str = ""


_AS_OF = re.compile(
    r"\n\{# images as of \d+ #\}$"
)  # in prompts whose images items name: keys hold their bytes


class Root:
    """`place` is a folder or an address such as s3://bucket/prefix."""

    def __init__(self, place: str | Path) -> None:
        self.objects = open_objects(place)
        self.place = str(place) if is_remote(place) else self.objects.address

    @cached_property
    def folder(self) -> Path:
        """Return where the root's whole files can be read, and written before they are part of
        it."""
        return local(self.place, segments=False)

    def update(self, *, segments: bool = True, own: bool = False) -> None:
        """Show in the folder what others have written, if it is a copy; `own`: this process holds the folder's lock,
        and a copy that somebody else writes to is left alone."""
        local(self.place, segments=segments, own=own)

    def restore(self, generation: Generation) -> None:
        """Show the files that a generation began with, whatever a process that died has left in their copies, and what
        workers have committed. This process holds the folder's lock."""
        if not isinstance(self.objects, FolderObjects):
            for name, size in generation.base.items():
                path = self.folder / name
                if path.exists() and path.stat().st_size != size:
                    path.unlink()
        self.update(own=True)

    def push(self) -> None:
        """Make what was written in the folder part of the root, if it is a copy."""
        push(self.folder)

    def generation(self) -> Generation | None:
        return last_generation(self.objects)

    def whole(self, generation: Generation) -> Whole | None:
        """Return what was made of a generation, once all of it was."""
        content = self.objects.read(generation.whole)
        return None if content is None else msgspec.json.decode(content, type=Whole)

    def unfinished_shards(self, generation: Generation) -> list[int]:
        """The shards that are not finished, by a listing, which may be stale; the last ones are looked up."""
        names = {entry.name for entry in self.objects.names(f"shards/{generation.number}/")}
        shards = [
            shard for shard in range(generation.shards) if generation.finished(shard) not in names
        ]
        if len(shards) > _FEW:
            return shards
        return [shard for shard in shards if self.objects.read(generation.finished(shard)) is None]


def experiment_of(
    root: Root, generation: Generation, folder: Path, environ: Mapping[str, str] | None
) -> Experiment:
    """The experiment as a generation describes it; `folder` is this worker's own."""
    write_file(folder / CONFIG, to_yaml(generation.config).encode())
    data = with_local_paths(
        generation.config, materialise(generation.files, root.objects, folder / "files")
    )
    items = root.folder / ROWS_FILE["dataset"]
    if data.get("dataset") and items.exists():  # where the dataset came from may be elsewhere
        data["dataset"] = {
            "type": "jsonl",
            "path": str(items),
            "media": data["dataset"].get("media", ""),
        }
    config = load(data, need=generation.verb or "run")
    is_trusted(folder, config, _ACTING)
    options: JsonObject = {**generation.options, "output_dir": str(root.folder)}
    if generation.verb == "evaluate":
        return evaluate(list(generation.paths), config, environ=environ, **options)
    return Experiment(config, Options(**options), environ=environ)


def plan_of(experiment: Experiment, bound: BoundConfig, dataset: Manifest | None) -> JsonObject:
    """Return what determines the rows of an experiment: workers and drivers must agree on it."""
    options = {name: value for name in _NARROWING if (value := getattr(experiment.options, name))}
    scorers = [scorer_plan(scorer) | scorer.declared for scorer in bound.scorers]
    plan: JsonObject = {"scorers": scorers, "seed": experiment.config.seed, "options": options}
    if bound.tasks:
        plan |= describe(bound.tasks, bound.samples, content_hash(dataset) if dataset else "")
        for identity in (task["identity"] for task in plan["tasks"]):
            if isinstance(identity.get("prompt"), str):
                identity["prompt"] = _AS_OF.sub("", identity["prompt"])
    elif dataset is not None:
        plan["dataset"] = dataset.digest
    return plan


def refuse_differences(generation: Generation, plan: JsonObject, where: str) -> None:
    """Refuse to work on a plan that is not the generation's, and name what differs."""
    if plan_digest(plan) == generation.digest:
        return
    differences = [
        f"{what}: {', '.join(names)}" for what, names in _differences(generation.plan, plan).items()
    ]
    raise UserError(
        f"this process does not have the plan that is under way here; different are {'; '.join(differences)}",
        where=where,
        fix="give every worker the same Assay, config and files, or wait until the workers have ended and run again",
    )


def _differences(theirs: JsonObject, ours: JsonObject) -> dict[str, list[str]]:
    from assay.config.differences import by_name  # there are none, most often

    found: dict[str, list[str]] = {}
    for part in sorted({*theirs, *ours}):
        a, b = theirs.get(part), ours.get(part)
        if a == b:
            continue
        if isinstance(a, list) and isinstance(b, list):
            there, here = by_name(a), by_name(b)
            names = sorted({*there, *here})
            found[part] = [name for name in names if there.get(name) != here.get(name)]
        else:
            found[part] = [f"{a} there, {b} here"]
    return found
