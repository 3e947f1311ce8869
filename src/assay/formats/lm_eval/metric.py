"""The harness's numbers as metrics: a task's by its own aggregation and standard error, and those of its groups."""

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from assay.formats.lm_eval.chosen import request_of, requested, task
from assay.formats.lm_eval.scorer import NO_FILTER, SOUND
from assay.formats.lm_eval.scoring.aggregations import aggregate as aggregated
from assay.formats.lm_eval.scoring.aggregations import aggregation, higher_is_better, mean
from assay.formats.lm_eval.scoring.groups import Numbers, group_numbers, leaves
from assay.formats.lm_eval.scoring.groups import groups as groups_of
from assay.formats.lm_eval.scoring.stderr import stderr
from assay.formats.lm_eval.tasks.definition import Definition, Member
from assay.interfaces import Group, Values
from assay.registry import metric
from assay.stats.intervals import item_contributions, item_weights

_REQUEST, _TASK, _DOCUMENT, _NAME = (
    f"item.metadata.{name}" for name in ("request", "task", "document", "benchmark")
)
_COLUMNS = ["value", _REQUEST, _TASK, _DOCUMENT, _NAME]


class _Task:
    """The rows of one task in the order of its documents."""

    def __init__(
        self, group: Group, rows: list[int], trusted: Sequence[str], bootstrap_iters: int
    ) -> None:
        documents = group.columns[_DOCUMENT]
        self.rows = sorted(rows, key=lambda at: (documents[at], int(group.sample[at])))
        first = rows[0]
        self.modified = (
            str(group.columns[_NAME][first]).partition(" (modified: ")[2].removesuffix(")")
        )
        self.definition: Definition = task(
            group.columns[_REQUEST][first], group.columns[_TASK][first], tuple(trusted)
        )
        self.sound = group.label.endswith(SOUND)
        self.metric, _, self.filter = group.label.removesuffix(SOUND).partition(",")
        values, scores = group.columns["value"], group.score
        self.values = [float(scores[at]) if values[at] is None else values[at] for at in self.rows]
        self.value = aggregated(self.definition, self.metric, self.values, sound=self.sound)
        self.stderr = stderr(
            self.definition, self.metric, self.values, bootstrap_iters, sound=self.sound
        )
        self.is_mean = aggregation(self.definition, self.metric, sound=self.sound) is mean

    def numbers(self) -> Numbers:
        key = (self.metric, self.filter or NO_FILTER)
        return Numbers(size=len(self.values), values={key: self.value}, stderrs={key: self.stderr})

    def described(self) -> dict[str, Any]:
        return {
            "stderr": self.stderr,
            "filter": self.filter or NO_FILTER,
            "num_fewshot": self.definition.num_fewshot or 0,
            "version": self.definition.metadata.get("version"),
            "modified": self.modified or None,
            "lower_is_better": higher_is_better(self.definition, self.metric) is False,
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
    if rows.is_mean:
        per_item = item_contributions(group.item, group.score)
        weights = item_weights(group.item)
        return Values(value=rows.value, fields=rows.described(), per_item=per_item, weights=weights)
    interval = _interval(rows.value, rows.stderr, group.level)
    reason = None if interval else "the harness has no standard error for this aggregation"
    return Values(value=rows.value, fields=rows.described(), interval=interval, reason=reason)


@metric(name="lm_eval.groups", columns=_COLUMNS, version=1)
def groups(
    group: Group, *, task_folders: Sequence[str] = (), bootstrap_iters: int = 100_000
) -> list[Values]:
    """The values of groups of tasks, pooled as they say, with the pooled standard error; nothing where there is none.

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
        for member in groups_of(requested(**request_of(request))):
            made += _of_group(group, member, own)
    return made


def _of_group(group: Group, member: Member, tasks: dict[str, _Task]) -> Iterator[Values]:
    numbers = group_numbers(member, {name: part.numbers() for name, part in tasks.items()})
    parts = [tasks[leaf.name] for leaf in leaves(member) if leaf.name in tasks]
    for key, value in numbers.values.items():
        error = numbers.stderrs[key]
        changed = next((part.modified for part in parts if part.modified), "")
        fields = {"stderr": error, "filter": key[1], "version": member.version, "tasks": len(parts)}
        fields["modified"] = changed or None
        yield Values(
            value=value,
            fields=fields,
            interval=_interval(value, error, group.level),
            items=np.concatenate(
                [*(group.item[part.rows] for part in parts), _left_out(group, parts)]
            ),
            facets={"benchmark": member.name + (f" (modified: {changed})" if changed else "")},
        )


def _left_out(group: Group, parts: Sequence[_Task]) -> Any:
    """The items of the tasks' rows that the policy leaves out: they are counted beside the value."""
    names = {part.definition.task for part in parts}
    rows = [at for at, name in enumerate(group.left_out_columns.get(_TASK, ())) if name in names]
    return group.left_out[rows] if group.left_out is not None and rows else group.item[:0]


def _interval(value: float, error: float | None, level: float) -> tuple[float, float, str] | None:
    if error is None:
        return None
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    return value - reach, value + reach, "normal, from the harness's standard error"
