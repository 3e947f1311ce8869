"""The report over all records: each configured aggregator over one column of unit-metric results.

A report is a view of metric rows, for a run those of its `metrics.jsonl`, and of a census of the records. An aggregator
that fails leaves the others' numbers alone. A record that failed is counted and enters no metric.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from assay.engine.aggregate.bind import OWN_KEYS, BoundMetric, bind_metric
from assay.formats.sygra.metrics.aggregate import AggregatorMetricRegistry, Labelled
from assay.formats.sygra.metrics.counting import BaseAggregatorMetric, Counting
from assay.formats.sygra.metrics.measures import OURS
from assay.formats.sygra.metrics.results import BadParameter, UnknownName, error_text
from assay.records import MetricRow

Dialect = Literal["name", "field"]
SUFFIX = "_result"


class Entry(msgspec.Struct):
    """One configured aggregator; `problem` says why it can have no result."""

    name: str
    field: str
    key: str
    metric: BaseAggregatorMetric | None
    copied: dict[str, str]
    problem: str | None = None

    @property
    def label(self) -> str:
        """Of the evaluation rows that it counts."""
        return f"{self.field} with {', '.join(self.copied)}" if self.copied else self.field

    def bound(self, name: str = "", base: str = "") -> BoundMetric:
        """As a metric of the engine; `base` is the folder that a user's module is found from."""
        made = self.metric
        assert made is not None
        if isinstance(made, Counting) and OURS.get(self.name) is type(made):
            type_ = f"sygra.{self.name}"
            params = {field: getattr(made, field) for field in made.parameters.__struct_fields__}
        else:
            type_ = "sygra.aggregator"
            params = {"metric": self.name, "params": made.config, "module": type(made).__module__, "base": base}
        return bind_metric(name=name or self.key, type=type_, params=params, include=[self.label])


def dialect(fields: Iterable[str], unit_metrics: Iterable[str] | None = None) -> Dialect:
    """`name` if every column is `<unit metric>_result`, as the older version wrote them; else `field`."""
    columns = None if unit_metrics is None else {f"{name}{SUFFIX}" for name in unit_metrics}
    is_older = all(field.endswith(SUFFIX) and (columns is None or field in columns) for field in fields)
    return "name" if is_older else "field"


def column_of(configured: Mapping[str, Any], default: str) -> str:
    """The column that an entry reads; of a list it is the first."""
    column: Any = configured.get("unit_metrics_results", default)
    if isinstance(column, list):
        column = cast("list[Any]", column)[0] if column else ""
    return str(column or "")


def entries(configured: Sequence[Mapping[str, Any]], default: str, style: Dialect) -> list[Entry]:
    """The configured aggregators with their report keys: the plain name, or `<column>-<name>`.

    Two of one name on different columns would hide one another under the plain name, so both get the long one.
    """
    made = [_entry(aggregator, column_of(aggregator, default)) for aggregator in configured]
    seen: set[str] = set()
    for entry in made:
        columns = {other.field for other in made if other.name == entry.name}
        entry.key = entry.name if style == "name" and len(columns) == 1 else f"{entry.field}-{entry.name}"
        if entry.key in seen:
            entry.problem = entry.problem or f"two aggregator metrics are called {entry.key!r}: keep one of them"
        seen.add(entry.key)
    return made


def _entry(configured: Mapping[str, Any], field: str) -> Entry:
    name, params = str(configured.get("name") or ""), configured.get("params", {})
    entry = Entry(name, field, "", None, {})
    try:
        if not isinstance(params, Mapping):
            shown = "null" if params is None else type(params).__name__
            raise BadParameter(f"`params` of the aggregator metric {name!r} is {shown}: leave it out or write {{}}")
        entry.copied = msgspec.convert(configured.get("metadata") or {}, dict[str, str])
        entry.metric = AggregatorMetricRegistry.get_metric(name, **params)
    except Exception as error:  # a user's constructor may raise anything: this entry says it, the others stand
        entry.problem = error_text(error)
    return entry


class Census:
    """What a report says about the records themselves, from one pass over them."""

    def __init__(self, made: Sequence[Entry]) -> None:
        self.columns = list(
            dict.fromkeys(entry.field for entry in made if entry.metric is not None and not entry.problem)
        )
        self.names: dict[str, None] = {}
        self.malformed: dict[str, str] = {}
        self.total = self.scored = self.failed = 0

    def add(self, record: Any) -> None:
        if not isinstance(record, dict):
            raise BadParameter(f"record {self.total} is not an object but {type(record).__name__}")
        row = cast("dict[str, Any]", record)
        if not self.names.keys() >= row.keys():
            self.names |= dict.fromkeys(row)
        has_result = not self.columns and not row.get("error")
        for column in self.columns:
            result: Any = row.get(column)
            if isinstance(result, dict):
                has_result = True
                self._check(column, cast("dict[str, Any]", result), row)
        if has_result:
            self.scored += 1
        elif row.get("error"):
            self.failed += 1
        self.total += 1

    def _check(self, column: str, result: dict[str, Any], row: dict[str, Any]) -> None:
        for side in ("golden", "predicted"):
            if not isinstance(result.get(side, {}), dict):
                text = f"{column} of record {row.get('id', self.total)!r}: {side} must be a dictionary"
                self.malformed.setdefault(column, text)

    def fatal(self, error: Exception) -> dict[str, Any]:
        """The report where a record cannot be read."""
        summary = {"total_records": self.total, "status": "fatal_error", "error": error_text(error)}
        return {"evaluation_summary": summary, "results": {}}


