"""What our own metrics say about the verdicts of one column: beside SyGra's numbers, never in their place.

Attempts at one problem belong together, so that pass@k is the chance for a problem and not for the pool of all
records; averages come with their classes and supports; means have an interval over problems.
"""

from array import array
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from assay.formats.sygra.metrics.aggregate import (
    BaseAggregatorMetric,
    Labelled,
    PassAtKMetric,
    PassPowerKMetric,
    StepEfficiencyMetric,
    label,
    retry_number,
)
from assay.formats.sygra.metrics.results import UnitMetricResult
from assay.interfaces import Group, Values
from assay.metrics.classification import fields_of
from assay.metrics.pass_at_k import pass_at_k
from assay.metrics.pass_hat_k import pass_hat_k
from assay.metrics.pass_rate import pass_rate
from assay.metrics.step_efficiency import step_efficiency
from assay.stats.classification import NONE, macro_f1s, scores
from assay.stats.intervals import Interval, bootstrap_statistic, mean_interval
from assay.store.keys import id_hash
from assay.text.normalise import lower_spaces

_MOST_CLASSES = 1000  # a matrix of 8 MB; more labels than that are answers, not classes
_MOST_RESAMPLED = 50  # classes: the interval of their mean F1 takes a second or two
_MOST_PAIRS = 100_000  # of true and predicted labels: what is counted stays within some megabytes


class Verdicts:
    """The verdicts of one column: 9 bytes a record (13 with retries), and one count for each pair of labels."""

    def __init__(self) -> None:
        self._problems, self._retries, self._passed = array("Q"), array("i"), array("B")
        self._metrics: list[BaseAggregatorMetric] = []
        self._labels: dict[tuple[str, str], _Labels] = {}
        self._has_steps = False

    def serve(self, metric: BaseAggregatorMetric) -> None:
        """Count from now on what this metric's sound numbers need."""
        self._metrics.append(metric)
        self._has_steps |= isinstance(metric, StepEfficiencyMetric)
        if isinstance(metric, Labelled):
            keys = metric.predicted_key or metric.golden_key or "", metric.golden_key or metric.predicted_key or ""
            self._labels.setdefault(keys, _Labels(*keys))

    def add(self, result: UnitMetricResult, row: Mapping[str, Any]) -> None:
        self._problems.append(id_hash(_problem(result, row, len(self._problems))))
        if self._has_steps:
            self._retries.append(_retry(result))
        self._passed.append(bool(result.correct))
        for labels in self._labels.values():
            labels.add(result)

    def report(self, records: int) -> dict[str, Any]:
        """The numbers by name. Of all `records` some may have no verdict: the bounds say what they could change."""
        if not self._passed:
            return {}
        group = self._group()
        found: dict[str, Any] = {"accuracy": _measured(pass_rate(group), group) | _bounds(group, records)}
        for keys, labels in self._labels.items():
            name = "classification" if len(self._labels) == 1 else f"classification({', '.join(keys)})"
            found[name] = labels.report(len(group.item) == int(group.item[-1]) + 1)
        for metric in self._metrics:
            if isinstance(metric, PassAtKMetric):
                found["pass@k"] = _for_each_k("pass@", metric.k, pass_at_k, group)
            elif isinstance(metric, PassPowerKMetric):
                found["pass^k"] = _for_each_k("pass^", metric.k, pass_hat_k, group)
            elif isinstance(metric, StepEfficiencyMetric):
                values = step_efficiency(group, penalty=metric.penalty_per_retry)
                found["step_efficiency"] = _measured(values, group)
        return found

    def _group(self) -> Group:
        """The attempts in the order of their problems."""
        problems = np.frombuffer(self._problems, dtype=np.uint64)
        order = np.argsort(problems, kind="stable").astype(np.int32)
        item = np.zeros(len(order), np.int32)
        np.cumsum(problems[order][1:] != problems[order][:-1], out=item[1:])
        passed = np.frombuffer(self._passed, dtype=np.bool_)[order]
        return Group(
            item=item,
            sample=np.frombuffer(self._retries, np.int32)[order] if self._has_steps else np.zeros_like(item),
            passed=passed,
            score=passed.astype(np.float64),
        )


