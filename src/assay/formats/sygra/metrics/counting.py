"""What our aggregator metrics share: how they count, and the numbers that stand beside SyGra's, never in
their place: what one would rather quote.

Attempts at one problem belong together, so that pass@k is the chance for a problem and not for the pool of all
records; averages come with their classes and supports; means have an interval over problems.

Aggregator metrics: numbers over the results of one unit metric, with SyGra's payloads and formulas.

They are as SyGra computes them, pooled over all records where it pools; `sound` has what one would rather quote. Ours
count as they go (`start`, `add`, `payload`), so that a million records need no list.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from math import comb
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from assay.formats.sygra.metrics import (
    AggregatorMetricRegistry,
    BaseAggregatorMetric,
    BuiltIn,
    UnitMetricResult,
    aggregator_metric,
    built_in,
)
from assay.formats.sygra.types import Config, Row
from assay.metrics.classification import fields_of
from assay.metrics.label_scores import ACTUAL, PREDICTED, LabelCounts
from assay.metrics.pass_at_k import pass_at_k
from assay.metrics.pass_hat_k import pass_hat_k
from assay.metrics.pass_rate import pass_rate
from assay.metrics.step_efficiency import attempt_counts, efficiency, first_passes, step_efficiency
from assay.sdk import Codes, Group, Values, id_hash
from assay.stats.classification import NONE, Matrix, resampled, scores
from assay.stats.intervals import Interval, mean_interval, no_interval
from assay.stats.resampling import statistic_interval
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

    def calculate(self, results: Iterable[UnitMetricResult]) -> Row:
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
    def payload(self) -> Row: ...

    def older(self, payload: Row, total: int) -> Row:
        """The payload of the older dialect, where it differs; `total` results were counted."""
        return payload

    def value(self, payload: Config) -> float | None:
        """The number of the payload that is the metric's value: the first."""
        return next(iter(payload.values()), None)

    def attempts(self) -> Codes | None:
        """The number of the attempt that each result is, where results tell."""
        return None

    def mean(self, group: Group) -> Values | None:
        """The mean over problems that its value should be, if it should be one."""
        return None

    def sound(self, group: Group) -> Row:
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


def with_interval(values: Values, group: Group) -> Row:
    """A metric's value with its interval over problems."""
    interval: Row = {}
    if values.per_item is not None:
        samples = len(group.item)
        interval = _interval_fields(
            mean_interval(
                values.per_item, samples=samples, scale=(0.0, 1.0), weights=values.weights
            )
        )
    reason = {"reason": values.reason} if values.value is None and values.reason else {}
    counts = {"problems": int(group.item[-1]) + 1, "attempts": len(group.item)}
    return {"value": values.value, **interval, **counts, **values.fields, **reason}


def for_each_k(prefix: str, most: int, metric: Callable[..., Values], group: Group) -> Row:
    return {f"{prefix}{k}": with_interval(metric(group, k=k), group) for k in range(1, most + 1)}


def _interval_fields(interval: Interval) -> Row:
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

    def report(self, golden_key: str, one_attempt: bool) -> Row:
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
        return _classification(tuple(names), tuple(pairs.items()), one_attempt)


@lru_cache(8)
def _classification(names: tuple[str, ...], pairs: Pairs, one_attempt: bool) -> Row:
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
    return {"macro_f1_interval": _interval_fields(interval), **fields}


def _interval_of_mean_f1(matrix: Matrix) -> Interval:
    rows = np.repeat(np.arange(matrix.size), matrix.ravel())
    pairs = np.divmod(rows, matrix.shape[1])
    return statistic_interval(resampled(matrix, np.arange(len(rows)), *pairs, "macro_f1"))


Key = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
METADATA = "detailed_results.metadata"
_metric = partial(built_in, AggregatorMetricRegistry)


class _PooledMetric(Counting):
    """All records are one pool: how many there are, and how many are right."""

    def start(self) -> None:
        self.total = self.correct = 0

    def add(self, result: UnitMetricResult) -> None:
        self.total += 1
        self.correct += bool(result.correct)


@_metric("accuracy", "Accuracy", "The share of the records that are right")
class AccuracyMetric(_PooledMetric):
    def payload(self) -> Row:
        return {"accuracy": self._safe_divide(self.correct, self.total)}

    def mean(self, group: Group) -> Values:
        return pass_rate(group)


@aggregator_metric("pass_at_k")
@_metric("pass@k", "Pass@k", "The chance that at least one of k attempts is right")
class PassAtKMetric(_PooledMetric):
    """The chance that k records drawn from all of them hold a right one.

    Parameters:
    k: how many rows are drawn, or must all pass
    """

    k: Count

    def payload(self) -> Row:
        chances = {f"pass@{k}": 0.0 for k in range(1, self.k + 1)}
        for k in range(1, min(self.k, self.total) + 1):
            chances[f"pass@{k}"] = 1.0 - comb(self.total - self.correct, k) / comb(self.total, k)
        return chances

    def value(self, payload: Config) -> float | None:
        return payload.get(f"pass@{self.k}")

    def older(self, payload: Row, total: int) -> Row:
        if total and not 0 < self.k <= total:
            raise ValueError(f"k = {self.k}, but there are {total} results")
        return {"pass@k": payload.get(f"pass@{self.k}", 0.0)}

    def sound(self, group: Group) -> Row:
        return {"pass@k": for_each_k("pass@", self.k, pass_at_k, group)}


