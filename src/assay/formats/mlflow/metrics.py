"""A run's metrics as headlines: means are computed again from the rows; of what MLflow aggregates otherwise, the reader
does it from the scores that it has read."""

from collections.abc import Mapping

import numpy as np

from assay.engine.experiment.imports.foreign import Headline
from assay.interfaces import FloatArray
from assay.store.table.columns import Growing

_NO_SCORES = "MLflow stores this number only, not the scores behind it"
_OTHER = "this aggregation is not known here"


class Scores:
    """The numbers of each metric, as MLflow aggregates them: failures are left out. `labels` has our names of them."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self._values: dict[str, Growing] = {}

    def add(self, name: str, value: float, label: str = "") -> None:
        if name not in self._values:
            self._values[name] = Growing("float")
            if label:
                self.labels[name] = label
        self._values[name].append(value)

    def headlines(self, metrics: Mapping[str, float]) -> list[Headline]:
        return [self._headline(key, value) for key, value in sorted(metrics.items())]

    def _headline(self, key: str, value: float) -> Headline:
        name, _, aggregation = key.rpartition("/")
        if name not in self._values:
            return Headline(label=key, metric="value", value=value, reason=_NO_SCORES)
        label = self.labels.get(name)
        if aggregation == "mean" and label is not None:
            return Headline(label=label, metric="mean", value=value, reduce="none")
        ours = _aggregated(self._values[name].numbers, aggregation)
        return Headline(
            label=label or name,
            metric=aggregation,
            value=value,
            ours=ours,
            reason=_OTHER if ours is None else "",
        )


def _aggregated(numbers: FloatArray, aggregation: str) -> float | None:
    if aggregation == "p90":
        return float(np.percentile(numbers, 90))
    known = {"mean": np.mean, "variance": np.var, "median": np.median, "min": np.min, "max": np.max}
    return float(known[aggregation](numbers)) if aggregation in known else None
