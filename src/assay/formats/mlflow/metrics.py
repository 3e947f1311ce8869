"""A run's metrics as headlines: means are computed again from the rows; of what MLflow aggregates otherwise, the reader
does it from the scores that it has read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from assay.engine.experiment.imports.foreign import (
    ForeignCase,
    Headline,
    Row,
    answer_text,
    evaluation_of,
    failure,
    fields_of,
    json_value,
    key_of,
    without_secrets,
)
from assay.engine.experiment.imports.foreign import number_of as finite
from assay.interfaces import FloatArray
from assay.readers._results import FileResults
from assay.records import Evaluation, Response
from assay.store.table.columns import Growing

_MODEL_NAMES = ("model", "model_name", "mlflow.genaiEvaluate.agent.function")
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


class Run(msgspec.Struct, kw_only=True):
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
        """The model by the run's parameters or tags; else the run is what is compared."""
        known = {**self.tags, **self.params}
        return next((known[name] for name in _MODEL_NAMES if known.get(name)), self.name)

    def facts(self) -> Row:
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

    def __init__(self, run: Run, *files: Path) -> None:
        self.run = run
        self.planned = run.rows
        super().__init__("-".join(filter(None, [run.experiment, run.name])) or "mlflow", *files)

    def begin(self) -> None:
        super().begin()
        self.scores = Scores()
        self.odd["metrics"] = not self.run.metrics

    @property
    def source(self) -> Row:
        return {**super().source, "metrics": [self.run.metrics]}

    @property
    def rejected(self) -> int:
        return self.odd["unread"]

    @property
    def facts(self) -> Row:
        return {"agents": [self.run.model], **without_secrets(self.run.facts())}

    def headlines(self) -> list[Headline]:
        return self.scores.headlines(self.run.metrics)

    def notes(self) -> list[str]:
        status = self.run.status
        ended = status in ("", "FINISHED")
        named = f"the run {self.run.name!r} is not finished: its status is {status}"
        return super().notes() if ended else [*super().notes(), named]

    def counted(self, cases: Iterator[ForeignCase]) -> Iterator[ForeignCase]:
        self.planned, count = self.run.rows, 0
        for case in cases:
            count += 1
            yield case
        # evaluated more than once in one run
        if self.planned is not None and count > self.planned:
            self.planned = None
