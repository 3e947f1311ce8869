"""A metric of a side for each item, and the differences of two sides.

The metric is applied by the aggregator's own function, so a side's value, interval, policy and counts are those of a
metric row.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from assay.analysis.compare.paired import Hashes, Side
from assay.engine.aggregate.measure import BoundMetric, Policy, bind_metric, measure
from assay.engine.experiment.sources import Source
from assay.errors import UserError
from assay.interfaces import FloatArray, Group, Values
from assay.records import MetricRow
from assay.stats.paired import Differences

_WEIGHTED = {"mean": "score", "pass_rate": "passed"}


class Measured(msgspec.Struct, kw_only=True):
    """A metric of a side under a label: its row, and for a mean over items the `values` whose mean it is. `items` are
    hashes of ids, sorted; `own` is what each item has by itself: where items have unequal numbers of samples, `values`
    also carry their weight. `within` is the part of the values' variance that samples of one item make."""

    bound: BoundMetric
    side: Side
    label: str
    scorer: str
    row: MetricRow
    items: Hashes = np.zeros(0, np.uint64)
    values: FloatArray | None = None
    own: FloatArray = np.zeros(0)
    one_each: bool = False
    lower_is_better: bool = False
    within: float = 0.0

    def among(self, items: Hashes) -> "Measured":
        """Measured again if there are other items: values that carry a weight depend on each other."""
        whole = len(items) == len(self.items)
        return self if whole else measured(self.bound, self.side, self.label, self.scorer, items)


def measured(
    bound: BoundMetric, side: Side, label: str, scorer: str = "", only: Hashes | None = None
) -> Measured:
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
    result = Measured(
        bound=bound, side=side, label=label, scorer=scorer, row=row, lower_is_better=lower
    )
    values = calls[0][1].per_item if calls and isinstance(calls[0][1], Values) else None
    if values is None or row["value"] is None:
        return result
    # the first call is the value; further ones are bounds
    group, items = (calls[0][0], calls[0][1].items)
    places, inverse, counts = np.unique(
        group.item if items is None else items, return_inverse=True, return_counts=True
    )
    result.items, result.values, result.own = side.columns.ids[places], values, values
    if bound.type in _WEIGHTED and int(counts.max()) > 1:
        rows = getattr(group, _WEIGHTED[bound.type]).astype(np.float64)
        own = np.bincount(inverse, weights=rows) / counts
        result.own = own if counts.min() < counts.max() else values
        squares = np.bincount(inverse, weights=(rows - own[inverse]) ** 2)[counts > 1]
        result.within = float((squares / (counts[counts > 1] - 1) / counts[counts > 1]).mean())
    result.one_each = int(counts.max()) == 1
    return result


class Matched(msgspec.Struct, kw_only=True):
    """Two sides on the items that both have. `changes` is by how much the value of each item rose."""

    items: Hashes
    candidate: Measured
    baseline: Measured
    differences: Differences
    changes: FloatArray
    binary: bool

    @property
    def gains(self) -> FloatArray:
        """By how much each item became better."""
        return -self.changes if self.candidate.lower_is_better else self.changes


def matched(candidate: Measured, baseline: Measured) -> Matched:
    common = np.intersect1d(candidate.items, baseline.items, assume_unique=True)
    if not len(common):
        raise UserError(
            f"{candidate.side.name!r} and {baseline.side.name!r} have no item in common",
            where=f"{candidate.side.source.path} and {baseline.side.source.path}",
            fix="compare experiments over the same dataset: items are matched by their ids, or by their questions",
        )
    first, second = candidate.among(common), baseline.among(common)
    assert first.values is not None
    assert second.values is not None
    both = np.concatenate([first.values, second.values])
    scale = max(1.0, float(both.max())) - min(0.0, float(both.min()))
    return Matched(
        items=common,
        candidate=first,
        baseline=second,
        differences=Differences(
            first.values - second.values,
            scale,
            bounded=scale == 1 and bool(candidate.bound.verdicts),
        ),
        changes=np.round(first.own - second.own, 12),
        binary=first.one_each and second.one_each and bool(np.isin(both, (0.0, 1.0)).all()),
    )


def bound_metric(name: str, policy: Policy, level: float) -> BoundMetric:
    """A metric by the name that a config would use."""
    pass_at = re.fullmatch(r"pass@(\d+)", name)
    if pass_at:
        return bind_metric(
            name=name, type="pass_at_k", params={"k": int(pass_at[1])}, policy=policy, level=level
        )
    return bind_metric(type=name, policy=policy, level=level)


class _Planned(msgspec.Struct):
    policy: Policy | None = None


def shared_policy(sources: Sequence[Source]) -> tuple[Policy, list[str]]:
    """The failure policy that the experiments' own metrics have, if it is one and the same."""
    policies: dict[Policy, None] = {}
    for source in sources:
        manifest = source.manifest("aggregation")
        try:
            planned = msgspec.convert(
                manifest.plan.get("metrics", []) if manifest else [], list[_Planned]
            )
        except msgspec.ValidationError as error:
            fix = "run `assay aggregate` on it again"
            raise UserError(
                f"the manifest's plan cannot be read: {error}", where=str(source.path), fix=fix
            ) from None
        policies.update((metric.policy or Policy(), None) for metric in planned)
    if len(policies) > 1:
        return Policy(), [
            "the experiments' failure policies differ; the default one is used for all"
        ]
    return next(iter(policies), Policy()), []
