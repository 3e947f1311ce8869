"""Several folders of one plan become one: parts of its items, of its models, or what several machines made.

Everything is written beside the target and takes its name when it is whole: a merge that is killed leaves no target.
The sources are read, never written. Where two of them disagree nothing is written, unless the caller prefers one.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice, starmap
from pathlib import Path
from typing import Any, cast

import msgspec

from assay.config import to_yaml
from assay.config.differences import by_name, comparable, unequal
from assay.config.source import read
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.evaluate.judges import CALIBRATIONS
from assay.engine.experiment.existing import aggregate
from assay.engine.experiment.merging.rows import Asked, Choice, MergedRow, Prefer, RowsByCommit
from assay.engine.experiment.resolve import find_each
from assay.engine.experiment.runs import unite_items
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG, is_own, with_list, write_config
from assay.engine.run.artefact import close_artefact, new_manifest
from assay.engine.run.evidence import partial_of
from assay.engine.run.existing import ExistingRow
from assay.engine.run.plan import content_hash
from assay.sdk import (
    ROWS_FILE,
    JsonMapping,
    JsonObject,
    Kind,
    Log,
    Manifest,
    StoreError,
    UserError,
    canonical,
    digest,
    short,
)
from assay.shown import Shown
from assay.store.files import store_error, sync_folder, write_file
from assay.store.keyset import KeySet, Seen
from assay.store.lock import FolderLock
from assay.store.log import FileLog
from assay.store.seal import is_unchanged
from assay.store.shared.mirror import named, push, remembered
from assay.store.stores import FlatStore, read_manifests
from assay.store.table.decode import read_rows
from assay.threads import run_blocking

_AGREED = (
    "prompts",
    "sample_params",
    "num_samples",
    "benchmarks",
    "evaluation_methods",
    "metrics",
    "policy",
    "ci_level",
    "cluster_by",
    "seed",
)
_SHARED_OUT = ("models", "tasks")
_MOST_NAMED = 10
_LONGEST = 60


class OnePlan(msgspec.Struct, kw_only=True):
    """Of the merged run: `tasks` is empty for rows that were imported. `meets` says that scorers look at answers of
    several tasks at once, and folders have different ones: then labels are missing."""

    tasks: list[JsonObject]
    samples: int
    imported: list[Any]
    scorers: list[JsonObject]
    config: JsonObject | None
    meets: bool


def one_plan(sources: Sequence[Source]) -> OnePlan:
    """The plan that the sources are parts of; all differences at once if there is none."""
    pairs = starmap(_differences, combinations(sources, 2))
    problems = list(dict.fromkeys(chain.from_iterable(pairs)))
    if problems:
        raise UserError(with_list(_NO_PLAN, problems, _MOST_NAMED), fix=_FIX)
    runs = [*map(_run, sources)]
    tasks: JsonObject = {}
    scorers: JsonObject = {}
    for source, run in zip(sources, runs, strict=True):
        tasks |= {name: task for name, task in _tasks(run).items() if name not in tasks}
        scorers |= _scorers(source)
    return OnePlan(
        tasks=list(tasks.values()),
        samples=runs[0].plan.get("samples", 1),
        imported=[run.plan["adopted"] for run in runs if "adopted" in run.plan],
        scorers=list(scorers.values()),
        config=_config(sources),
        meets=any("player" in each for each in scorers.values())
        and any(set(_tasks(run)) != set(tasks) for run in runs),
    )


_NO_PLAN = "these are not parts of one plan, and nothing was written"
_FIX = "merge folders that were run with one config; `assay compare` and `assay diff` take different ones"


def _differences(first: Source, second: Source) -> Iterator[str]:
    for key, *values in chain(_unequal_configs(first, second), _unequal_plans(first, second)):
        both = zip(values, (first, second), strict=True)
        texts = [f"{_short(value)} in {source.name}" for value, source in both]
        yield f"{key}: {', '.join(texts)}"
    kinds = ["adopted" in _run(source).plan for source in (first, second)]
    if kinds[0] != kinds[1]:
        words = ["imported" if adopted else "run by Assay" for adopted in kinds]
        yield f"responses: {words[0]} in {first.name}, {words[1]} in {second.name}"


def _unequal_configs(first: Source, second: Source) -> Iterator[tuple[str, Any, Any]]:
    both = first.folder, second.folder
    configs = [comparable(folder / CONFIG) if folder else {} for folder in both]
    if all(configs):
        for key in _AGREED:
            yield from unequal(key, *(config.get(key) for config in configs))


def _unequal_plans(first: Source, second: Source) -> Iterator[tuple[str, Any, Any]]:
    """Yield what differs in runs that were made in one way, and in their evaluations."""
    mine, theirs = _run(first), _run(second)
    if ("adopted" in mine.plan) != ("adopted" in theirs.plan):
        return
    yield from unequal("samples", mine.plan.get("samples"), theirs.plan.get("samples"))
    tasks, others = _tasks(mine), _tasks(theirs)
    for name in tasks.keys() & others.keys():
        identities = (each[name].get("identity") for each in (tasks, others))
        yield from unequal(f"task {name}", *identities)
    if first.manifest("evaluation") is not None and second.manifest("evaluation") is not None:
        yield from unequal("scorer", _scorers(first), _scorers(second))


def _run(source: Source) -> Manifest:
    manifest = source.manifest("run")
    assert manifest is not None  # folders without one were refused
    return manifest


def _tasks(run: Manifest) -> JsonObject:
    return by_name(run.plan.get("tasks"))


def _scorers(source: Source) -> JsonObject:
    manifest = source.manifest("evaluation")
    return by_name(manifest.plan.get("scorers")) if manifest else {}


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _config(sources: Sequence[Source]) -> JsonObject | None:
    """The config of the first folder that has one, with the models and tasks of all."""
    files = [
        file for source in sources if source.folder and (file := source.folder / CONFIG).is_file()
    ]
    if not files:
        return None
    whole, *others = ({**read(file).data} for file in files)
    for other in others:
        for part in _SHARED_OUT:
            mine, theirs = cast("list[Any]", whole.get(part) or []), by_name(other.get(part))
            known = by_name(mine)
            whole[part] = [*mine, *(entry for name, entry in theirs.items() if name not in known)]
    return whole


def placed_config(config: JsonMapping, folder: Path) -> JsonObject:
    """The config as the merged folder has it: its dataset are the folder's own items, wherever they came from."""
    placed = {**config, "output_dir": named(folder), "limit": None}
    dataset: Any = config.get("dataset")
    if isinstance(dataset, Mapping) and not config.get("benchmarks"):
        kept = {key: dataset[key] for key in ("media",) if dataset.get(key)}
        placed["dataset"] = {"type": "jsonl", "path": named(folder / "items.jsonl"), **kept}
    return placed