class Report:
    """The view of the metric rows, by the keys of their entries."""

    def __init__(self, made: Sequence[Entry], style: Dialect, census: Census, rows: Mapping[str, MetricRow]) -> None:
        self._entries = made
        self._style = style
        self._census = census
        self._rows = rows

    def shown(self) -> dict[str, Any]:
        census = self._census
        if not census.total:
            return {"evaluation_summary": {"total_records": 0, "status": "no_data"}, "results": {}}
        if census.columns and not census.scored and all(column in census.names for column in census.columns):
            problems = {entry.key: entry.problem for entry in self._entries if entry.problem is not None}
            summary = self._summary("no_data") | ({"errors": problems} if problems else {})
            return {"evaluation_summary": summary, "results": {}}
        results: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for entry in self._entries:
            try:
                results[entry.key] = self._payload(entry)
            except Exception as error:  # a user's metric may raise anything: the others stand
                errors[entry.key] = error_text(error)
        status = "success" if not errors else "partial" if results else "fatal_error"
        summary = self._summary(status)
        if errors:
            summary |= {"errors": errors} if results else {"error": "; ".join(dict.fromkeys(errors.values()))}
        report: dict[str, Any] = {"evaluation_summary": summary, "results": results}
        if sound := self._sound(results):
            report["sound"] = sound
        return report

    def _summary(self, status: str) -> dict[str, Any]:
        total, scored, failed = self._census.total, self._census.scored, self._census.failed
        clock = {"timestamp": time.strftime("%Y-%m-%d %H:%M:%S")}
        succeeded = self._style == "field" and status in ("success", "partial")
        counts = {"scored": scored, "failed": failed, "unscored": total - scored - failed}
        return {"total_records": total, **(clock if succeeded else {}), "status": status, **counts}

    def _payload(self, entry: Entry) -> Any:
        if entry.metric is not None and entry.field not in self._census.names:
            columns = list(self._census.names)
            raise UnknownName(
                f"Missing unit metric results field {entry.field!r} in data. Available columns: {columns}"
            )
        problem = entry.problem or self._census.malformed.get(entry.field)
        if problem is not None or entry.metric is None:
            raise BadParameter(problem or "")
        row = self._rows.get(entry.key, {})
        if "error" in row:
            raise BadParameter(row["error"])
        total = row.get("used_sample_count", 0)
        if not total:
            payload = entry.metric.calculate([])
        elif "payload" in row:
            payload = row["payload"]
        else:
            others = {*OWN_KEYS, "label", "sound", row["metric_type"]}
            payload = {key: value for key, value in row.items() if key not in others}
        made = entry.metric
        if self._style == "name" and isinstance(made, Counting) and type(made).calculate is Counting.calculate:
            return made.older(payload, total)
        return payload

    def _sound(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """By column; a column that is read with and without copied metadata is one."""
        by_label: dict[str, list[Entry]] = {}
        for entry in self._entries:
            if entry.key in results and "sound" in self._rows.get(entry.key, {}):
                by_label.setdefault(entry.label, []).append(entry)
        by_field: dict[str, Any] = {}
        for readers in by_label.values():
            field = readers[0].field
            by_field[field] = self._sound_of(readers) | by_field.get(field, {})
        return by_field

    def _sound_of(self, readers: list[Entry]) -> dict[str, Any]:
        parts = [(entry, self._rows[entry.key]["sound"]) for entry in readers]
        accuracy = parts[0][1]["accuracy"]
        total, passed = self._census.total, accuracy["passed_count"]
        bounds = {
            "value_if_missing_wrong": passed / total,
            "value_if_missing_right": (passed + total - accuracy["attempts"]) / total,
        }
        labels = {entry.metric.keys: part for entry, part in parts if isinstance(entry.metric, Labelled)}
        sound = {"accuracy": accuracy | bounds}
        for keys, part in labels.items():
            name = "classification" if len(labels) == 1 else f"classification({', '.join(keys)})"
            sound[name] = part["classification"]
        for entry, part in parts:
            if not isinstance(entry.metric, Labelled):
                sound |= {name: numbers for name, numbers in part.items() if name != "accuracy"}
        return sound
