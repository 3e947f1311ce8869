"""The harness's numbers as metrics: a task's by its own aggregation and standard error, and those of its groups."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from assay.formats.lm_eval.chosen import request_of, requested_members, task
from assay.formats.lm_eval.scorer import NO_FILTER, SOUND
from assay.formats.lm_eval.scoring import aggregations as by
from assay.formats.lm_eval.scoring.groups import TaskNumbers, group_numbers, groups as groups_of
from assay.formats.lm_eval.tasks.definition import Definition, TaskMember, leaves
from assay.sdk import Group, JsonObject, Values, metric
from assay.stats.intervals import item_contributions, item_weights
from assay.stats.resampling import room_at, scaled_ends

_REQUEST, _TASK, _DOCUMENT, _NAME = (
    f"item.metadata.{name}" for name in ("request", "task", "document", "benchmark")
)
_COLUMNS = ["value", _REQUEST, _TASK, _DOCUMENT, _NAME]
_ANY = (-math.inf, math.inf)
_MOST: dict[Any, float] = {  # the largest value; the least is 0, or -1 of a correlation
    by.acc_all: 1,
    by.f1_score: 1,
    by.matthews_corrcoef: 1,
    by.brier_score: 2,
    by.bleu: 100,
    by.chrf: 100,
    by.chrfpp: 100,
    by.ter: math.inf,
    by.perplexity: math.inf,
    by.weighted_perplexity: math.inf,
    by.bits_per_byte: math.inf,
}


class _Task:
    """The rows of one task in the order of its documents."""

    def __init__(
        self, group: Group, rows: list[int], trusted: Sequence[str], bootstrap_iters: int
    ) -> None:
        columns = group.columns
        documents = columns[_DOCUMENT]
        self.rows = sorted(rows, key=lambda at: (documents[at], int(group.sample[at])))
        first = rows[0]
        self.modified = str(columns[_NAME][first]).partition(" (modified: ")[2].removesuffix(")")
        self.definition: Definition = task(
            columns[_REQUEST][first], columns[_TASK][first], tuple(trusted)
        )
        sound = group.label.endswith(SOUND)
        self.metric, _, pipeline = group.label.removesuffix(SOUND).partition(",")
        self.filter = pipeline or NO_FILTER
        values, scores = columns["value"], group.score
        self.values = [float(scores[at]) if values[at] is None else values[at] for at in self.rows]
        named = (self.definition, self.metric)
        self.value = by.aggregate(*named, self.values, sound=sound)
        self.stderr = by.stderr(*named, self.values, bootstrap_iters, sound=sound)
        self.aggregation = by.aggregation(*named)

    @property
    def scale(self) -> tuple[float, float]:
        """Return the range of the value: that of its aggregation, or of shares that it averages."""
        averages = self.aggregation in (by.mean, by.nanmean, by.median)
        if averages and not any(
            value < 0 or value > 1 for value in by.restored_values(self.values)
        ):
            return 0, 1
        least = -int(self.aggregation is by.matthews_corrcoef)
        return (least, _MOST[self.aggregation]) if self.aggregation in _MOST else _ANY

    def numbers(self) -> TaskNumbers:
        key = (self.metric, self.filter)
        return TaskNumbers(
            size=len(self.values), values={key: self.value}, stderrs={key: self.stderr}
        )

    def row_fields(self) -> JsonObject:
        return {
            "stderr": self.stderr,
            "filter": self.filter,
            "num_fewshot": self.definition.num_fewshot or 0,
            "version": self.definition.metadata.get("version"),
            "modified": self.modified or None,
            "lower_is_better": by.higher_is_better(self.definition, self.metric) is False,
        }


@metric(name="lm_eval.aggregate", columns=_COLUMNS, version=1)
def aggregate(
    group: Group, *, task_folders: Sequence[str] = (), bootstrap_iters: int = 100_000
) -> Values:
    """A task's value by its own aggregation, with the harness's standard error as `stderr`.

    Parameters:
    task_folders: folders and files of tasks whose code may be run
    bootstrap_iters: draws for a standard error that has no formula; 0: none
    """
    rows = _Task(group, list(range(len(group.item))), task_folders, bootstrap_iters)
    if rows.aggregation is by.mean:
        per_item = item_contributions(group.item, group.score)
        weights = item_weights(group.item)
        return Values(
            value=rows.value, fields=rows.row_fields(), per_item=per_item, weights=weights
        )
    found = _from_stderr(rows.value, rows.stderr, [rows], group.level)
    return Values(value=rows.value, fields=rows.row_fields(), **found)


@metric(name="lm_eval.groups", columns=_COLUMNS, version=1)
def groups(
    group: Group, *, task_folders: Sequence[str] = (), bootstrap_iters: int = 100_000
) -> list[Values]:
    """The values of groups of tasks, pooled as they say, with the harness's pooled standard error as `stderr`; nothing
    where there is none. The interval is that of the items of all tasks.

    Parameters:
    task_folders: folders and files of tasks whose code may be run
    bootstrap_iters: draws for a standard error that has no formula; 0: none
    """
    rows: dict[tuple[str, str], list[int]] = {}
    for at, place in enumerate(zip(group.columns[_REQUEST], group.columns[_TASK], strict=True)):
        rows.setdefault(place, []).append(at)
    tasks = {place: _Task(group, own, task_folders, bootstrap_iters) for place, own in rows.items()}
    made: list[Values] = []
    for request in dict.fromkeys(request for request, _ in tasks):
        own = {name: part for (source, name), part in tasks.items() if source == request}
        for member in groups_of(requested_members(**request_of(request))):
            made += _of_group(group, member, own)
    return made


def _of_group(group: Group, member: TaskMember, tasks: dict[str, _Task]) -> Iterator[Values]:
    numbers = group_numbers(member, {name: part.numbers() for name, part in tasks.items()})
    parts = [tasks[leaf.name] for leaf in leaves(member) if leaf.name in tasks]
    for key, value in numbers.values.items():
        error = numbers.stderrs[key]
        weights = {tasks[name]: weight for name, weight in numbers.weights[key].items()}
        changed = next((part.modified for part in parts if part.modified), "")
        fields = {"stderr": error, "filter": key[1], "version": member.version, "tasks": len(parts)}
        fields["modified"] = changed or None
        yield Values(
            value=value,
            fields=fields,
            items=np.concatenate(
                [*(group.item[part.rows] for part in parts), _left_out(group, parts)]
            ),
            facets={"benchmark": member.name + (f" (modified: {changed})" if changed else "")},
            **_evidence(group, value, error, weights),
        )


def _left_out(group: Group, parts: Sequence[_Task]) -> Any:
    """The items of the tasks' rows that the policy leaves out: they are counted beside the value."""
    names = {part.definition.task for part in parts}
    rows = [at for at, name in enumerate(group.left_out_columns.get(_TASK, ())) if name in names]
    return group.left_out[rows] if group.left_out is not None and rows else group.item[:0]


