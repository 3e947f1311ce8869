"""A run's metrics as headlines: means are computed again from the rows; of what MLflow aggregates otherwise, the reader
does it from the scores that it has read."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from assay.engine.experiment.imports.foreign import Headline, evaluation_of, key_of
from assay.engine.experiment.imports.values import answer_text, failure, fields_of, json_value
from assay.engine.experiment.imports.values import number_of as finite
from assay.interfaces import FloatArray
from assay.records import Evaluation, Response
from assay.store.table.columns import Growing

_RATINGS = {"yes": 1.0, "no": 0.0}  # as MLflow counts them


def number_of(value: Any) -> float | None:
    """A finite number, or yes and no as MLflow counts them; None for anything else."""
    return _RATINGS.get(value.lower()) if isinstance(value, str) else finite(value)


def text_of(value: Any) -> str:
    """What a model said: text, the text of a chat's completion, or JSON."""
    try:
        content = fields_of(value)["choices"][0]["message"]["content"]
    except (TypeError, LookupError):
        content = None
    return content if isinstance(content, str) else answer_text(value)


def decoded(text: Any) -> Any:
    """JSON that is stored as text; text that is not JSON is itself."""
    try:
        return json_value(text.encode("utf-8", "replace")) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def evaluation(
    response: Response,
    label: str,
    value: Any,
    *,
    scorer: str = "",
    error: str | None = None,
    part: Any = None,
) -> Evaluation:
    """A score, a rating or a text as a row; nothing at all is an error."""
    key = key_of("mlflow", response.key, label, scorer, part)
    row = evaluation_of(response, label, key=key, scorer=scorer or label)
    number = number_of(value)
    if error is not None or value is None or (isinstance(value, float) and number is None):
        why = error or "MLflow has no value of this metric for this row"
        return msgspec.structs.replace(row, **failure(why))
    if isinstance(value, bool) or (isinstance(value, str) and number is not None):
        row.passed = bool(number)
    row.score = number
    row.value = value if isinstance(value, (str, list, dict)) else None
    return row


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
