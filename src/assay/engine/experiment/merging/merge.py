"""Several folders of one plan become one: parts of its items, of its models, or what several machines made.

Everything is written beside the target and takes its name when it is whole: a merge that is killed leaves no target.
The sources are read, never written. Where two of them disagree nothing is written, unless the caller prefers one.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from assay.engine.experiment.merging.folder import LABELS, MERGED, MergedFolder, Parts
from assay.engine.experiment.merging.plans import one_plan, refusal
from assay.engine.experiment.merging.rows import Choice, Prefer
from assay.engine.experiment.resolve import find_each
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG
from assay.engine.run.evidence import partial_of
from assay.errors import StoreError, UserError
from assay.records import ROWS_FILE, Kind
from assay.shown import Shown
from assay.store.files import store_error, sync_folder
from assay.store.keys import canonical, digest
from assay.store.lock import FolderLock
from assay.store.log import FileLog
from assay.store.seal import is_unchanged
from assay.store.shared.mirror import named, push, remembered
from assay.store.stores import FlatStore, read_manifests

_MOST_NAMED = 10
_KINDS: tuple[Kind, ...] = ("dataset", "run", "evaluation")


class MergedPart(msgspec.Struct, kw_only=True):
    """A source: the rows that it has, and those of them that are in the merged folder."""

    path: str
    responses: int
    responses_taken: int
    evaluations: int
    evaluations_taken: int


class Merged(Shown, kw_only=True):
    """What became one. `repeated` responses and evaluations are in several sources alike; about `decided` ones they
    disagree. `new` is False if the folder was this merge already."""

    folder: str
    parts: list[MergedPart]
    items: int
    responses: int
    planned: int | None
    evaluations: int
    metrics: int
    partial: str = ""
    repeated: int = 0
    decided: int = 0
    new: bool = True
    notes: list[str] = []


def merge(
    paths: Sequence[str | Path], output: str | Path, *, prefer: Prefer | None = None
) -> Merged:
    """Make one experiment's folder of several that are parts of one plan. `prefer` decides where they have different
    rows of one key: the folder named `first`, or the `newest` row."""
    if len(paths) < 2:
        raise UserError(
            "there is nothing to merge", fix="name at least two folders, and the new one with -o"
        )
    sources = find_each(paths)
    for source in sources:
        if source.folder is None or source.manifest("run") is None:
            fix = "name folders that `assay run` or `assay import` made"
            raise UserError(
                "there are no responses of an experiment here", where=str(source.path), fix=fix
            )
        if [other.folder for other in sources].count(source.folder) > 1:
            raise UserError(f"{str(source.folder)!r} is given twice", fix="name each folder once")
    plan, target = one_plan(sources), remembered(str(output)).absolute()
    before = _states(sources)
    wanted = digest("merge", canonical([before, prefer])).hex()
    is_there = _is_there(target, wanted)
    parts = Parts(sources, prefer)
    if is_there:
        return _result(target, parts, [], new=False)
    if prefer is None:
        _refuse_conflicts(parts)
    room = target.with_name(f".{target.name}.merging")
    store = FlatStore(room / target.name)
    with FolderLock(room):
        shutil.rmtree(store.folder, ignore_errors=True)  # an earlier merge was killed here
        folder = MergedFolder(store, target, parts, plan)
        folder.write(
            {"digest": wanted, "from": [source.origin or named(source.path) for source in sources]}
        )
        if _states(sources) != before:
            raise StoreError(
                "a folder has changed while it was merged", fix="merge it when its run has ended"
            )
        try:
            os.replace(store.folder, target)
            sync_folder(target.parent)
        except OSError as error:
            raise store_error(error, target) from error
        shutil.rmtree(room, ignore_errors=True)
    push(target)
    return _result(target, parts, folder.notes, new=True)


def _states(sources: Sequence[Source]) -> list[Any]:
    """What tells that sources are what they were; of rows, their bytes."""
    states: list[Any] = []
    for source in sources:
        folder = source.folder or source.path
        files = [source.files[kind] for kind in _KINDS if kind in source.files]
        files += [folder / name for name in ("calls.jsonl", "traces.jsonl", LABELS)]
        config = (folder / CONFIG).read_bytes() if (folder / CONFIG).is_file() else b""
        states.append(
            [digest("config", config).hex(), *(FileLog(file).checksums() for file in files)]
        )
    return states


def _is_there(target: Path, wanted: str) -> bool:
    """Whether the target is what this merge makes, unchanged; a folder that is anything else is refused."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return False
    store, manifests = FlatStore(target), read_manifests(target) if target.is_dir() else {}
    run = manifests.get("run")
    same = run is not None and run.metadata.get(MERGED, {}).get("digest") == wanted
    if same and all(
        is_unchanged(each, store.log(kind, each.id)) for kind, each in manifests.items()
    ):
        return True
    fix = "choose another folder with -o: the rows of a folder are never replaced"
    raise UserError(
        "this folder exists, and is not what this merge makes", where=named(target), fix=fix
    )