def _evidence(
    group: Group, value: float, error: float | None, weights: Mapping[_Task, int]
) -> JsonObject:
    """Return how the items of all tasks contribute to the weighted mean of the tasks' means. They
    vary around the mean of their own task: what sets tasks apart is no uncertainty. A task that is
    all right varies as if one more document were wrong, but no more than all tasks together do.

    For 3 to 57 tasks of 20 to 100 items that are 50 to 99 % right, intervals of these hold the truth
    93 to 99 % of the time; squared arms of the tasks' own intervals (MOVER) 81 to 96 %.
    """
    if not all(part.aggregation is by.mean and len(part.rows) > 1 for part in weights):
        return _from_stderr(value, error, weights, group.level)
    rows = np.concatenate([part.rows for part in weights])
    sizes = np.array([len(part.rows) for part in weights])
    share = np.array([*weights.values()]) / sizes
    share *= len(rows) / (share @ sizes)
    wider = _unseen(value, share, sizes, [group.score[part.rows].var() for part in weights])
    means = np.repeat([part.value for part in weights], sizes)
    values = value + np.repeat(share * wider, sizes) * (group.score[rows] - means)
    item = group.item[rows]
    share = np.repeat(share, sizes)
    return {"per_item": item_contributions(item, values), "weights": item_weights(item, share)}


def _unseen(value: float, share: Any, sizes: Any, spread: Any) -> Any:
    """Return how much wider tasks spread than they show: with their degrees of freedom, and with
    what those that are all right do not show."""
    unseen = np.minimum(sizes / (sizes + 1) ** 2, max(value * (1 - value), 0.0))
    own = share**2 * sizes
    wider = own @ np.where(spread, spread, unseen) / (own @ spread or 1.0)
    return np.sqrt(wider * sizes / (sizes - 1))


def _from_stderr(
    value: float, error: float | None, tasks: Collection[_Task], level: float
) -> JsonObject:
    """Return the interval that the harness's standard error gives within the range of the value, or
    why there is none. Where the error is 0, the documents may be alike by chance."""
    scale = min(part.scale for part in tasks)
    least, most = (None if math.isinf(end) else end for end in scale)
    value = min(value, scale[1])  # a BLEU of 100 is a little above it
    room = room_at(value, (least, most))
    if error is None or (not error and most is None):
        return {"reason": "the harness has no standard error for this aggregation"}
    variance = error**2 / room if error and room else 1 / sum(len(part.rows) for part in tasks)
    z = NormalDist().inv_cdf((1 + level) / 2)
    ends = scaled_ends(value, z * z * variance, (least, most))
    return {"interval": (*ends, "the harness's standard error")}