MERGED = "merged"  # where a run's manifest has what it was merged from
LABELS = "labels.jsonl"


class MergeParts:
    """The sources of a merge: their logs, and which of their rows become one."""

    def __init__(self, sources: list[Source], prefer: Prefer | None) -> None:
        self.sources = sources
        self.prefer: Prefer | None = prefer
        self.responses = Choice(list(map(RowsByCommit, self.logs("run"))), prefer)
        # a label goes with the response that it is about
        self.evaluations = self._choice(
            self.logs("evaluation"), [partial(_is_about, keys) for keys in self.responses.lost]
        )

    def _choice(self, logs: Sequence[FileLog], dropped: Sequence[Asked]) -> Choice:
        return Choice(list(map(RowsByCommit, logs, dropped)), self.prefer)

    def logs(self, kind: Kind) -> list[FileLog]:
        """The rows of each source that count; an empty log where it has none."""
        return [
            source.evidence(kind).log if kind in source.files else self._file(source, f".no-{kind}")
            for source in self.sources
        ]

    def beside(self, name: str) -> list[FileLog]:
        return [self._file(source, name) for source in self.sources]

    def _file(self, source: Source, name: str) -> FileLog:
        return FileLog((source.folder or source.path) / f"{name}.jsonl")

    def calls(self) -> Choice:
        """Return the calls that stay. Those of an item of which a row was lost yield to others: the
        rows that stay made those."""
        rows: list[RowsByCommit] = []
        for at, log in enumerate(self.beside("calls")):
            lost = (self.logs("run"), self.responses), (self.logs("evaluation"), self.evaluations)
            items = {item for logs, choice in lost for item in _items_of(logs[at], choice.lost[at])}
            rows.append(RowsByCommit(log, behind=partial(_is_of, items)))
        return Choice(rows, self.prefer)

    def traces(self) -> Choice:
        lost = zip(self.responses.lost, self.evaluations.lost, strict=True)
        return self._choice(self.beside("traces"), [partial(_is_among, keys) for keys in lost])


