"""Aggregator metrics: numbers over the results of one unit metric, with SyGra's payloads and formulas.

They are as SyGra computes them, pooled over all records where it pools; `sound` has what one would rather quote. Ours
count as they go (`start`, `add`, `payload`), so that a million records need no list.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import comb
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from assay.formats.sygra.metrics import (
    AggregatorMetricRegistry,
    UnitMetricResult,
    aggregator_metric,
    built_in,
)
from assay.formats.sygra.metrics.counting import Counting, LabelPairs, for_each_k, quoted
from assay.interfaces import Codes, Group, Values
from assay.metrics.label_scores import ACTUAL, PREDICTED, LabelCounts
from assay.metrics.pass_at_k import pass_at_k
from assay.metrics.pass_hat_k import pass_hat_k
from assay.metrics.pass_rate import pass_rate
from assay.metrics.step_efficiency import attempt_counts, efficiency, first_passes, step_efficiency
from assay.store.keys import id_hash

Key = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
METADATA = "detailed_results.metadata"
_metric = partial(built_in, AggregatorMetricRegistry)


class _Pooled(Counting):
    """All records are one pool: how many there are, and how many are right."""

    def start(self) -> None:
        self.total = self.correct = 0

    def add(self, result: UnitMetricResult) -> None:
        self.total += 1
        self.correct += bool(result.correct)


@_metric("accuracy", "Accuracy", "The share of the records that are right")
class AccuracyMetric(_Pooled):
    def payload(self) -> dict[str, Any]:
        return {"accuracy": self._safe_divide(self.correct, self.total)}

    def mean(self, group: Group) -> Values:
        return pass_rate(group)


@aggregator_metric("pass_at_k")
@_metric("pass@k", "Pass@k", "The chance that at least one of k attempts is right")
class PassAtKMetric(_Pooled):
    """The chance that k records drawn from all of them hold a right one.

    Parameters:
    k: how many rows are drawn, or must all pass
    """

    k: Count

    def payload(self) -> dict[str, Any]:
        chances = {f"pass@{k}": 0.0 for k in range(1, self.k + 1)}
        for k in range(1, min(self.k, self.total) + 1):
            chances[f"pass@{k}"] = 1.0 - comb(self.total - self.correct, k) / comb(self.total, k)
        return chances

    def value(self, payload: Mapping[str, Any]) -> float | None:
        return payload.get(f"pass@{self.k}")

    def older(self, payload: dict[str, Any], total: int) -> dict[str, Any]:
        if total and not 0 < self.k <= total:
            raise ValueError(f"k = {self.k}, but there are {total} results")
        return {"pass@k": payload.get(f"pass@{self.k}", 0.0)}

    def sound(self, group: Group) -> dict[str, Any]:
        return {"pass@k": for_each_k("pass@", self.k, pass_at_k, group)}


@_metric("pass^k", "Pass^k", "The chance that all of k attempts are right")
class PassPowerKMetric(_Pooled):
    """The chance that k independent attempts are all right, if each is right as often as the records are.

    Parameters:
    k: how many rows are drawn, or must all pass
    """

    k: Count

    def payload(self) -> dict[str, Any]:
        rate = self._safe_divide(self.correct, self.total)
        return {"success_rate": rate, **{f"pass^{k}": rate**k for k in range(1, self.k + 1)}}

    def value(self, payload: Mapping[str, Any]) -> float | None:
        return payload.get(f"pass^{self.k}")

    def older(self, payload: dict[str, Any], total: int) -> dict[str, Any]:
        rate = payload["success_rate"]
        return {"success_rate": rate, "pass^k": rate**self.k if total else 0.0}

    def sound(self, group: Group) -> dict[str, Any]:
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
        """Where the classes of the sound numbers are: a metric of one side takes its key for both."""
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

    def payload(self) -> dict[str, Any]:
        name = self.about.name
        average, by_label = type(self).numbers(self.counts)
        return {f"average_{name}": average, f"{name}_per_class": by_label}

    def sound(self, group: Group) -> dict[str, Any]:
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

    def payload(self) -> dict[str, Any]:
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

    def sound(self, group: Group) -> dict[str, Any]:
        return {"step_efficiency": quoted(self.mean(group), group)}


def retry_number(metadata: dict[str, Any]) -> float:
    """`retry_number`, else the number at the end of `retry_id`, else 0."""
    if "retry_number" in metadata:
        return float(metadata["retry_number"] or 0)
    _, line, number = str(metadata.get("retry_id", "")).rpartition("_")
    try:
        return float(int(number)) if line else 0.0
    except ValueError:
        return 0.0
