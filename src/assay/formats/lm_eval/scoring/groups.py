"""The numbers of a group, made of those of its tasks."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from assay.formats.lm_eval.tasks.definition import TaskMember, leaves
from assay.sdk import JsonObject, UserError

Key = tuple[str, str]  # metric, filter


class TaskNumbers(msgspec.Struct, kw_only=True):
    """Of a task or a group. `size` of a task is its number of documents. `weights` has, for a group's key, how much each
    of its tasks counts."""

    size: int = 0
    values: dict[Key, float] = {}
    stderrs: dict[Key, float | None] = {}
    weights: dict[Key, dict[str, int]] = {}


def group_numbers(group: TaskMember, tasks: Mapping[str, TaskNumbers]) -> TaskNumbers:
    """Return those of one group, from all tasks below it. A group without `aggregate_metric_list` has no values."""
    present = {leaf.name: tasks[leaf.name] for leaf in leaves(group) if leaf.name in tasks}
    made = TaskNumbers()
    if group.aggregate:
        made.size = sum(task.size for task in present.values())
    for entry in group.aggregate:
        if entry.get("aggregation", "mean") != "mean":
            what = f"a group's aggregation can only be mean, not {entry['aggregation']!r}"
            raise UserError(what, where=f"the group {group.name}")
        weigh = bool(entry.get("weight_by_size", True))  # a text is true, as in the harness
        for pipeline in _pipelines(entry, present.values()):
            _add_mean(made, (entry["metric"], pipeline), present, weigh)
    return made


def _add_mean(made: TaskNumbers, key: Key, tasks: Mapping[str, TaskNumbers], weigh: bool) -> None:
    having = {name: task for name, task in tasks.items() if key in task.values}
    if not having:
        return
    weights = {name: task.size if weigh else 1 for name, task in having.items()}
    made.weights[key] = weights
    products = (task.values[key] * weights[name] for name, task in having.items())
    made.values[key] = sum(products) / sum(weights.values())
    stderrs = [task.stderrs.get(key) for task in having.values()]
    made.stderrs[key] = _stderr(stderrs, weights.values() if weigh else None)


def groups(members: Sequence[TaskMember]) -> Iterator[TaskMember]:
    """Yield every group, an outer one before those inside."""
    for member in members:
        if member.definition is None:
            yield member
            yield from groups(member.members)


def _pipelines(entry: JsonObject, present: Iterable[TaskNumbers]) -> list[str]:
    listed = entry.get("filter_list")
    if listed is None:
        keys = {key for task in present for key in task.values}
        return sorted(name for metric, name in keys if metric == entry["metric"])
    return [listed] if isinstance(listed, str) else listed


def _stderr(stderrs: Sequence[float | None], sizes: Collection[int] | None) -> float | None:
    """Return with sizes the error from the pooled variance; without, that of the plain mean of independent means."""
    present = [error for error in stderrs if error is not None]
    if len(present) != len(stderrs):
        return None
    if sizes is None:
        return math.sqrt(sum(error**2 for error in present)) / len(present)
    pooled = sum((size - 1) * error**2 * size for size, error in zip(sizes, present, strict=True))
    return math.sqrt(pooled / (sum(sizes) - len(sizes)) / sum(sizes))
