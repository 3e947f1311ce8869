"""The third executor: evaluation rows → metric rows, by facets and label.

The rows are read once, as columns. The order of rows on disk changes no number and no byte of the result.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.errors import UserError
from assay.interfaces import Log, Store
from assay.records import Kind, Manifest, MetricRow
from assay.registry import nearest
from assay.steps.columns import SKIPPED, Columns, Ints, Reader, decode_row
from assay.steps.facets import order, typed, unknown
from assay.steps.join import Joined, Sources, declared, join_items, join_responses, missing
from assay.steps.judges import CALIBRATIONS, Judges
from assay.steps.measure import BoundMetric, Sample, measure
from assay.steps.plan import is_finished
from assay.steps.planned import Planned
from assay.steps.verdicts import tie_breakers, under_every_label, verdicts
from assay.store.keys import canonical, digest
from assay.store.repositories import AggregationRepository

WORTH_A_THREAD = 200 << 20  # bytes: about a second; a thread has a heap of its own, which costs memory
Codes = npt.NDArray[np.int32]


class Aggregator:
    """Computes metrics from stored evaluations and stores them."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def aggregate_async(
        self,
        evaluations: Sequence[str],
        metrics: Sequence[BoundMetric],
        *,
        id: str = "",
        name: str = "",
        runs: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
    ) -> list[MetricRow]:
        """The same; what takes long leaves the loop to others meanwhile."""
        work = partial(self.aggregate, evaluations, metrics, id=id, name=name, runs=runs, datasets=datasets)
        logs = [self.store.log("evaluation", one) for one in evaluations]
        size = sum(segment.size for log in logs for segment in log.segments())
        return await asyncio.to_thread(work) if size > WORTH_A_THREAD else work()

    def aggregate(
        self,
        evaluations: Sequence[str],
        metrics: Sequence[BoundMetric],
        *,
        id: str = "",
        name: str = "",
        runs: Sequence[str] | None = None,
        datasets: Sequence[str] | None = None,
    ) -> list[MetricRow]:
        """The metric rows of these evaluations taken together, in order of metric, facet values and label.

        `runs` and `datasets` are where facets are looked for that the rows lack; by default what the rows were made
        from. Without an `id` the aggregation gets the digest of its plan.
        """
        started = time.time()
        inputs = self._inputs(evaluations)
        plan = {"metrics": [bound.plan() for bound in metrics]}
        wanted = digest("aggregation", canonical((plan, inputs))).hex()
        own = id or wanted[:16]
        repository = AggregationRepository(self.store)
        with self.store.lock("aggregation", own):
            old = self.store.manifest("aggregation", own)
            if old is not None and is_finished(old, wanted, self.store.log("aggregation", own), False):
                return repository.metrics(own)
            rows, count = self._rows(evaluations, metrics, runs, datasets)
            repository.write(own, rows)
            self.store.put_manifest(
                Manifest(
                    kind="aggregation",
                    id=own,
                    name=name or (old.name if old else ""),
                    created=old.created if old else started,
                    started=started,
                    ended=time.time(),
                    complete=True,
                    digest=wanted,
                    planned=len(rows),
                    counts={"metrics": len(rows), "evaluations": count},
                    inputs=inputs,
                    plan=plan,
                    segments=self.store.log("aggregation", own).segments(),
                )
            )
        return rows

    def _inputs(self, evaluations: Sequence[str]) -> list[dict[str, Any]]:
        inputs: list[dict[str, Any]] = []
        for one in evaluations:
            manifest = self.store.manifest("evaluation", one)
            segments = self.store.log("evaluation", one).segments()
            if manifest is None and not segments:
                known = nearest(one, self.store.ids("evaluation"))
                raise UserError(f"there is no evaluation {one!r}", fix=known or "evaluate a run first")
            stats = [[segment.name, segment.size, segment.mtime_ns] for segment in segments]
            entry = {"kind": "evaluation", "id": one, "digest": manifest.digest if manifest else "", "rows": stats}
            if manifest is not None and CALIBRATIONS in manifest.metadata:
                entry[CALIBRATIONS] = digest("calibrations", canonical(manifest.metadata[CALIBRATIONS])).hex()
            inputs.append(entry)
        return inputs

    def _rows(
        self,
        evaluations: Sequence[str],
        metrics: Sequence[BoundMetric],
        runs: Sequence[str] | None,
        datasets: Sequence[str] | None,
    ) -> tuple[list[MetricRow], int]:
        facets = list(dict.fromkeys(facet for bound in metrics for facet in bound.facets))
        logs = [self.store.log("evaluation", one) for one in evaluations]
        reader = Reader(facets, positions=any(bound.wants_rows for bound in metrics))
        for one, log in zip(evaluations, logs, strict=True):
            reader.read(log, f"evaluation {one!r}")
        columns = reader.columns()
        if not len(columns.item):
            return [], 0
        behind = self._behind("evaluation", evaluations, "run") if runs is None else runs
        items = self._datasets(evaluations, behind) if datasets is None else datasets
        sources = Sources(
            logs,
            [self.store.log("run", one) for one in behind],
            [self.store.log("dataset", one) for one in items],
        )
        if missing(columns, facets):
            join_responses(columns, facets, sources)
            join_items(columns, facets, sources)
            self._check(columns, facets, logs)
        names = list(dict.fromkeys(name for bound in metrics for name in bound.columns))
        further = declared(names, columns, sources)
        planned = Planned([self.store.manifest("run", one) for one in behind], logs)
        count = len(columns.item)
        judges = Judges([self.store.manifest("evaluation", one) for one in evaluations])
        grouping = _Grouping(under_every_label(columns), logs, further, planned, judges)
        return grouping.measured(facets, metrics), count

    def _datasets(self, evaluations: Sequence[str], runs: Sequence[str]) -> list[str]:
        return self._behind("evaluation", evaluations, "dataset") or self._behind("run", runs, "dataset")

    def _behind(self, kind: Kind, ids: Sequence[str], sought: Kind) -> list[str]:
        manifests = [self.store.manifest(kind, one) for one in ids]
        entries = [entry for manifest in manifests if manifest for entry in manifest.inputs]
        return list(dict.fromkeys(entry["id"] for entry in entries if entry.get("kind") == sought))

    def _check(self, columns: Columns, facets: Sequence[str], logs: Sequence[Log]) -> None:
        for at, facet in enumerate(facets):
            if all(one.values[at] is UNSET for one in columns.combinations):
                examples = [next(log.scan(), None) for log in logs]
                raise unknown(facet, [decode_row(line, "") for _, line in filter(None, examples)])


