"""The numbers of a group, made of those of its tasks."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from assay.errors import UserError
from assay.formats.lm_eval.tasks.definition import Member, leaves

Key = tuple[str, str]  # metric, filter


class Numbers(msgspec.Struct, kw_only=True):
    """Of a task or a group. `size` of a task is its number of documents. `weights` has, for a group's key, how much each
    of its tasks counts."""

    size: int = 0
    values: dict[Key, float] = {}
    stderrs: dict[Key, float | None] = {}
    weights: dict[Key, dict[str, int]] = {}


def group_numbers(group: Member, tasks: Mapping[str, Numbers]) -> Numbers:
    """Return those of one group, from all tasks below it. A group without `aggregate_metric_list` has no values."""
    names = [leaf.name for leaf in leaves(group) if leaf.name in tasks]
    present = [tasks[name] for name in names]
    made = Numbers(size=sum(task.size for task in present) if group.aggregate else 0)
    for entry in group.aggregate:
        metric = entry["metric"]
        if entry.get("aggregation", "mean") != "mean":
            what = f"a group's aggregation can only be mean, not {entry['aggregation']!r}"
            raise UserError(what, where=f"the group {group.name}")
        weigh = bool(entry.get("weight_by_size", True))  # a text is true, as in the harness
        for pipeline in _pipelines(entry, metric, present):
            key = (metric, pipeline)
            weights = {
                name: tasks[name].size if weigh else 1
                for name in names
                if key in tasks[name].values
            }
            if not weights:
                continue
            having = [tasks[name] for name in weights]
            made.weights[key] = weights
            made.values[key] = _mean([task.values[key] for task in having], weights.values())
            stderrs = [task.stderrs.get(key) for task in having]
            made.stderrs[key] = _stderr(stderrs, weights.values() if weigh else None)
    return made


def groups(members: Sequence[Member]) -> Iterator[Member]:
    """Every group, an outer one before those inside."""
    for member in members:
        if member.definition is None:
            yield member
            yield from groups(member.members)


def _pipelines(entry: Mapping[str, Any], metric: str, present: Sequence[Numbers]) -> list[str]:
    listed = entry.get("filter_list")
    if listed is None:
        return sorted(
            {name for task in present for measured, name in task.values if measured == metric}
        )
    return [listed] if isinstance(listed, str) else listed


def _mean(values: Sequence[float], weights: Collection[int]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _stderr(stderrs: Sequence[float | None], sizes: Collection[int] | None) -> float | None:
    """With sizes, from the pooled variance; without, of the plain mean of independent means."""
    present = [error for error in stderrs if error is not None]
    if len(present) != len(stderrs):
        return None
    if sizes is None:
        return math.sqrt(sum(error**2 for error in present)) / len(present)
    pooled = sum((size - 1) * error**2 * size for size, error in zip(sizes, present, strict=True))
    return math.sqrt(pooled / (sum(sizes) - len(sizes)) / sum(sizes))