def _is_about(lost: KeySet, row: MergedRow) -> bool:
    return len(lost) > 0 and any(short(key) in lost for key in row.responses or ())


def _is_among(lost: tuple[KeySet, ...], row: MergedRow) -> bool:
    return any(short(row.key) in keys for keys in lost)


def _is_of(items: set[str], row: MergedRow) -> bool:
    return row.item_id in items


def _items_of(log: Log, keys: KeySet) -> Iterator[str]:
    if len(keys):
        yield from (row.item_id for _, row in read_rows(log, ExistingRow) if short(row.key) in keys)


@dataclass
class MergedFolder:
    """`store` is where it is made, `target` where it will be."""

    store: FlatStore
    target: Path
    parts: MergeParts
    plan: OnePlan

    def __post_init__(self) -> None:
        self.id = self.store.id
        self.notes: list[str] = []

    def write(self, merged: JsonObject) -> None:
        """All of it; `merged` is what the run's manifest remembers."""
        parts, plan = self.parts, self.plan
        dataset = self._items()
        self.store.log("run", self.id).replace(parts.responses.blocks())
        for name, choice in (("calls", parts.calls()), ("traces", parts.traces())):
            if choice.present:
                self.store.log("run", self.id, name).replace(choice.blocks())
        self._labels()
        if plan.config is not None:
            self._config(plan.config)
        self._close_run(dataset, merged)
        if any(source.manifest("evaluation") is not None for source in parts.sources):
            self.store.log("evaluation", self.id).replace(parts.evaluations.blocks())
            self._close_evaluation(dataset)
            if plan.config is not None and plan.config.get("metrics"):
                self._measure()

    def _items(self) -> Manifest | None:
        sources = [source for source in self.parts.sources if "dataset" in source.files]
        if not sources:
            return None
        fix = "merge folders over parts of one dataset: items of one id must be equal"
        manifest = unite_items(
            self.store, self.id, [source.files["dataset"] for source in sources], fix
        )
        media = [
            old.metadata for source in sources if (old := source.manifest("dataset")) is not None
        ]
        if media and all(metadata == media[0] for metadata in media):
            manifest.metadata = {**media[0]}
            self.store.put_manifest(manifest)
        return manifest

    def _labels(self) -> None:
        """Write what people said about answers, each line once."""
        seen = Seen()
        lines = [
            line
            for log in self.parts.beside("labels")
            for _, line in log.scan()
            if line and seen.add(short(digest("line", line)))
        ]
        if lines:
            write_file(self.store.folder / LABELS, b"".join(line + b"\n" for line in lines))

    def _config(self, config: JsonObject) -> None:
        """It is the user's word if those of all folders are."""
        content = to_yaml(placed_config(config, self.target)).encode()
        folders = [
            source.folder
            for source in self.parts.sources
            if source.folder and (source.folder / CONFIG).exists()
        ]
        if not all(map(is_own, folders)):
            write_file(self.store.folder / CONFIG, content)
        elif note := write_config(self.store.folder, content):
            self.notes.append(note)

    def _close_run(self, dataset: Manifest | None, merged: JsonObject) -> None:
        parts, plan = self.parts, self.plan
        old = [source.evidence("run").manifest for source in parts.sources]
        choice = parts.responses
        if plan.tasks:
            whole: JsonObject = {
                "dataset": content_hash(dataset) if dataset else "",
                "samples": plan.samples,
                "tasks": plan.tasks,
            }
            planned = (dataset.planned or 0) * len(plan.tasks) * plan.samples if dataset else None
            complete = choice.present == planned
        else:
            whole = {"adopted": {MERGED: plan.imported}}
            complete = all(manifest is not None and manifest.complete for manifest in old)
            planned = choice.present if complete else None
        manifest = _manifest_of("run", self.id, old, whole, choice)
        manifest.inputs = _inputs_of(dataset)
        manifest.planned, manifest.complete = planned, complete
        manifest.metadata = {MERGED: merged, **_retries(old)}
        close_artefact(self.store, manifest, (task["name"] for task in plan.tasks))

    def _close_evaluation(self, dataset: Manifest | None) -> None:
        parts, plan = self.parts, self.plan
        old = [
            source.evidence("evaluation").manifest if "evaluation" in source.files else None
            for source in parts.sources
        ]
        inputs, _ = Evaluator(self.store).inputs([self.id], self.id if dataset else "")
        choice = parts.evaluations
        whole = {"runs": inputs, "scorers": plan.scorers}
        manifest = _manifest_of("evaluation", self.id, old, whole, choice)
        manifest.inputs = inputs
        manifest.complete = (
            all(each is not None and each.complete for each in old) and not plan.meets
        )
        manifest.planned = choice.present if manifest.complete else None
        calibrations: JsonObject = {}
        for each in filter(None, old):
            calibrations |= each.metadata.get(CALIBRATIONS, {})
        manifest.metadata = {CALIBRATIONS: calibrations} if calibrations else {}
        if plan.meets:
            self.notes.append(
                "answers of different folders have not met: `assay evaluate` plays those matches"
            )
        close_artefact(self.store, manifest, (scorer["name"] for scorer in plan.scorers))

    def _measure(self) -> None:
        """By the aggregator; what cannot be computed here, for its code is elsewhere, can be later."""
        try:
            run_blocking(aggregate(self.store.folder).run)
        except UserError as error:
            self.notes.append(
                f"there are no metrics: {error.what}; `assay aggregate {self.target}` computes them"
            )


