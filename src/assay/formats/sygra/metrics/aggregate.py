"""Aggregator metrics: numbers over the results of one unit metric, with SyGra's payloads and formulas.

They are as SyGra computes them, pooled over all records where it pools; `sound.py` has what one would rather quote.
Ours count as they go (`start`, `add`, `payload`), so that a million records need no list.
"""

from abc import abstractmethod
from array import array
from collections.abc import Sequence
from math import comb
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from assay.formats.sygra.metrics.registries import AggregatorMetricRegistry, aggregator_metric
from assay.formats.sygra.metrics.results import BaseMetricMetadata, ConfiguredMetric, UnitMetricResult, settings
from assay.metrics.label_scores import LabelCounts
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


class BaseAggregatorMetric(ConfiguredMetric):
    """What a user's own aggregator metric inherits from."""

    @abstractmethod
    def calculate(self, results: list[UnitMetricResult]) -> dict[str, Any]: ...

    def _count_correct(self, results: Sequence[UnitMetricResult]) -> int:
        return sum(1 for result in results if result.correct)

    def _safe_divide(self, numerator: float, denominator: float) -> float:
        return numerator / denominator if denominator else 0.0


class Counting(BaseAggregatorMetric):
    """A metric that needs to see each result only once, and keeps none."""

    parameters: type[msgspec.Struct]
    about: BaseMetricMetadata

    def validate_config(self) -> None:
        found = settings(self.parameters, self.config, type(self).__name__)
        for name, value in msgspec.structs.asdict(found).items():
            setattr(self, name, value)

    def get_metadata(self) -> BaseMetricMetadata:
        return self.about

    def calculate(self, results: Sequence[UnitMetricResult]) -> dict[str, Any]:
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

    def seed_payload(self) -> dict[str, Any]:
        """The payload of the older dialect, where it differs."""
        return self.payload()


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

    def seed_payload(self) -> dict[str, Any]:
        if self.total and not 0 < self.k <= self.total:
            raise ValueError(f"k = {self.k}, but there are {self.total} results")
        return {"pass@k": self._chance(self.k)}

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

    def seed_payload(self) -> dict[str, Any]:
        rate = self._safe_divide(self.correct, self.total)
        return {"success_rate": rate, "pass^k": rate**self.k if self.total else 0.0}


# ---- labels


class Labelled(Counting):
    """Labels are what stands under a key of either side, as text; a side without the key is left out."""

    predicted_key: str | None = None
    golden_key: str | None = None

    def start(self) -> None:
        self.counts = LabelCounts()

    def add(self, result: UnitMetricResult) -> None:
        self.counts.add(
            label(result.predicted, self.predicted_key), label(result.golden, self.golden_key), bool(result.correct)
        )


def label(side: dict[str, Any], key: str | None) -> str | None:
    return str(side[key]) if key is not None and key in side else None


class _PredictedKey(msgspec.Struct):
    predicted_key: Key


@aggregator_metric("precision")
class PrecisionMetric(Labelled):
    parameters = _PredictedKey
    about = BaseMetricMetadata(
        name="precision", display_name="Precision", description="How often each predicted label is right"
    )

    def payload(self) -> dict[str, Any]:
        average, each = self.counts.precision()
        return {"average_precision": average, "precision_per_class": each}


class _GoldenKey(msgspec.Struct):
    golden_key: Key


@aggregator_metric("recall")
class RecallMetric(Labelled):
    parameters = _GoldenKey
    about = BaseMetricMetadata(name="recall", display_name="Recall", description="How often each true label is found")

    def payload(self) -> dict[str, Any]:
        average, each = self.counts.recall()
        return {"average_recall": average, "recall_per_class": each}


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
        average, each = self.counts.f1()
        return {"average_f1_score": average, "f1_score_per_class": each}


# ---- steps


class _Penalty(msgspec.Struct):
    penalty_per_retry: Annotated[float, Meta(ge=0, le=1)] = 0.2


@aggregator_metric("step_efficiency")
class StepEfficiencyMetric(Counting):
    """How many retries each step of a mission took until it was right; 17 bytes a record."""

    parameters = _Penalty
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
        import numpy as np

        from assay.stats.attempts import attempt_counts, efficiency, first_passes

        passed = np.frombuffer(self.verdicts, dtype=np.bool_)
        first = first_passes(np.frombuffer(self.steps, dtype=np.uint64), np.frombuffer(self.retries), passed)
        values = efficiency(first, self.penalty_per_retry)
        return {"step_efficiency": float(values.mean()) if len(values) else 0.0, **attempt_counts(first)}


def retry_number(metadata: dict[str, Any]) -> float:
    """`retry_number`, else the number at the end of `retry_id`, else 0."""
    if "retry_number" in metadata:
        return float(metadata["retry_number"] or 0)
    _, line, number = str(metadata.get("retry_id", "")).rpartition("_")
    try:
        return float(int(number)) if line else 0.0
    except ValueError:
        return 0.0