class _Grouping:
    """All rows, and what their groups are made from."""

    def __init__(
        self, columns: Columns, logs: Sequence[Log], further: dict[str, Joined], planned: Planned, judges: Judges
    ) -> None:
        self.columns = columns
        self.logs = logs
        self.further = further
        self.planned = planned
        self.judges = judges
        self.outcome, self.passed, self.score = verdicts(columns)

    def measured(self, facets: Sequence[str], metrics: Sequence[BoundMetric]) -> list[MetricRow]:
        """Metrics that share their facets share the sorting and the groups."""
        by_metric: list[list[MetricRow]] = [[] for _ in metrics]
        sets = list(dict.fromkeys(tuple(bound.facets) for bound in metrics))
        for chosen in sets:
            sharing = [(number, bound) for number, bound in enumerate(metrics) if tuple(bound.facets) == chosen]
            places = {facet: facets.index(facet) for facet in chosen}
            for sample in self._samples(places, any(bound.ordered for _, bound in sharing), chosen is sets[-1]):
                for number, bound in sharing:
                    if bound.takes(sample.label):
                        by_metric[number] += measure(bound, sample)
        return [row for rows in by_metric for row in rows]

    def _samples(self, places: dict[str, int], ordered: bool, last: bool) -> Iterator[Sample]:
        """The groups in order of their facet values and label; groups without a due verdict are left out. The `last`
        time the columns are given up as they are sorted, so that there is never a second copy of all of them."""
        columns = self.columns
        groups: dict[Any, tuple[tuple[Any, ...], str, set[str]]] = {}
        keys: list[Any] = []
        for one in columns.combinations:
            values = tuple(None if one.values[at] is UNSET else one.values[at] for at in places.values())
            key = (*map(typed, values), one.label)
            groups.setdefault(key, (values, one.label, set()))[2].add(one.scorer)
            keys.append(key)
        ranked = sorted(groups, key=lambda key: ([order(value) for value in groups[key][0]], groups[key][1]))
        rank = {key: number for number, key in enumerate(ranked)}
        group = np.array([rank[key] for key in keys], dtype=np.int32)[columns.combination]
        rows = _sorted(group, columns.item, columns.sample, lambda: self._ties(ordered))
        ends = np.cumsum(np.bincount(group, minlength=len(ranked)))
        del group
        sorted_columns = self._arranged(rows, last)
        for number, key in enumerate(ranked):
            part = slice(ends[number - 1] if number else 0, ends[number])
            at = rows[part]
            item, sample, passed, score, outcome = (column[part] for column in sorted_columns)
            if (outcome == SKIPPED).all():
                continue
            values, label, scorers = groups[key]
            facets = dict(zip(places, values, strict=True))
            yield Sample(
                label=label,
                facets=facets,
                item=item,
                sample=sample,
                passed=passed,
                score=score,
                outcome=outcome,
                load=partial(self._load, at),
                take=partial(self._take, at),
                planned=self.planned.count(facets, scorers),
                calibration=self.judges.calibration(label),
                warning=self.judges.warning(scorers, facets),
            )

    def _arranged(self, rows: Ints, last: bool) -> list[npt.NDArray[Any]]:
        """Item, sample, passed, score and outcome in the order of `rows`."""
        found: list[npt.NDArray[Any]] = []
        for owner, name in (
            (self.columns, "item"),
            (self.columns, "sample"),
            (self, "passed"),
            (self, "score"),
            (self, "outcome"),
        ):
            column = getattr(owner, name)
            found.append(column[rows])
            if last:
                setattr(owner, name, np.empty(0, column.dtype))
                if name == "score":  # often the same array
                    self.columns.score = np.empty(0)
            del column
        return found

    def _ties(self, ordered: bool) -> list[npt.NDArray[Any]]:
        if not ordered:
            return [self.score]
        row = self.columns.row
        return [column if row is None else column[row] for column in tie_breakers(self.logs)]

    def _take(self, at: Ints, name: str) -> list[Any]:
        return self.further[name].take(at if self.columns.row is None else self.columns.row[at])

    def _load(self, at: Ints) -> list[dict[str, Any]]:
        sources = np.searchsorted(self.columns.starts, at, side="right") - 1
        places = zip(sources.tolist(), self.columns.positions[at].tolist(), strict=True)
        return [decode_row(self.logs[source].read(position), "evaluation row") for source, position in places]


def _sorted(group: Codes, item: Codes, sample: Codes, ties: Callable[[], list[npt.NDArray[Any]]]) -> Ints:
    """The order of rows by group, item and sample.

    Rows may tie, as those of two models without a facet for the model. Then `ties` decides: their keys where their
    order matters, otherwise their scores, so that sums are equal to the last bit; never their place in a file.
    """
    lowest = int(sample.min())
    items, samples = int(item.max()) + 1, int(sample.max()) - lowest + 1
    if (int(group.max()) + 1) * items * samples < 2**62:
        joint = group.astype(np.int64)
        joint *= items
        joint += item
        joint *= samples
        joint += sample - lowest
        found = np.argsort(joint)
        joint.sort()
        if not (joint[1:] == joint[:-1]).any():
            return found
    return np.lexsort((*ties(), sample, item, group))
