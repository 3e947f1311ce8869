"""SyGra's aggregators, and a user's own, as metrics of the engine: `sygra.accuracy`, `sygra.f1_score`, `sygra.pass@k` …

The value and the fields of a row are SyGra's; `sound` has the numbers beside them. Each is made from its class, so that
a formula stands in one place. The labels of a row are what `detailed_results` has as `predicted` and `expected`: an
object with the label under a key, or the label itself, whose key is then `text`.

The report over all records: each configured aggregator over one column of unit-metric results.

A report is a view of metric rows, for a run those of its `metrics.jsonl`, and of a census of the records. An aggregator
that fails leaves the others' numbers alone. A record that failed is counted and enters no metric.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Meta

from assay.engine.aggregate.bind import OWN_KEYS, BoundMetric, bind_metric
from assay.engine.aggregate.measure import Sample, measure
from assay.formats.sygra.metrics import (
    AggregatorMetricRegistry,
    BadParameter,
    BaseAggregatorMetric,
    UnitMetricResult,
    UnknownName,
    error_text,
)
from assay.formats.sygra.metrics.counting import (
    METADATA,
    Counting,
    Key,
    Labelled,
    by_problem,
    with_interval,
)
from assay.formats.sygra.scorer import problem_of, result_of
from assay.formats.sygra.types import Config, Row
from assay.metrics.label_scores import ACTUAL, PREDICTED
from assay.metrics.pass_rate import pass_rate
from assay.sdk import Group, JsonObject, MetricRow, UserError, Values, id_hash, metric
from assay.stats.intervals import codes_of

PROBLEM = "detailed_results.problem"
SIDES = (PREDICTED, ACTUAL, METADATA)
_TEXT = "text"
OURS: dict[str, type[Counting]] = {
    name: AggregatorMetricRegistry.get_metric_class(name)
    for name in AggregatorMetricRegistry.list_metrics()
}


def _register(name: str, kind: type[Counting]) -> None:
    """In a config, the key of a label is `text` unless it says otherwise."""
    keys = {field.name: _TEXT for field in kind.fields if field.name.endswith("_key")}
    optional = msgspec.defstruct(
        name, [(key, Key, _TEXT) for key in keys], bases=(kind.parameters,), kw_only=True
    )
    optional.__doc__ = Labelled.__doc__ if keys else kind.__doc__

    def measure(group: Group, **params: Any) -> Values:
        return _values_of(kind(**{**keys, **params}), group)

    def columns(params: Config) -> list[str]:
        return [*kind.reads, PROBLEM, *(params[key] for key in keys if "." in params.get(key, ""))]

    measure.__name__ = measure.__qualname__ = name.replace("@", "_at_").replace("^", "_power_")
    measure.__doc__ = (
        f"{kind.about.description}, by SyGra's formula; `sound` has the number to quote."
    )
    metric(name=f"sygra.{name}", columns=columns, params=optional, verdicts="needed", scale=(0, 1))(
        measure
    )


for _name, _kind in OURS.items():
    _register(_name, _kind)


@metric(name="sygra.aggregator", columns=(*SIDES, PROBLEM, "outcome"), verdicts="needed")
def aggregator(
    group: Group,
    *,
    metric: Annotated[str, Meta(min_length=1)],
    params: Config | None = None,
    module: str = "",
    base: str = "",
) -> Values:
    """An aggregator metric of the user's own. Its payload is the row's `payload`, its value the number of its name, or
    the only one.

    Parameters:
    metric: the name that it is registered under, or the dotted path of its class
    params: its parameters
    module: the module that registers it
    base: the folder that the module's name counts from
    """
    if "errored" in group.columns["outcome"]:
        return Values(reason="what a failed row would change is not asked of a user's metric")
    if module and not AggregatorMetricRegistry.has_metric(metric):
        from assay.formats.sygra.modules import Loader

        Loader(Path(base))(module)
    try:
        made = AggregatorMetricRegistry.get_metric(metric, **(params or {}))
        payload: Any = msgspec.to_builtins(
            made.calculate(list(_results(group))), str_keys=True, enc_hook=_from_numpy
        )
    except Exception as error:  # user code may raise anything
        raise UserError(error_text(error)) from error
    shown: Row = payload if isinstance(payload, dict) else {metric: payload}
    numbers = {key: number for key, number in shown.items() if type(number) in (int, float)}
    value = numbers.get(metric, next(iter(numbers.values())) if len(numbers) == 1 else None)
    problems = by_problem(group, group.columns[PROBLEM])
    fields = {
        "payload": payload,
        "sound": {"accuracy": with_interval(pass_rate(problems), problems)},
    }
    return Values(value=value, fields=fields, reason="a user's metric: see its payload")


def _from_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"the payload holds {type(value).__name__}, which is not a JSON value")


def _values_of(made: Counting, group: Group) -> Values:
    payload = made.calculate(_results(group))
    problems = by_problem(group, group.columns[PROBLEM], made.attempts())
    sound = {"accuracy": with_interval(pass_rate(problems), problems), **made.sound(problems)}
    value, reason = made.value(payload), made.reason
    if isinstance(made, Labelled) and not (made.counts.predicted or made.counts.actual):
        value, reason = (
            None,
            f"no row has a label under {' or '.join(map(repr, dict.fromkeys(made.keys)))}",
        )
    mean = made.mean(problems)
    per_item = mean.per_item if mean is not None and mean.value == value else None
    return Values(value=value, fields={**payload, "sound": sound}, per_item=per_item, reason=reason)


def _results(group: Group) -> Iterator[UnitMetricResult]:
    """The rows as a unit metric's results. Rows of other scorers count retries by their samples."""
    nothing: list[Any] = [None] * len(group.item)
    predicted, golden, metadata = (group.columns.get(name, nothing) for name in SIDES)
    paths = [name for name in group.columns if name not in (*SIDES, PROBLEM, "outcome")]
    for at, right in enumerate(group.passed.tolist()):
        more: Any = metadata[at]
        if not isinstance(more, dict):
            more = {
                "mission_id": int(group.item[at]),
                "step_id": "",
                "retry_number": int(group.sample[at]),
            }
        beside = {
            name: group.columns[name][at] for name in paths if group.columns[name][at] is not None
        }
        yield UnitMetricResult(
            right, _side(golden[at], beside), _side(predicted[at], beside), dict(more)
        )


