"""Metric rows as results of a record: the score with its uncertainty and its counts, and how it was measured."""

import math
from collections.abc import Iterable, Sequence

import msgspec

from assay import registry
from assay.analysis.compare.measured import MeasuredSide, measured
from assay.analysis.compare.paired import read_sides
from assay.engine.aggregate.measure import bind_metric
from assay.engine.experiment.sources import Source
from assay.sdk import JsonMapping, JsonObject, UserError
from assay.store.table.facets import text_of

Facets = tuple[str, ...]
BENCHMARK = "benchmark"
_MODEL = ("model_name", "model_id", "metadata.model_id")
_MEANS = ("mean", "pass_rate")  # a mean of a label's scores is called like the label
_CANONICAL = {"acc": "accuracy", "pass_rate": "accuracy"}
_SHARES = ("acc", "acc_norm", "exact_match")
_COUNTS = ("planned_sample", "total_sample", "scored", "unparsed", "refused", "errored", "skipped")


class MetricResult(msgspec.Struct, kw_only=True):
    """A metric row, and whose evaluations it was made of: nobody's where none belongs to it. `binary`: their scores are
    0 or 1."""

    row: JsonObject
    models: set[str] = set()
    benchmarks: set[str] = set()
    tasks: set[str] = set()
    binary: bool = True
    id: str = ""
    name: str = ""

    @property
    def facets(self) -> Facets:
        return tuple(self.row["facets"])

    def facet(self, *names: str) -> str:
        """The value of the first of these facets that the row has."""
        return next((text_of(self.row[name]) for name in names if name in self.facets), "")

    def place(self) -> tuple[str, str] | None:
        """Model and benchmark of the record that this is part of; None for a value of several models."""
        model = next(iter(self.models)) if len(self.models) == 1 else ""
        benchmark = next(iter(self.benchmarks)) if len(self.benchmarks) == 1 else ""
        if not self.models:  # a number that is made of others, such as a group's
            model, benchmark = self.facet(*_MODEL), self.facet(BENCHMARK)
        return (model, benchmark) if model else None

    def set_name(self, dataset: str) -> None:
        """Give it the name of what was evaluated, and an id."""
        apart = [name for name in self.facets if name not in (*_MODEL, BENCHMARK)]
        self.name = ".".join([dataset, *(text_of(self.row[name]) for name in apart)])
        self.id = "/".join((self.name, self.row["metric_name"], self.row["label"]))


def result_of(
    result: MetricResult,
    measure: MeasuredSide | None,
    source_data: JsonObject,
    generation: JsonObject,
    time: str,
) -> JsonObject:
    """An entry of `evaluation_results`."""
    row = result.row
    return {
        "evaluation_result_id": result.id,
        "evaluation_name": result.name,
        "source_data": source_data,
        "evaluation_timestamp": time,
        "metric_config": _metric(result, measure),
        "score_details": {
            "score": row["value"],
            "details": texts({name: row.get(f"{name}_count") for name in _COUNTS}, suffix="_count")
            | texts({name: row[name] for name in result.facets} | {"policy": row.get("policy")}),
            "uncertainty": _uncertainty(row, measure),
        },
        "generation_config": generation,
    }


def texts(values: JsonMapping, suffix: str = "") -> dict[str, str]:
    """Details of the schema are texts."""
    return {
        f"{name}{suffix}": text_of(value) for name, value in values.items() if value is not None
    }


def _metric(result: MetricResult, measure: MeasuredSide | None) -> JsonObject:
    row = result.row
    label, _, filter = str(row["label"]).partition(",")
    kind = str(row["metric_type"])
    own = label if kind in _MEANS or "." in kind else kind
    lower = measure.lower_is_better if measure else row.get("lower_is_better") is True
    config: JsonObject = {
        "metric_id": _CANONICAL.get(own, own),
        "metric_name": str(row["metric_name"]),
        "metric_kind": kind,
        "lower_is_better": lower,
        "additional_details": texts({"label": row["label"]}),
    }
    parameters = {"k": row.get("k"), "filter": filter or None}
    config["metric_parameters"] = {
        name: value for name, value in parameters.items() if value is not None
    }
    is_mean = own in _SHARES or (
        measure is not None and measure.values is not None and measure.bound.verdicts
    )
    if result.models and result.binary and is_mean:
        config |= {
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
            "metric_unit": "proportion",
        }
    return config


def _uncertainty(row: JsonObject, measure: MeasuredSide | None) -> JsonObject:
    uncertainty: JsonObject = {
        "num_samples": row.get("used_sample_count", row.get("sample_count", 0))
    }
    if row.get("ci_low") is not None and row.get("ci_high") is not None:
        uncertainty["confidence_interval"] = {
            "lower": row["ci_low"],
            "upper": row["ci_high"],
            "confidence_level": row["ci_level"],
            "method": row["ci_method"],
        }
    error = row.get("stderr")
    if isinstance(error, (int, float)) and math.isfinite(error):
        uncertainty["standard_error"] = {
            "value": error,
            "method": str(row.get("stderr_method") or row["metric_type"]),
        }
    elif measure is not None and measure.values is not None and len(measure.values) > 1:
        value = float(measure.values.std(ddof=1) / math.sqrt(len(measure.values)))
        uncertainty["standard_error"] = {"value": value, "method": "analytic, over items"}
    return uncertainty


class _PlannedMetric(msgspec.Struct):
    """A metric as the aggregation's manifest has it."""

    name: str
    type: str
    params: JsonObject = {}
    policy: dict[str, str] = {}
    level: float = 0.95


def measures_of(source: Source, results: Sequence[MetricResult]) -> Iterable[MeasuredSide | None]:
    """The items' values behind each result, for metrics that ship with Assay and are means over items."""
    manifest = source.manifest("aggregation")
    try:
        planned = msgspec.convert(
            manifest.plan.get("metrics", []) if manifest else [], list[_PlannedMetric]
        )
    except msgspec.ValidationError:
        planned = []
    metrics = {metric.name: metric for metric in planned}
    names = set(registry.metric.names())
    for result in results:
        metric = metrics.get(result.row["metric_name"])
        yield _measure(source, result, metric) if metric and metric.type in names else None


def _measure(source: Source, result: MetricResult, metric: _PlannedMetric) -> MeasuredSide | None:
    label = str(result.row["label"])
    try:
        bound = bind_metric(
            name=metric.name,
            type=metric.type,
            params=metric.params,
            policy=metric.policy,
            level=metric.level,
        )
        side = read_sides(source, {"": {name: result.row[name] for name in result.facets}})[0]
        measure = measured(bound, side, label, side.labels().get(label, ""))
    except UserError:  # a row of several labels, or of facets that the metric made itself
        return None
    return measure if measure.row["value"] == result.row["value"] else None
