"""The third executor: evaluation rows → metric rows, by facets and label.

The rows are read once, as columns. The order of rows on disk changes no number and no byte of the result.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypedDict, Unpack

from msgspec import UNSET

from assay.engine.aggregate.groups import Grouping, under_every_label
from assay.engine.aggregate.join import (
    Sources,
    cluster_hint,
    join_items,
    join_responses,
    joined_columns,
    missing,
)
from assay.engine.aggregate.measure import BoundMetric
from assay.engine.aggregate.planned import Planned
from assay.engine.evaluate.directions import Directions
from assay.engine.evaluate.judges import CALIBRATIONS, Judges
from assay.engine.run.artefact import close_artefact, input_of, new_manifest
from assay.engine.run.evidence import PARTIAL, DamagedError, partial_of
from assay.engine.run.plan import is_finished
from assay.sdk import JsonObject, Kind, Log, MetricRow, Store, canonical, digest
from assay.store.repositories import AggregationRepository
from assay.store.table.decode import decode_row
from assay.store.table.facets import unknown
from assay.store.table.labels import Columns, Reader, narrowed
from assay.store.table.processes import Processes

# bytes: about a second; a thread has a heap of its aggregation, which costs memory
WORTH_A_THREAD = 200 << 20
NUMBERS = ".3"  # changes with what numbers mean: stored ones are computed again


class Settings(TypedDict, total=False):
    """Without an `id` the aggregation gets the digest of its plan. `runs` and `datasets` are where facets are looked up
    that the rows lack; by default what the rows were made from."""

    id: str
    name: str
    runs: Sequence[str] | None
    datasets: Sequence[str] | None


class Aggregator:
    """Computes metrics from stored evaluations and stores them; with `workers` by up to this many
    processes. `note` is told of items that belong together although no `cluster_by` says so."""

    def __init__(
        self, store: Store, *, workers: int = 1, note: Callable[[str], None] | None = None
    ) -> None:
        self.store = store
        self.workers = workers
        self.note = note

    async def aggregate_async(
        self,
        evaluations: Sequence[str],
        metrics: Sequence[BoundMetric],
        **settings: Unpack[Settings],
    ) -> list[MetricRow]:
        """Like `aggregate`; what takes long leaves the loop to others meanwhile."""
        work = partial(self.aggregate, evaluations, metrics, **settings)
        logs = [self.store.log("evaluation", evaluation) for evaluation in evaluations]
        size = sum(segment.size for log in logs for segment in log.segments())
        return await asyncio.to_thread(work) if size > WORTH_A_THREAD else work()

    def aggregate(
        self,
        evaluations: Sequence[str],
        metrics: Sequence[BoundMetric],
        **settings: Unpack[Settings],
    ) -> list[MetricRow]:
        """The metric rows of these evaluations taken together, in order of metric, facet values and label."""
        name = settings.get("name", "")
        inputs = self._inputs(evaluations)
        plan = {"metrics": [bound.plan() for bound in metrics]}
        wanted = digest("aggregation", canonical((plan, inputs))).hex()
        aggregation = settings.get("id") or wanted[:16]
        wanted += NUMBERS
        repository = AggregationRepository(self.store)
        with self.store.lock("aggregation", aggregation):
            old = self.store.manifest("aggregation", aggregation)
            if old is not None and is_finished(
                old, wanted, self.store.log("aggregation", aggregation), False
            ):
                self._check_seals(evaluations)
                return repository.metrics(aggregation)
            manifest = new_manifest(
                old, "aggregation", aggregation, plan, name=name, digest=wanted, inputs=inputs
            )
            rows, count = self._rows(
                evaluations, metrics, settings.get("runs"), settings.get("datasets")
            )
            manifests = [self.store.manifest("evaluation", each) for each in evaluations]
            if partial := partial_of(manifests):
                rows = [{**row, PARTIAL: partial} for row in rows]
            repository.write(aggregation, rows)
            manifest.complete, manifest.planned = True, len(rows)
            manifest.present = len(rows)
            manifest.counts = {"metrics": len(rows), "evaluations": count}
            close_artefact(self.store, manifest)
        return rows

    def _check_seals(self, evaluations: Sequence[str]) -> None:
        """After all rows were read by blocks this costs nothing."""
        for evaluation in evaluations:
            manifest, log = (
                self.store.manifest("evaluation", evaluation),
                self.store.log("evaluation", evaluation),
            )
            examined = bool(getattr(log, "hidden", ()))
            if manifest is not None and not examined and (damage := log.damage(manifest)):
                raise DamagedError(damage[0])

    def _inputs(self, evaluations: Sequence[str]) -> list[JsonObject]:
        inputs = [input_of(self.store, "evaluation", evaluation) for evaluation in evaluations]
        for entry in inputs:
            manifest = self.store.manifest("evaluation", entry["id"])
            if manifest is not None and CALIBRATIONS in manifest.metadata:
                found = canonical(manifest.metadata[CALIBRATIONS])
                entry[CALIBRATIONS] = digest("calibrations", found).hex()
        return inputs

    def _rows(
        self,
        evaluations: Sequence[str],
        metrics: Sequence[BoundMetric],
        runs: Sequence[str] | None,
        datasets: Sequence[str] | None,
    ) -> tuple[list[MetricRow], int]:
        facets = list(dict.fromkeys(facet for bound in metrics for facet in bound.facets))
        logs = [self.store.log("evaluation", evaluation) for evaluation in evaluations]
        processes = Processes(self.workers)
        positions = any(bound.wants_rows for bound in metrics)

        def read() -> Columns:
            reader = Reader(facets, positions=positions)
            for evaluation, log in zip(evaluations, logs, strict=True):
                reader.read(log, f"evaluation {evaluation!r}")
            return narrowed(reader.columns())

        columns = Reader(facets).join(processes.over(logs, read))
        self._check_seals(evaluations)
        if not len(columns.item):
            return [], 0
        behind = self._behind("evaluation", evaluations, "run") if runs is None else runs
        items = self._datasets(evaluations, behind) if datasets is None else datasets
        sources = Sources(
            logs,
            [self.store.log("run", run) for run in behind],
            [self.store.log("dataset", dataset) for dataset in items],
            processes,
        )
        if missing(columns, facets):
            join_responses(columns, facets, sources)
            join_items(columns, facets, sources)
            self._check(columns, facets, logs)
        further = joined_columns(metrics, columns, sources)
        planned = Planned([self.store.manifest("run", run) for run in behind], logs)
        manifests = [self.store.manifest("evaluation", evaluation) for evaluation in evaluations]
        of_labels = Judges(manifests), Directions(manifests)
        grouping = Grouping(under_every_label(columns), logs, further, planned, *of_labels)
        self._point_out_clusters(sources, grouping, metrics)
        return grouping.measured(facets, metrics, processes), len(columns.item)

    def _point_out_clusters(
        self, sources: Sources, grouping: Grouping, metrics: Sequence[BoundMetric]
    ) -> None:
        named = any(bound.cluster_by for bound in metrics)
        if self.note is not None and not named:
            for text in cluster_hint(sources, grouping.columns, *grouping.item_means()):
                self.note(text)

    def _datasets(self, evaluations: Sequence[str], runs: Sequence[str]) -> list[str]:
        return self._behind("evaluation", evaluations, "dataset") or self._behind(
            "run", runs, "dataset"
        )

    def _behind(self, kind: Kind, ids: Sequence[str], sought: Kind) -> list[str]:
        manifests = [self.store.manifest(kind, id) for id in ids]
        entries = [entry for manifest in manifests if manifest for entry in manifest.inputs]
        return list(dict.fromkeys(entry["id"] for entry in entries if entry.get("kind") == sought))

    def _check(self, columns: Columns, facets: Sequence[str], logs: Sequence[Log]) -> None:
        for at, facet in enumerate(facets):
            if all(combination.values[at] is UNSET for combination in columns.combinations):
                examples = [next(log.scan(), None) for log in logs]
                raise unknown(facet, [decode_row(line, "") for _, line in filter(None, examples)])