def _side(value: Any, beside: Row) -> Row:
    if not isinstance(value, dict):
        value = {} if value is None else {_TEXT: value}
    return {**beside, **value}


Dialect = Literal["name", "field"]
SUFFIX = "_result"


class Entry(msgspec.Struct):
    """One configured aggregator; `problem` says why it can have no result, `apart` what tells it from others of its
    name on its column."""

    name: str
    shown: str
    field: str
    key: str
    metric: BaseAggregatorMetric | None
    copied: dict[str, str]
    problem: str | None = None
    settings: Row = {}
    apart: str = ""

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
            params = {
                "metric": self.name,
                "params": made.config,
                "module": type(made).__module__,
                "base": base,
            }
        return bind_metric(name=name or self.key, type=type_, params=params, include=[self.label])


def dialect(fields: Iterable[str]) -> Dialect:
    """Return `name` if every column is `<unit metric>_result`, as the older version wrote them;
    else `field`."""
    return "name" if all(field.endswith(SUFFIX) for field in fields) else "field"


def column_of(configured: Config, default: str) -> str:
    """The column that an entry reads; of a list it is the first."""
    column: Any = configured.get("unit_metrics_results", default)
    if isinstance(column, list):
        column = cast("list[Any]", column)[0] if column else ""
    return str(column or "")


def entries(configured: Sequence[Config], default: str, style: Dialect) -> list[Entry]:
    """The configured aggregators with their report keys: the plain name, or `<column>-<name>`.

    Two of one name on different columns would hide one another under the plain name, so both get the long one. Two on
    one column say how they differ (`pass@k(k=1)`); what is written twice counts once.
    """
    made = [_entry(aggregator, column_of(aggregator, default)) for aggregator in configured]
    distinct: list[Entry] = []
    for entry in made:
        namesakes = [other for other in made if other.shown == entry.shown]
        is_alone = all(other.field == entry.field for other in namesakes)
        entry.key = entry.shown if style == "name" and is_alone else f"{entry.field}-{entry.shown}"
        others = [other.settings for other in namesakes if other.field == entry.field]
        settings = entry.settings.items()
        told = [
            f"{name}={value}"
            for name, value in settings
            if any(other.get(name) != value for other in others)
        ]
        entry.apart = f"({', '.join(told)})" if told else ""
        entry.key += entry.apart
        if not any(
            (other.key, other.settings) == (entry.key, entry.settings) for other in distinct
        ):
            distinct.append(entry)
    return distinct


