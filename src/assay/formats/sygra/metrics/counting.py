"""What our aggregator metrics share: how they count, and the numbers that stand beside SyGra's, never in
their place: what one would rather quote.

Attempts at one problem belong together, so that pass@k is the chance for a problem and not for the pool of all
records; averages come with their classes and supports; means have an interval over problems.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from assay.formats.sygra.metrics import BaseAggregatorMetric, BuiltIn, UnitMetricResult
from assay.interfaces import Codes, Group, Values
from assay.metrics.classification import fields_of
from assay.stats.classification import NONE, Matrix, resampled, scores
from assay.stats.intervals import Interval, mean_interval, no_interval
from assay.stats.resampling import statistic_interval
from assay.store.keys import id_hash
from assay.text.normalise import lower_spaces

_MOST_CLASSES = 1000  # a matrix of 8 MB; more labels than that are answers, not classes
_MOST_RESAMPLED = 50  # classes: the interval of their mean F1 takes a second or two
_MOST_PAIRS = 100_000  # of true and predicted labels: what is counted stays within some megabytes

Pairs = tuple[tuple[tuple[str, str | None], int], ...]


class Counting(BuiltIn, BaseAggregatorMetric):
    """A metric that needs each result only once, and keeps none. `reads` are the fields of evaluation rows that it
    needs beside the verdict; `reason` says why its value has no interval where it has none."""

    reads: ClassVar[tuple[str, ...]] = ()
    reason = "it is of all rows together, not a mean over items"

    def calculate(self, results: Iterable[UnitMetricResult]) -> dict[str, Any]:
        self.start()
        for result in results:
            self.add(result)
        return self.payload()

    @abstractmethod
    def start(self) -> None:
        """Forget what was counted."""

    @abstractmethod
    def add(self, result: UnitMetricResult) -> None: ...

    @abstractmethod
    def payload(self) -> dict[str, Any]: ...

    def older(self, payload: dict[str, Any], total: int) -> dict[str, Any]:
        """The payload of the older dialect, where it differs; `total` results were counted."""
        return payload

    def value(self, payload: Mapping[str, Any]) -> float | None:
        """The number of the payload that is the metric's value: the first."""
        return next(iter(payload.values()), None)

    def attempts(self) -> Codes | None:
        """The number of the attempt that each result is, where results tell."""
        return None

    def mean(self, group: Group) -> Values | None:
        """The mean over problems that its value should be, if it should be one."""
        return None

    def sound(self, group: Group) -> dict[str, Any]:
        """The sound numbers beside the payload that was counted last; `group` has the attempts by problem."""
        return {}


def by_problem(
    group: Group, problems: Sequence[str | None], attempts: Codes | None = None
) -> Group:
    """The attempts in the order of their problems, which are the items where `problems` says nothing else; `attempts`
    are their numbers, by default the samples'."""
    keys = group.item.astype(np.uint64)
    if any(problems):
        texts = (
            problem or f"\x1f{item}"
            for problem, item in zip(problems, group.item.tolist(), strict=True)
        )
        keys = np.fromiter(map(id_hash, texts), np.uint64, len(problems))
    order = np.argsort(keys, kind="stable")
    item = np.zeros(len(order), np.int32)
    np.cumsum(keys[order][1:] != keys[order][:-1], out=item[1:])
    sample = group.sample if attempts is None else attempts
    return Group(
        item=item, sample=sample[order], passed=group.passed[order], score=group.score[order]
    )


def quoted(values: Values, group: Group) -> dict[str, Any]:
    """A metric's value with its interval over problems."""
    interval: dict[str, Any] = {}
    if values.per_item is not None:
        samples = len(group.item)
        interval = _shown(
            mean_interval(
                values.per_item, samples=samples, scale=(0.0, 1.0), weights=values.weights
            )
        )
    reason = {"reason": values.reason} if values.value is None and values.reason else {}
    counts = {"problems": int(group.item[-1]) + 1, "attempts": len(group.item)}
    return {"value": values.value, **interval, **counts, **values.fields, **reason}


def for_each_k(
    prefix: str, most: int, metric: Callable[..., Values], group: Group
) -> dict[str, Any]:
    return {f"{prefix}{k}": quoted(metric(group, k=k), group) for k in range(1, most + 1)}


def _shown(interval: Interval) -> dict[str, Any]:
    return {
        "ci_low": interval.low,
        "ci_high": interval.high,
        "ci_level": 0.95,
        "ci_method": interval.method,
    }


class LabelPairs:
    """Counts of (true label, predicted label)."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str | None], int] = {}
        self._too_many = False
        self._spelled: dict[
            str, str
        ] = {}  # a predicted label that was right, and the true one that it spells

    def add(self, predicted: str | None, true: str | None, correct: bool) -> None:
        if true is None:
            return
        count = self._pairs.get((true, predicted), 0)
        if not count and len(self._pairs) == _MOST_PAIRS:
            self._too_many = True
            return
        self._pairs[true, predicted] = count + 1
        if not correct or predicted is None or predicted == true or predicted in self._spelled:
            return
        if lower_spaces(predicted) == lower_spaces(true):
            self._spelled[predicted] = true

    def report(self, golden_key: str, one_attempt: bool) -> dict[str, Any]:
        """`one_attempt`: no two records are attempts at the same problem, so that they can be drawn anew one by one."""
        classes = {true for true, _ in self._pairs}
        pairs: Counter[tuple[str, str | None]] = Counter()
        for (true, predicted), count in self._pairs.items():
            if predicted is not None and predicted not in classes:
                predicted = self._spelled.get(predicted, predicted)
            pairs[true, predicted] += count
        names = sorted(classes | {predicted for _, predicted in pairs if predicted is not None})
        if not names:
            return {"reason": f"no record has the golden key {golden_key!r}"}
        if self._too_many or len(names) > _MOST_CLASSES:
            return {
                "reason": f"more than {_MOST_CLASSES:,} different labels are answers, not classes"
            }
        return _classified(tuple(names), tuple(pairs.items()), one_attempt)


@lru_cache(8)
def _classified(names: tuple[str, ...], pairs: Pairs, one_attempt: bool) -> dict[str, Any]:
    """Precision, recall and F1 are three metrics of the same counts: the interval is drawn once."""
    numbers: dict[str | None, int] = {name: number for number, name in enumerate(names)} | {
        None: NONE
    }
    true = np.array([numbers[actual] for (actual, _), _ in pairs])
    predicted = np.array([numbers[label] for (_, label), _ in pairs])
    counts = np.array([count for _, count in pairs])
    matrix = np.zeros((len(names), len(names) + 1), np.int64)
    matrix[true, predicted] = counts  # NONE, which is -1, is the last column
    fields = fields_of(list(names), matrix, scores(matrix))
    sparse = fields["confusion_matrix"]
    fields["confusion_matrix"] = {
        row_label: {column_label: n for column_label, n in row.items() if n}
        for row_label, row in sparse.items()
    }
    if not one_attempt:
        interval = no_interval("a problem has several attempts")
    elif len(names) > _MOST_RESAMPLED:
        interval = no_interval(f"more than {_MOST_RESAMPLED} classes")
    else:
        interval = _interval_of_mean_f1(matrix)
    return {"macro_f1_interval": _shown(interval), **fields}


def _interval_of_mean_f1(matrix: Matrix) -> Interval:
    rows = np.repeat(np.arange(matrix.size), matrix.ravel())
    pairs = np.divmod(rows, matrix.shape[1])
    return statistic_interval(resampled(matrix, np.arange(len(rows)), *pairs, "macro_f1"))
