"""Aggregator metrics: numbers over the results of one unit metric, with SyGra's payloads and formulas.

They are as SyGra computes them, pooled over all records where it pools; `sound` has what one would rather quote. Ours
count as they go (`start`, `add`, `payload`), so that a million records need no list.
"""

from array import array
from collections.abc import Mapping
from math import comb
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from assay.formats.sygra.metrics.counting import BaseAggregatorMetric, Counting, LabelPairs, for_each_k, quoted
from assay.formats.sygra.metrics.results import (
    AggregatorMetricRegistry,
    BaseMetricMetadata,
    UnitMetricResult,
    aggregator_metric,
)
from assay.interfaces import Group, Values
from assay.metrics.label_scores import ACTUAL, PREDICTED, LabelCounts
from assay.metrics.pass_at_k import pass_at_k
from assay.metrics.pass_hat_k import pass_hat_k
from assay.metrics.pass_rate import pass_rate
from assay.metrics.step_efficiency import step_efficiency
from assay.stats.attempts import attempt_counts, efficiency, first_passes
from assay.store.keys import id_hash

__all__ = [
    "AccuracyMetric",
    "AggregatorMetricRegistry",
    "BaseAggregatorMetric",
    "BaseMetricMetadata",
    "F1ScoreMetric",
    "PassAtKMetric",
    "PassPowerKMetric",
    "PrecisionMetric",
    "RecallMetric",
    "StepEfficiencyMetric",
    "UnitMetricResult",
    "aggregator_metric",
]

Key = Annotated[str, Meta(min_length=1)]
METADATA = "detailed_results.metadata"


# ---- shares of all records


class _None(msgspec.Struct):
    pass


class _Pooled(Counting):
    """All records are one pool: how many there are, and how many are right."""

    def start(self) -> None:
        self.total = self.correct = 0

    def add(self, result: UnitMetricResult) -> None:
        self.total += 1
        self.correct += bool(result.correct)


@aggregator_metric("accuracy")
class AccuracyMetric(_Pooled):
    parameters = _None
    about = BaseMetricMetadata(
        name="accuracy", display_name="Accuracy", description="The share of the records that are right"
    )

    def payload(self) -> dict[str, Any]:
        return {"accuracy": self._safe_divide(self.correct, self.total)}

    def mean(self, group: Group) -> Values:
        return pass_rate(group)


class _K(msgspec.Struct):
    k: Annotated[int, Meta(ge=0)]


@aggregator_metric("pass_at_k")
@aggregator_metric("pass@k")
class PassAtKMetric(_Pooled):
    """The chance that k records drawn from all of them hold a right one."""

    parameters = _K
    about = BaseMetricMetadata(
        name="pass@k", display_name="Pass@k", description="The chance that at least one of k attempts is right"
    )
    k: int

    def payload(self) -> dict[str, Any]:
        return {f"pass@{k}": self._chance(k) for k in range(1, self.k + 1)}

    def value(self, payload: Mapping[str, Any]) -> float | None:
        return payload.get(f"pass@{self.k}")

    def older(self, payload: dict[str, Any], total: int) -> dict[str, Any]:
        if total and not 0 < self.k <= total:
            raise ValueError(f"k = {self.k}, but there are {total} results")
        return {"pass@k": payload.get(f"pass@{self.k}", 0.0)}

    def sound(self, group: Group) -> dict[str, Any]:
        return {"pass@k": for_each_k("pass@", self.k, pass_at_k, group)}

    def _chance(self, k: int) -> float:
        if k > self.total:
            return 0.0
        return 1.0 - comb(self.total - self.correct, k) / comb(self.total, k)


@aggregator_metric("pass^k")
class PassPowerKMetric(_Pooled):
    """The chance that k independent attempts are all right, if each is right as often as the records are."""

    parameters = _K
    about = BaseMetricMetadata(
        name="pass^k", display_name="Pass^k", description="The chance that all of k attempts are right"
    )
    k: int

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


# ---- labels