def _refuse_conflicts(parts: Parts) -> None:
    choices: dict[Kind, Choice] = {"run": parts.responses, "evaluation": parts.evaluations}
    count = sum(choice.conflicts for choice in choices.values())
    if count:
        texts = (
            text for kind, choice in choices.items() for text in _conflicts(parts, kind, choice)
        )
        what = f"the folders have different rows for {count:,} keys, and nothing was written"
        fix = "--prefer first keeps the rows of the folder that is named first, --prefer newest those made last"
        raise refusal(what, list(islice(texts, _MOST_NAMED)), count, fix)


def _conflicts(parts: Parts, kind: Kind, choice: Choice) -> Iterator[str]:
    """Whose row it is, and where both are."""
    for places in choice.pairs:
        number, at = places[0]
        row = choice.logs[number].row(at)
        what = (
            row.get("label") if kind == "evaluation" else row.get("task") or row.get("model_name")
        )
        files = [
            f"{parts.sources[number].path / ROWS_FILE[kind]}, row {at + 1:,}"
            for number, at in places
        ]
        yield f"{what}, item {row.get('item_id')!r}, sample {row.get('sample_index', 0)}: {' and '.join(files)}"


def _result(folder: Path, parts: Parts, notes: Sequence[str], *, new: bool) -> Merged:
    manifests = read_manifests(folder)
    run, measured = manifests["run"], manifests.get("aggregation")
    choices = (parts.responses, parts.evaluations)
    faults = [
        f"{source.name}: {fault}"
        for source in parts.sources
        for kind in ("run", "evaluation")
        if kind in source.files and (manifest := source.evidence(kind).manifest) is not None
        for fault in manifest.metadata.get("faults", [])
    ]
    return Merged(
        folder=named(folder),
        parts=[_part(parts, at) for at in range(len(parts.sources))],
        items=(manifests["dataset"].planned or 0) if "dataset" in manifests else 0,
        responses=run.present or 0,
        planned=run.planned,
        evaluations=sum(int(keep.sum()) for keep in parts.evaluations.keep),
        metrics=measured.counts.get("metrics", 0) if measured else 0,
        partial=partial_of([manifests.get("evaluation", run)]),
        repeated=sum(choice.repeated for choice in choices),
        decided=sum(choice.conflicts for choice in choices),
        new=new,
        notes=[*faults, *notes],
    )


def _part(parts: Parts, at: int) -> MergedPart:
    responses, evaluations = parts.responses.keep[at], parts.evaluations.keep[at]
    return MergedPart(
        path=parts.sources[at].place,
        responses=len(responses),
        responses_taken=int(responses.sum()),
        evaluations=len(evaluations),
        evaluations_taken=int(evaluations.sum()),
    )