def _inputs_of(dataset: Manifest | None) -> list[JsonObject]:
    return [{"kind": "dataset", "id": dataset.id, "digest": dataset.digest}] if dataset else []


def _manifest_of(
    kind: Kind, id: str, parts: Iterable[Manifest | None], plan: JsonObject, choice: Choice
) -> Manifest:
    """Return the manifest of the chosen rows, which is as old as the oldest of the parts."""
    manifests = [manifest for manifest in parts if manifest is not None]
    whole = new_manifest(manifests[0], kind, id, plan)
    whole.created = min(manifest.created for manifest in manifests)
    whole.started = min(manifest.started for manifest in manifests)
    whole.counts, whole.present = choice.counts, choice.present
    whole.labels = sorted({label for manifest in manifests for label in manifest.labels})
    return whole


def _retries(parts: Iterable[Manifest | None]) -> JsonObject:
    total: Counter[str] = Counter()
    for manifest in filter(None, parts):
        total.update(msgspec.convert(manifest.metadata.get("retries", {}), dict[str, int]))
    return {"retries": dict(total)} if total else {}


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
    parts = MergeParts(sources, prefer)
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
    """Return what tells that sources are what they were; of rows, their bytes."""
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
    """Return whether the target is what this merge makes, unchanged; a folder that is anything else
    is refused."""
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


def _refuse_conflicts(parts: MergeParts) -> None:
    choices: dict[Kind, Choice] = {"run": parts.responses, "evaluation": parts.evaluations}
    count = sum(choice.conflicts for choice in choices.values())
    if count:
        texts = (
            text for kind, choice in choices.items() for text in _conflicts(parts, kind, choice)
        )
        what = f"the folders have different rows for {count:,} keys, and nothing was written"
        fix = "--prefer first keeps the rows of the folder that is named first, --prefer newest those made last"
        named = list(islice(texts, _MOST_NAMED))
        raise UserError(with_list(what, named, _MOST_NAMED, count), fix=fix)


def _conflicts(parts: MergeParts, kind: Kind, choice: Choice) -> Iterator[str]:
    """Yield whose row it is, and where both are."""
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


def _result(folder: Path, parts: MergeParts, notes: Sequence[str], *, new: bool) -> Merged:
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


def _part(parts: MergeParts, at: int) -> MergedPart:
    responses, evaluations = parts.responses.keep[at], parts.evaluations.keep[at]
    return MergedPart(
        path=parts.sources[at].place,
        responses=len(responses),
        responses_taken=int(responses.sum()),
        evaluations=len(evaluations),
        evaluations_taken=int(evaluations.sum()),
    )
