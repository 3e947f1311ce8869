"""A run's metrics as headlines: means are computed again from the rows; of what MLflow aggregates otherwise, the reader
does it from the scores that it has read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay.foreign import (
    ForeignCase,
    Headline,
    answer_text,
    evaluation_of,
    failure,
    json_value,
    key_of,
    without_secrets,
)
from assay.readers._results import FileResults, first_filled
from assay.sdk import Evaluation, FloatArray, JsonObject, Response, as_object, number_of as finite
from assay.store.table.columns import Growing

_MODEL_NAMES = ("model", "model_name", "mlflow.genaiEvaluate.agent.function")
_RATINGS = {"yes": 1.0, "no": 0.0}  # as MLflow counts them


def number_of(value: Any) -> float | None:
    """Return a finite number, or yes and no as MLflow counts them; None for anything else."""
    return _RATINGS.get(value.lower()) if isinstance(value, str) else finite(value)


def text_of(value: Any) -> str:
    """Return what a model said: text, the text of a chat's completion, or JSON."""
    try:
        content = as_object(value)["choices"][0]["message"]["content"]
    except (TypeError, LookupError):
        content = None
    return content if isinstance(content, str) else answer_text(value)


def decoded_json(text: Any) -> Any:
    """Return JSON that is stored as text; text that is not JSON is itself."""
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
    """Return a score, a rating or a text as a row; nothing at all is an error."""
    key = key_of("mlflow", response.key, label, scorer, part)
    row = evaluation_of(response, label, key=key, scorer=scorer or label)
    number = number_of(value)
    is_missing = value is None or (isinstance(value, float) and number is None)
    if error is not None or is_missing:
        why = error or "MLflow has no value of this metric for this row"
        return msgspec.structs.replace(row, **failure(why))
    if number is not None and isinstance(value, bool | str):
        row.passed = bool(number)
    row.score = number
    row.value = value if isinstance(value, (str, list, dict)) else None
    return row


_NO_SCORES = "MLflow stores this number only, not the scores behind it"
_OTHER = "this aggregation is not known here"


class MetricScores:
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
        ours = _aggregate(self._values[name].numbers, aggregation)
        made = Headline(label=label or name, metric=aggregation, value=value, ours=ours)
        made.reason = _OTHER if ours is None else ""
        return made


def _aggregate(numbers: FloatArray, aggregation: str) -> float | None:
    if aggregation == "p90":
        return float(np.percentile(numbers, 90))
    known = {"mean": np.mean, "variance": np.var, "median": np.median, "min": np.min, "max": np.max}
    return float(known[aggregation](numbers)) if aggregation in known else None


class MlflowRun(msgspec.Struct, kw_only=True):
    """`rows` is the size of the dataset, where there is one."""

    id: str = ""
    name: str = ""
    experiment: str = ""
    status: str = ""
    params: dict[str, str] = {}
    tags: dict[str, str] = {}
    metrics: dict[str, float] = {}
    rows: int | None = None

    @property
    def model(self) -> str:
        """Return the model by the run's parameters or tags; else the run is what is compared."""
        return first_filled({**self.tags, **self.params}, _MODEL_NAMES) or self.name

    def facts(self) -> JsonObject:
        return {
            "run_id": self.id,
            "run": self.name,
            "experiment": self.experiment,
            "params": self.params,
        }


class RunResults(FileResults):
    """What both kinds of results have in common."""

    format = "mlflow"
    said = {
        "metrics": "the metrics of the run were not found, so no number of MLflow's could be compared"
    }

    def __init__(self, run: MlflowRun, *files: Path) -> None:
        self.run = run
        self.planned = run.rows
        super().__init__("-".join(filter(None, [run.experiment, run.name])) or "mlflow", *files)

    def begin(self) -> None:
        super().begin()
        self.scores = MetricScores()
        self.odd["metrics"] = not self.run.metrics

    @property
    def source(self) -> JsonObject:
        return {**super().source, "metrics": [self.run.metrics]}

    @property
    def rejected(self) -> int:
        return self.odd["unread"]

    @property
    def facts(self) -> JsonObject:
        return {"agents": [self.run.model], **without_secrets(self.run.facts())}

    def headlines(self) -> list[Headline]:
        return self.scores.headlines(self.run.metrics)

    def notes(self) -> list[str]:
        status = self.run.status
        ended = status in ("", "FINISHED")
        named = f"the run {self.run.name!r} is not finished: its status is {status}"
        return super().notes() if ended else [*super().notes(), named]

    def cases(self) -> Iterator[ForeignCase]:
        self.begin()
        self.planned, count = self.run.rows, 0
        for case in self._cases():
            count += 1
            yield case
        # evaluated more than once in one run
        if self.planned is not None and count > self.planned:
            self.planned = None

    def _cases(self) -> Iterator[ForeignCase]:
        raise NotImplementedError