def _entry(configured: Config, field: str) -> Entry:
    name, params = str(configured.get("name") or ""), configured.get("params", {})
    entry = Entry(name, name, field, "", None, {})
    try:
        if not isinstance(params, Mapping):
            shown = "null" if params is None else type(params).__name__
            raise BadParameter(
                f"`params` of the aggregator metric {name!r} is {shown}: leave it out or write {{}}"
            )
        entry.copied = msgspec.convert(configured.get("metadata") or {}, dict[str, str])
        entry.settings = {**params, **({"metadata": entry.copied} if entry.copied else {})}
        entry.metric = made = AggregatorMetricRegistry.get_metric(name, **params)
        entry.shown = AggregatorMetricRegistry.name_of(name, made)
    except (
        Exception
    ) as error:  # a user's constructor may raise anything: this entry says it, the others stand
        entry.problem = error_text(error)
    return entry


class Census:
    """What a report says about the records themselves, from one pass over them."""

    def __init__(self, made: Sequence[Entry]) -> None:
        self.columns = list(
            dict.fromkeys(
                entry.field for entry in made if entry.metric is not None and not entry.problem
            )
        )
        self.names: dict[str, None] = {}
        self.malformed: dict[str, str] = {}
        self.total = self.scored = self.failed = 0

    def add(self, record: Any) -> None:
        if not isinstance(record, dict):
            raise BadParameter(f"record {self.total} is not an object but {type(record).__name__}")
        row = cast("JsonObject", record)
        if not self.names.keys() >= row.keys():
            self.names |= dict.fromkeys(row)
        has_result = not self.columns and not row.get("error")
        for column in self.columns:
            result: Any = row.get(column)
            if isinstance(result, dict):
                has_result = True
                for side in ("golden", "predicted"):
                    if not isinstance(result.get(side, {}), dict):
                        text = f"{column} of record {row.get('id', self.total)!r}: {side} must be a dictionary"
                        self.malformed.setdefault(column, text)
        if has_result:
            self.scored += 1
        elif row.get("error"):
            self.failed += 1
        self.total += 1

    def fatal(self, error: Exception) -> Row:
        """The report where a record cannot be read."""
        summary = {"total_records": self.total, "status": "fatal_error", "error": error_text(error)}
        return {"evaluation_summary": summary, "results": {}}


def _payload_of(row: MetricRow) -> Any:
    if "payload" in row:
        return row["payload"]
    others = {*OWN_KEYS, "sample_count", "label", "sound", row["metric_type"]}
    return {key: value for key, value in row.items() if key not in others}


class CollatorReport(NamedTuple):
    """The view of the metric rows, by the keys of their entries."""

    entries: Sequence[Entry]
    style: Dialect
    census: Census
    rows: Mapping[str, MetricRow]

    def shown(self) -> Row:
        census = self.census
        if not census.total:
            return {"evaluation_summary": {"total_records": 0, "status": "no_data"}, "results": {}}
        results: Row = {}
        errors: dict[str, str] = {}
        for entry in self.entries:
            try:
                results[entry.key] = self._payload(entry)
            except Exception as error:  # a user's metric may raise anything: the others stand
                errors[entry.key] = error_text(error)
        summary = self._summary("fatal_error" if errors else "success")
        if errors:
            summary |= {"error": "; ".join(dict.fromkeys(errors.values())), "errors": errors}
        report: Row = {"evaluation_summary": summary, "results": results}
        if sound := self._sound(results):
            report["sound"] = sound
        return report

    def _summary(self, status: str) -> Row:
        total, scored, failed = self.census.total, self.census.scored, self.census.failed
        clock = {"timestamp": time.strftime("%Y-%m-%d %H:%M:%S")}
        succeeded = self.style == "field" and status == "success"
        counts = {"scored": scored, "failed": failed, "unscored": total - scored - failed}
        return {"total_records": total, **(clock if succeeded else {}), "status": status, **counts}

    def _payload(self, entry: Entry) -> Any:
        census = self.census
        problem = entry.problem or census.malformed.get(entry.field)
        if problem is not None:
            raise BadParameter(problem)
        if entry.field not in census.names:
            what = f"Missing unit metric results field {entry.field!r} in data."
            raise UnknownName(f"{what} Available columns: {list(census.names)}")
        row = self.rows.get(entry.key, {})
        if "error" in row:
            raise BadParameter(row["error"])
        total = row.get("used_sample_count", 0)
        if not total:
            failed = f": {census.failed:,} of {census.total:,} failed" if census.failed else ""
            raise BadParameter(f"no record has a result in {entry.field!r}{failed}")
        made, payload = entry.metric, _payload_of(row)
        if isinstance(made, Counting) and self.style == "name":
            is_ours = type(made).calculate is Counting.calculate
            return made.older(payload, total) if is_ours else payload
        return payload

    def _sound(self, results: Config) -> Row:
        """By column; a column that is read with and without copied metadata is one."""
        by_label: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if entry.key in results and "sound" in self.rows.get(entry.key, {}):
                by_label.setdefault(entry.label, []).append(entry)
        by_field: Row = {}
        for readers in by_label.values():
            field = readers[0].field
            by_field[field] = self._sound_of(readers) | by_field.get(field, {})
        return by_field

    def _sound_of(self, readers: list[Entry]) -> Row:
        parts = [(entry, self.rows[entry.key]["sound"]) for entry in readers]
        accuracy = parts[0][1]["accuracy"]
        total, passed = self.census.total, accuracy["passed_count"]
        bounds = {
            "value_if_missing_wrong": passed / total,
            "value_if_missing_right": (passed + total - accuracy["attempts"]) / total,
        }
        labels = {
            entry.metric.keys: part for entry, part in parts if isinstance(entry.metric, Labelled)
        }
        sound = {"accuracy": accuracy | bounds}
        for keys, part in labels.items():
            name = "classification" if len(labels) == 1 else f"classification({', '.join(keys)})"
            sound[name] = part["classification"]
        for entry, part in parts:
            if not isinstance(entry.metric, Labelled):
                sound |= {
                    f"{name}{entry.apart}": numbers
                    for name, numbers in part.items()
                    if name != "accuracy"
                }
        return sound