class _Labels:
    """Counts of (true label, predicted label)."""

    def __init__(self, predicted_key: str, golden_key: str) -> None:
        self._keys = predicted_key, golden_key
        self._pairs: dict[tuple[str, str | None], int] = {}
        self._too_many = False
        self._spelled: dict[str, str] = {}  # a predicted label that was right, and the true one that it spells

    def add(self, result: UnitMetricResult) -> None:
        predicted, true = label(result.predicted, self._keys[0]), label(result.golden, self._keys[1])
        if true is None:
            return
        count = self._pairs.get((true, predicted), 0)
        if not count and len(self._pairs) == _MOST_PAIRS:
            self._too_many = True
            return
        self._pairs[true, predicted] = count + 1
        if not result.correct or predicted is None or predicted == true or predicted in self._spelled:
            return
        if lower_spaces(predicted) == lower_spaces(true):
            self._spelled[predicted] = true

    def report(self, one_attempt: bool) -> dict[str, Any]:
        """`one_attempt`: no two records are attempts at the same problem, so that they can be drawn anew one by one."""
        classes = {true for true, _ in self._pairs}
        pairs: Counter[tuple[str, str | None]] = Counter()
        for (true, predicted), count in self._pairs.items():
            if predicted is not None and predicted not in classes:
                predicted = self._spelled.get(predicted, predicted)
            pairs[true, predicted] += count
        names = sorted(classes | {predicted for _, predicted in pairs if predicted is not None})
        if not names:
            return {"reason": f"no record has the golden key {self._keys[1]!r}"}
        if self._too_many or len(names) > _MOST_CLASSES:
            return {"reason": f"more than {_MOST_CLASSES:,} different labels are answers, not classes"}
        return _classified(names, pairs, one_attempt)


def _classified(names: list[str], pairs: Counter[tuple[str, str | None]], one_attempt: bool) -> dict[str, Any]:
    numbers: dict[str | None, int] = {name: number for number, name in enumerate(names)} | {None: NONE}
    true = np.array([numbers[one] for one, _ in pairs])
    said = np.array([numbers[other] for _, other in pairs])
    counts = np.array(list(pairs.values()))
    matrix = np.zeros((len(names), len(names) + 1), np.int64)
    matrix[true, said] = counts  # NONE, which is -1, is the last column
    found = fields_of(names, matrix, scores(matrix))
    sparse = found["confusion_matrix"]
    found["confusion_matrix"] = {one: {other: n for other, n in row.items() if n} for one, row in sparse.items()}
    if not one_attempt:
        interval = Interval(None, None, "none: a problem has several attempts")
    elif len(names) > _MOST_RESAMPLED:
        interval = Interval(None, None, f"none: more than {_MOST_RESAMPLED} classes")
    else:
        interval = bootstrap_statistic(counts, partial(macro_f1s, true, said))
    return {"macro_f1_interval": _shown(interval), **found}


def _problem(result: UnitMetricResult, row: Mapping[str, Any], number: int) -> str:
    """What this record is an attempt at: a mission's step, else its id, else nothing that another one shares."""
    mission, step = result.metadata.get("mission_id"), result.metadata.get("step_id")
    if mission is not None or step is not None:
        return f"{mission}\x1f{step}"
    return f"id\x1f{row['id']}" if row.get("id") is not None else f"\x1f{number}"


def _retry(result: UnitMetricResult) -> int:
    try:
        return min(max(int(retry_number(result.metadata)), 0), 2**31 - 1)
    except (OverflowError, TypeError, ValueError):
        return 0


def _measured(found: Values, group: Group) -> dict[str, Any]:
    interval: dict[str, Any] = {}
    if found.per_item is not None:
        interval = _shown(mean_interval(found.per_item, samples=len(group.item), bounded=True))
    problems = int(group.item.max()) + 1
    reason = {"reason": found.reason} if found.value is None and found.reason else {}
    return {
        "value": found.value,
        **interval,
        "problems": problems,
        "attempts": len(group.item),
        **found.fields,
        **reason,
    }


def _shown(interval: Interval) -> dict[str, Any]:
    return {"ci_low": interval.low, "ci_high": interval.high, "ci_level": 0.95, "ci_method": interval.method}


def _bounds(group: Group, records: int) -> dict[str, Any]:
    passed, missing = int(group.passed.sum()), records - len(group.item)
    return {"value_if_missing_wrong": passed / records, "value_if_missing_right": (passed + missing) / records}


def _for_each_k(prefix: str, most: int, metric: Any, group: Group) -> dict[str, Any]:
    return {f"{prefix}{k}": _measured(metric(group, k=k), group) for k in range(1, most + 1)}