class Labelled(Counting):
    """Labels are what stands under a key of either side, as text; a side without the key is left out."""

    reads = (PREDICTED, ACTUAL)
    predicted_key: str | None = None
    golden_key: str | None = None

    reason = "an average over labels is not a mean over items"

    @property
    def keys(self) -> tuple[str, str]:
        """Where the classes of the sound numbers are: a metric of one side takes its key for both."""
        return self.predicted_key or self.golden_key or "", self.golden_key or self.predicted_key or ""

    def start(self) -> None:
        self.counts = LabelCounts()
        self._pairs = LabelPairs()

    def add(self, result: UnitMetricResult) -> None:
        predicted, golden = (_label(side, key) for side, key in zip(_sides(result), self.keys, strict=True))
        correct = bool(result.correct)
        self.counts.add(predicted if self.predicted_key else None, golden if self.golden_key else None, correct)
        self._pairs.add(predicted, golden, correct)

    def sound(self, group: Group) -> dict[str, Any]:
        one_attempt = len(group.item) == int(group.item[-1]) + 1
        return {"classification": self._pairs.report(self.keys[1], one_attempt)}


def _sides(result: UnitMetricResult) -> tuple[dict[str, Any], dict[str, Any]]:
    return result.predicted, result.golden


def _label(side: dict[str, Any], key: str) -> str | None:
    return str(side[key]) if key in side else None


class _PredictedKey(msgspec.Struct):
    predicted_key: Key


@aggregator_metric("precision")
class PrecisionMetric(Labelled):
    parameters = _PredictedKey
    about = BaseMetricMetadata(
        name="precision", display_name="Precision", description="How often each predicted label is right"
    )

    def payload(self) -> dict[str, Any]:
        average, by_label = self.counts.precision()
        return {"average_precision": average, "precision_per_class": by_label}


class _GoldenKey(msgspec.Struct):
    golden_key: Key


@aggregator_metric("recall")
class RecallMetric(Labelled):
    parameters = _GoldenKey
    about = BaseMetricMetadata(name="recall", display_name="Recall", description="How often each true label is found")

    def payload(self) -> dict[str, Any]:
        average, by_label = self.counts.recall()
        return {"average_recall": average, "recall_per_class": by_label}


class _BothKeys(msgspec.Struct):
    predicted_key: Key
    golden_key: Key


@aggregator_metric("f1_score")
class F1ScoreMetric(Labelled):
    """Its average is the harmonic mean of average precision and average recall, not the mean of the classes' F1."""

    parameters = _BothKeys
    about = BaseMetricMetadata(
        name="f1_score", display_name="F1 Score", description="The harmonic mean of precision and recall"
    )

    def payload(self) -> dict[str, Any]:
        average, by_label = self.counts.f1()
        return {"average_f1_score": average, "f1_score_per_class": by_label}


# ---- steps


class _Penalty(msgspec.Struct):
    penalty_per_retry: Annotated[float, Meta(ge=0, le=1)] = 0.2


@aggregator_metric("step_efficiency")
class StepEfficiencyMetric(Counting):
    """How many retries each step of a mission took until it was right; 17 bytes a record."""

    parameters = _Penalty
    reads = (METADATA,)
    about = BaseMetricMetadata(
        name="step_efficiency",
        display_name="Step Efficiency",
        description="How soon each step is right: a retry costs a penalty, a step that never is right counts 0",
        metric_type="custom",
    )
    penalty_per_retry: float

    def start(self) -> None:
        self.steps, self.retries, self.verdicts = array("Q"), array("d"), array("B")

    def add(self, result: UnitMetricResult) -> None:
        mission, step = (result.metadata.get(name, "unknown") for name in ("mission_id", "step_id"))
        self.steps.append(id_hash(f"{mission}_{step}"))
        self.retries.append(retry_number(result.metadata))
        self.verdicts.append(bool(result.correct))

    def payload(self) -> dict[str, Any]:
        passed = np.frombuffer(self.verdicts, dtype=np.bool_)
        first = first_passes(np.frombuffer(self.steps, dtype=np.uint64), np.frombuffer(self.retries), passed)
        values = efficiency(first, self.penalty_per_retry)
        return {"step_efficiency": float(values.mean()) if len(values) else 0.0, **attempt_counts(first)}

    def attempts(self) -> npt.NDArray[np.int32]:
        retries = np.nan_to_num(np.frombuffer(self.retries), nan=0.0, posinf=0.0, neginf=0.0)
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
