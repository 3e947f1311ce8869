"""A metric of a side for each item, and the differences of two sides.

The metric is applied by the aggregator's own function, so a side's value, interval, policy and counts are those of a
metric row.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from assay.analysis.compare.paired import Hashes, Side, planned_metrics
from assay.engine.aggregate.measure import BoundMetric, Policy, bind_metric, measure
from assay.engine.experiment.sources import Source
from assay.sdk import FloatArray, Group, MetricRow, UserError, Values
from assay.stats.paired import Differences
from assay.store.table.labels import Ints

_WEIGHTED = {"mean": "score", "pass_rate": "passed"}


class SideBounds(NamedTuple):
    """The values of a side if the `missing` rows of each item were wrong, and if they were right.
    Missing are rows without a verdict that the policy leaves out."""

    items: Hashes
    wrong: FloatArray
    right: FloatArray
    missing: Ints


class MeasuredSide(msgspec.Struct, kw_only=True):
    """A metric of a side under a label: its row, and for a mean over items the `values` whose mean it is. `items` are
    hashes of ids, sorted; `own` is what each item has by itself: where items have unequal numbers of samples, `values`
    also carry their weight. `present` are the items of all rows, failed ones too."""

    bound: BoundMetric
    side: Side
    label: str
    scorer: str
    row: MetricRow
    present: Hashes
    items: Hashes = np.zeros(0, np.uint64)
    values: FloatArray | None = None
    own: FloatArray = np.zeros(0)
    lower_is_better: bool = False
    bounds: SideBounds | None = None

    @property
    def no_value(self) -> str:
        """Return why there is none, as far as the metric says it."""
        return str(self.row.get("error") or self.row.get("reason") or "")

    def clusters(self, items: Hashes) -> Hashes | None:
        """Return the clusters of items; None where each is by itself."""
        name = self.bound.cluster_by
        return self.side.cluster_of(items, name) if name else None

    def without(self, other: "MeasuredSide") -> int:
        """Return how many items have a value, and no row there."""
        return len(np.setdiff1d(self.items, other.present, assume_unique=True))

    def among(self, items: Hashes) -> "MeasuredSide":
        """Measured again if there are other items: values that carry a weight depend on each other; none means all."""
        whole = len(items) in (0, len(self.present)) or np.array_equal(items, self.items)
        return self if whole else measured(self.bound, self.side, self.label, self.scorer, items)


def measured(
    bound: BoundMetric, side: Side, label: str, scorer: str = "", only: Hashes | None = None
) -> MeasuredSide:
    """`only` these items, or all."""
    calls: list[tuple[Group, Any]] = []

    def keeping(group: Group, **params: Any) -> Any:
        result = bound.function(group, **params)
        calls.append((group, result))
        return result

    kept = bound if bound.rows_name else msgspec.structs.replace(bound, function=keeping)
    sample = side.sample(bound, label, scorer, only)
    lower = sample.lower_is_better if bound.lower_is_better is None else bound.lower_is_better
    row, *further = measure(kept, sample)
    if further:
        raise UserError(
            f"{bound.name} has several values for {label!r}",
            fix="name one of them in its parameters",
        )
    result = MeasuredSide(
        bound=bound,
        side=side,
        label=label,
        scorer=scorer,
        row=row,
        present=side.columns.ids[np.flatnonzero(np.bincount(sample.item))],
        lower_is_better=lower,
    )
    if calls and row["value"] is not None and isinstance(calls[0][1], Values):
        _by_item(result, *calls[0])
        # of a side without missing rows there is one call
        result.bounds = _side_bounds(result, *(calls if len(calls) == 3 else calls[:1] * 3))
    return result


def _by_item(result: MeasuredSide, group: Group, found: Values) -> None:
    """Set what each item has, from the call that made the value."""
    if found.per_item is None:
        return
    values = found.per_item
    places, inverse, counts = np.unique(
        group.item if found.items is None else found.items, return_inverse=True, return_counts=True
    )
    result.items = result.side.columns.ids[places]
    result.values = result.own = values
    if result.bound.type in _WEIGHTED and int(counts.max()) > 1:
        rows = getattr(group, _WEIGHTED[result.bound.type]).astype(np.float64)
        own = np.bincount(inverse, weights=rows) / counts
        result.own = own if counts.min() < counts.max() else values


def _side_bounds(result: MeasuredSide, *calls: tuple[Group, Any]) -> SideBounds | None:
    """Return what the calls that took all missing rows for wrong and for right gave after the first."""
    (group, _), (whole, wrong), (_, right) = calls
    if wrong.per_item is None or right.per_item is None:
        return None
    ids = result.side.columns.ids
    used, rows = (np.bincount(each.item, minlength=len(ids)) for each in (group, whole))
    places = np.flatnonzero(rows) if wrong.items is None else np.unique(wrong.items)
    return SideBounds(ids[places], wrong.per_item, right.per_item, (rows - used)[places])


class MissingRows(NamedTuple):
    """By item that both sides have: how many rows are missing, its difference without them (NaN if
    there is none), and the differences with those that are worst and best for the candidate."""

    rows: Ints
    known: FloatArray
    extremes: tuple[FloatArray, FloatArray]
    clusters: Hashes | None

    def undoing(
        self, extreme: FloatArray, holds: Callable[[FloatArray, Hashes | None], bool]
    ) -> int:
        """Return how many rows, the most damaging first, undo what holds; 0 if none do."""
        plain = float(np.nanmean(self.known))
        shift = extreme - np.nan_to_num(self.known, nan=plain)
        order = np.flatnonzero(self.rows)
        damage = np.sign(extreme.mean() - plain) * shift[order] / self.rows[order]
        order = order[np.argsort(-damage)]

        def undone(count: int) -> bool:
            values = self.known.copy()
            values[order[:count]] = extreme[order[:count]]
            there = ~np.isnan(values)
            return not holds(values[there], None if self.clusters is None else self.clusters[there])

        if not undone(len(order)):
            return 0
        items = bisect_left(range(len(order)), True, lo=1, key=undone)
        return int(self.rows[order[:items]].sum())


class Matched(msgspec.Struct, kw_only=True):
    """Two sides on the items that both have. `changes` is by how much the value of each item rose;
    `like` makes other differences on the same scale; `missing` is None where no row is."""

    items: Hashes
    candidate: MeasuredSide
    baseline: MeasuredSide
    differences: Differences
    changes: FloatArray
    like: Callable[..., Differences]
    missing: MissingRows | None = None

    @property
    def gains(self) -> FloatArray:
        """By how much each item became better."""
        return -self.changes if self.candidate.lower_is_better else self.changes

    @property
    def bounds(self) -> tuple[Differences, ...] | None:
        """The differences if all missing rows were worst for the candidate, and best for it."""
        missing = self.missing
        return missing and tuple(
            self.like(extreme, clusters=missing.clusters) for extreme in missing.extremes
        )

    def missing_text(self, holds: Callable[[Differences], bool]) -> str:
        """Return a sentence if what holds without the missing rows might not hold with them."""
        missing = self.missing
        if missing is None:
            return ""
        found = [
            missing.undoing(extreme, lambda own, units: holds(self.like(own, clusters=units)))
            for extreme in missing.extremes
        ]
        if not any(found):
            return ""
        total = int(missing.rows.sum())
        fewest = min(filter(None, found))
        would = f"; {fewest:,} would" if fewest < total else ""
        return f"{total:,} missing row{'s' if total > 1 else ''} could reverse it{would}"


def match_sides(candidate: MeasuredSide, baseline: MeasuredSide) -> Matched:
    common = np.intersect1d(candidate.items, baseline.items, assume_unique=True)
    if not len(common):
        raise UserError(
            f"{candidate.side.name!r} and {baseline.side.name!r} have no item in common",
            where=f"{candidate.side.source.path} and {baseline.side.source.path}",
            fix="compare experiments over the same dataset: items are matched by their ids, or by their questions",
        )
    first = candidate.among(common)
    second = baseline.among(common)
    assert first.values is not None
    assert second.values is not None
    both = np.concatenate([first.values, second.values])
    scale = max(1.0, float(both.max())) - min(0.0, float(both.min()))
    bounded = scale == 1 and bool(candidate.bound.verdicts)
    like = partial(Differences, scale=scale, bounded=bounded)
    match = Matched(
        items=common,
        candidate=first,
        baseline=second,
        differences=like(first.values - second.values, clusters=candidate.clusters(common)),
        changes=np.round(first.own - second.own, 12),
        like=like,
    )
    if candidate.bounds and baseline.bounds:
        _add_missing(match, candidate.bounds, baseline.bounds)
    return match


def _add_missing(match: Matched, first: SideBounds, second: SideBounds) -> None:
    """Set what the missing rows of items that both sides have could do."""
    if not (first.missing.any() or second.missing.any()):
        return
    items, at, other = np.intersect1d(
        first.items, second.items, assume_unique=True, return_indices=True
    )
    known = np.full(len(items), np.nan)
    of_both = np.isin(match.items, items, assume_unique=True)
    known[np.isin(items, match.items, assume_unique=True)] = match.changes[of_both]
    worst = first.wrong[at] - second.right[other]
    best = first.right[at] - second.wrong[other]
    rows = first.missing[at] + second.missing[other]
    match.missing = MissingRows(rows, known, (worst, best), match.candidate.clusters(items))


def failure_counts(row: MetricRow) -> dict[str, int]:
    """Return how many rows have no verdict, by outcome."""
    return {name: row[f"{name}_count"] for name in ("errored", "unparsed", "refused", "skipped")}


def bound_metric(name: str, policy: Policy, level: float) -> BoundMetric:
    """A metric by the name that a config would use."""
    pass_at = re.fullmatch(r"pass@(\d+)", name)
    if pass_at:
        return bind_metric(
            name=name, type="pass_at_k", params={"k": int(pass_at[1])}, policy=policy, level=level
        )
    return bind_metric(type=name, policy=policy, level=level)


def shared_policy(sources: Sequence[Source]) -> tuple[Policy, list[str]]:
    """The failure policy that the experiments' own metrics have, if it is one and the same."""
    policies = {metric.policy or Policy(): None for metric in planned_metrics(sources)}
    if len(policies) > 1:
        return Policy(), [
            "the experiments' failure policies differ; the default one is used for all"
        ]
    return next(iter(policies), Policy()), []