@_metric("pass^k", "Pass^k", "The chance that all of k attempts are right")
class PassPowerKMetric(_PooledMetric):
    """The chance that k independent attempts are all right, if each is right as often as the records are.

    Parameters:
    k: how many rows are drawn, or must all pass
    """

    k: Count

    def payload(self) -> Row:
        rate = self._safe_divide(self.correct, self.total)
        return {"success_rate": rate, **{f"pass^{k}": rate**k for k in range(1, self.k + 1)}}

    def value(self, payload: Config) -> float | None:
        return payload.get(f"pass^{self.k}")

    def older(self, payload: Row, total: int) -> Row:
        rate = payload["success_rate"]
        return {"success_rate": rate, "pass^k": rate**self.k if total else 0.0}

    def sound(self, group: Group) -> Row:
        return {"pass^k": for_each_k("pass^", self.k, pass_hat_k, group)}


class Labelled(Counting):
    """Labels are what stands under a key of either side, as text; a side without the key is left out. `numbers` are
    what is counted of them, and `name` is that in the payload.

    Parameters:
    predicted_key: the key of the predicted label, or the field (a dotted path) of the evaluation row that has it
    golden_key: the key of the true label, or the field (a dotted path) of the evaluation row that has it
    """

    reads = (PREDICTED, ACTUAL)
    reason = "an average over labels is not a mean over items"
    numbers: ClassVar[Callable[[LabelCounts], tuple[float, dict[str, float]]]]

    @property
    def keys(self) -> tuple[str, str]:
        """Return where the classes of the sound numbers are: a metric of one side takes its key for
        both."""
        predicted, golden = self._own_keys()
        return predicted or golden or "", golden or predicted or ""

    def _own_keys(self) -> tuple[str | None, str | None]:
        return vars(self).get("predicted_key"), vars(self).get("golden_key")

    def start(self) -> None:
        self.counts = LabelCounts()
        self._pairs = LabelPairs()

    def add(self, result: UnitMetricResult) -> None:
        sides = zip((result.predicted, result.golden), self.keys, strict=True)
        predicted, golden = (str(side[key]) if key in side else None for side, key in sides)
        by_predicted, by_golden = self._own_keys()
        correct = bool(result.correct)
        self.counts.add(predicted if by_predicted else None, golden if by_golden else None, correct)
        self._pairs.add(predicted, golden, correct)

    def payload(self) -> Row:
        name = self.about.name
        average, by_label = type(self).numbers(self.counts)
        return {f"average_{name}": average, f"{name}_per_class": by_label}

    def sound(self, group: Group) -> Row:
        one_attempt = len(group.item) == int(group.item[-1]) + 1
        return {"classification": self._pairs.report(self.keys[1], one_attempt)}


@_metric("precision", "Precision", "How often each predicted label is right")
class PrecisionMetric(Labelled):
    predicted_key: Key
    numbers = LabelCounts.precision


@_metric("recall", "Recall", "How often each true label is found")
class RecallMetric(Labelled):
    golden_key: Key
    numbers = LabelCounts.recall


@_metric("f1_score", "F1 Score", "The harmonic mean of precision and recall")
class F1ScoreMetric(Labelled):
    """Its average is the harmonic mean of average precision and average recall, not the mean of the classes' F1."""

    predicted_key: Key
    golden_key: Key
    numbers = LabelCounts.f1


_STEPS = "How soon each step is right: a retry costs a penalty, a step that never is right counts 0"


@_metric("step_efficiency", "Step Efficiency", _STEPS, metric_type="custom")
class StepEfficiencyMetric(Counting):
    """How many retries each step of a mission took until it was right.

    Parameters:
    penalty_per_retry: what each retry costs
    """

    reads = (METADATA,)
    penalty_per_retry: Annotated[float, Meta(ge=0, le=1)] = 0.2

    def start(self) -> None:
        self.steps: list[int] = []
        self.retries: list[float] = []
        self.verdicts: list[bool] = []

    def add(self, result: UnitMetricResult) -> None:
        mission, step = (result.metadata.get(name, "unknown") for name in ("mission_id", "step_id"))
        self.steps.append(id_hash(f"{mission}_{step}"))
        self.retries.append(retry_number(result.metadata))
        self.verdicts.append(bool(result.correct))

    def payload(self) -> Row:
        steps, retries = np.array(self.steps, np.uint64), np.array(self.retries, np.float64)
        first = first_passes(steps, retries, np.array(self.verdicts, np.bool_))
        values = efficiency(first, self.penalty_per_retry)
        return {
            "step_efficiency": float(values.mean()) if len(values) else 0.0,
            **attempt_counts(first),
        }

    def attempts(self) -> Codes:
        retries = np.nan_to_num(np.array(self.retries, np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        return retries.clip(0, 2**31 - 1).astype(np.int32)

    def mean(self, group: Group) -> Values:
        return step_efficiency(group, penalty=self.penalty_per_retry)

    def sound(self, group: Group) -> Row:
        return {"step_efficiency": with_interval(self.mean(group), group)}


def retry_number(metadata: Row) -> float:
    """`retry_number`, else the number at the end of `retry_id`, else 0."""
    if "retry_number" in metadata:
        return float(metadata["retry_number"] or 0)
    _, line, number = str(metadata.get("retry_id", "")).rpartition("_")
    try:
        return float(int(number)) if line else 0.0
    except ValueError:
        return 0.0