class _Column:
    """The results of one column, as the engine's columns: some bytes a record, and one object for equal sides."""

    def __init__(self, readers: list[Entry]) -> None:
        self.readers = [(entry, entry.bound()) for entry in readers]
        self._field, self._copied = readers[0].field, readers[0].copied
        self._problems: list[int] = []
        self._passed: list[bool] = []
        wanted = {name for _, bound in self.readers for name in bound.columns}
        self._sides: dict[str, list[Any]] = {name: [] for name in SIDES if name in wanted}
        self._known: dict[bytes, Any] = {}

    def add(self, row: Config) -> None:
        stored: Any = row.get(self._field)
        if not isinstance(stored, dict):
            return
        try:
            result = result_of(cast("JsonObject", stored), row, self._copied)
        except ValueError:  # the census says so
            return
        problem = problem_of(result.metadata, row)
        self._problems.append(id_hash(f"\x1f{len(self._problems)}" if problem is None else problem))
        self._passed.append(bool(result.correct))
        for side, value in zip(
            SIDES, (result.predicted, result.golden, result.metadata), strict=True
        ):
            if side in self._sides:
                self._sides[side].append(self._shared_object(value))

    def _shared_object(self, value: Any) -> Any:
        try:
            return self._known.setdefault(msgspec.json.encode(value), value)
        except (TypeError, ValueError):  # an object of the user's
            return value

    def rows(self) -> dict[str, MetricRow]:
        """By the keys of the entries."""
        count = len(self._passed)
        passed = np.array(self._passed, np.bool_)
        sample = Sample(
            label=self.readers[0][0].label,
            item=codes_of(np.array(self._problems, np.uint64)).astype(np.int32),
            sample=np.zeros(count, np.int32),
            passed=passed,
            score=passed.astype(np.float64),
            outcome=np.zeros(count, np.int8),
            load=list,
            take=lambda name: self._sides.get(name) or [None] * count,
        )
        return (
            {entry.key: measure(bound, sample)[0] for entry, bound in self.readers} if count else {}
        )


def report_over(made: Sequence[Entry], style: Dialect, records: Iterable[Any]) -> Row:
    """The report over any records, as when Python calls a collator's `process`: the metrics of a run's own reports,
    computed from columns in memory."""
    census = Census(made)
    readers: dict[str, list[Entry]] = {}
    for entry in made:
        if entry.metric is not None and entry.problem is None:
            readers.setdefault(entry.label, []).append(entry)
    columns = [_Column(sharing) for sharing in readers.values()]
    try:
        for record in records:
            census.add(record)
            for column in columns:
                column.add(record)
    except Exception as error:
        return census.fatal(error)
    rows = {key: row for column in columns for key, row in column.rows().items()}
    return CollatorReport(made, style, census, rows).shown()
