"""The merged folder while it is made: its rows, then the manifests that a run of the whole plan would have left, then
its metrics. Rows are copied as they are, block by block."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from assay.config import to_yaml
from assay.engine.evaluate.evaluate import Evaluator
from assay.engine.evaluate.judges import CALIBRATIONS
from assay.engine.experiment.aggregate import aggregate
from assay.engine.experiment.merging.plans import OnePlan, placed_config
from assay.engine.experiment.merging.rows import Asked, Choice, MergedRow, Prefer, Rows
from assay.engine.experiment.runs import unite_items
from assay.engine.experiment.sources import Source
from assay.engine.experiment.trust import CONFIG, is_own, write_config
from assay.engine.run.artefact import close_artefact, new_manifest
from assay.engine.run.existing import Row
from assay.engine.run.plan import content_hash
from assay.errors import UserError
from assay.interfaces import Log
from assay.records import Kind, Manifest
from assay.store.files import write_file
from assay.store.keys import digest, short
from assay.store.keyset import KeySet, Seen
from assay.store.log import FileLog
from assay.store.stores import FlatStore
from assay.store.table.decode import read_rows
from assay.threads import run_blocking

MERGED = "merged"  # where a run's manifest has what it was merged from
LABELS = "labels.jsonl"


class Parts:
    """The sources of a merge: their logs, and which of their rows become one."""

    def __init__(self, sources: list[Source], prefer: Prefer | None) -> None:
        self.sources = sources
        self.prefer: Prefer | None = prefer
        self.responses = Choice(list(map(Rows, self.logs("run"))), prefer)
        # a label goes with the response that it is about
        self.evaluations = self._choice(
            self.logs("evaluation"), [partial(_is_about, keys) for keys in self.responses.lost]
        )

    def _choice(self, logs: Sequence[FileLog], dropped: Sequence[Asked]) -> Choice:
        return Choice(list(map(Rows, logs, dropped)), self.prefer)

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
        """Those of an item of which a row was lost yield to the calls of others: the rows that stay made those."""
        rows: list[Rows] = []
        for at, log in enumerate(self.beside("calls")):
            lost = (self.logs("run"), self.responses), (self.logs("evaluation"), self.evaluations)
            items = {item for logs, choice in lost for item in _items_of(logs[at], choice.lost[at])}
            rows.append(Rows(log, behind=partial(_is_of, items)))
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
        yield from (row.item_id for _, row in read_rows(log, Row) if short(row.key) in keys)


@dataclass
class MergedFolder:
    """`store` is where it is made, `target` where it will be."""

    store: FlatStore
    target: Path
    parts: Parts
    plan: OnePlan

    def __post_init__(self) -> None:
        self.id = self.store.id
        self.notes: list[str] = []

    def write(self, merged: dict[str, Any]) -> None:
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
        """What people said about answers, each line once."""
        seen = Seen()
        lines = [
            line
            for log in self.parts.beside("labels")
            for _, line in log.scan()
            if line and seen.add(short(digest("line", line)))
        ]
        if lines:
            write_file(self.store.folder / LABELS, b"".join(line + b"\n" for line in lines))

    def _config(self, config: dict[str, Any]) -> None:
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

    def _close_run(self, dataset: Manifest | None, merged: dict[str, Any]) -> None:
        parts, plan = self.parts, self.plan
        old = [source.evidence("run").manifest for source in parts.sources]
        choice = parts.responses
        if plan.tasks:
            whole: dict[str, Any] = {
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
        inputs = [{"kind": "dataset", "id": self.id, "digest": dataset.digest}] if dataset else []
        manifest = _manifest_of("run", self.id, old, whole, choice)
        manifest.inputs, manifest.planned, manifest.complete = inputs, planned, complete
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
        calibrations: dict[str, Any] = {}
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


def _manifest_of(
    kind: Kind, id: str, parts: Iterable[Manifest | None], plan: dict[str, Any], choice: Choice
) -> Manifest:
    """Return the manifest of the chosen rows, which is as old as the oldest of the parts."""
    manifests = [manifest for manifest in parts if manifest is not None]
    whole = new_manifest(manifests[0], kind, id, plan)
    whole.created = min(manifest.created for manifest in manifests)
    whole.started = min(manifest.started for manifest in manifests)
    whole.counts, whole.present = choice.counts, choice.present
    whole.labels = sorted({label for manifest in manifests for label in manifest.labels})
    return whole


def _retries(parts: Iterable[Manifest | None]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for manifest in filter(None, parts):
        total.update(msgspec.convert(manifest.metadata.get("retries", {}), dict[str, int]))
    return {"retries": dict(total)} if total else {}
