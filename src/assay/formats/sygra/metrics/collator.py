"""The report over all records: each configured aggregator over one column of unit-metric results.

A report is a view of metric rows, for a run those of its `metrics.jsonl`, and of a census of the records. An aggregator
that fails leaves the others' numbers alone. A record that failed is counted and enters no metric.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from assay.engine.aggregate.bind import OWN_KEYS
from assay.engine.aggregate.measure import Sample, measure
from assay.formats.sygra.metric import SIDES, Dialect, Entry
from assay.formats.sygra.metrics import BadParameter, UnknownName, error_text
from assay.formats.sygra.metrics.counting import Counting, Labelled
from assay.formats.sygra.scorer import problem_of, result_of
from assay.formats.sygra.types import Config, Row
from assay.records import MetricRow
from assay.stats.intervals import codes_of
from assay.store.keys import id_hash


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
        row = cast("dict[str, Any]", record)
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


class Report(NamedTuple):
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
        if entry.metric is not None and entry.field not in self.census.names:
            what = f"Missing unit metric results field {entry.field!r} in data."
            raise UnknownName(f"{what} Available columns: {list(self.census.names)}")
        problem = entry.problem or self.census.malformed.get(entry.field)
        if problem is not None or entry.metric is None:
            raise BadParameter(problem or "")
        row = self.rows.get(entry.key, {})
        if "error" in row:
            raise BadParameter(row["error"])
        total = row.get("used_sample_count", 0)
        if not total:
            census = self.census
            failed = f": {census.failed:,} of {census.total:,} failed" if census.failed else ""
            raise BadParameter(f"no record has a result in {entry.field!r}{failed}")
        if "payload" in row:
            payload = row["payload"]
        else:
            others = {*OWN_KEYS, "sample_count", "label", "sound", row["metric_type"]}
            payload = {key: value for key, value in row.items() if key not in others}
        made = entry.metric
        if (
            self.style == "name"
            and isinstance(made, Counting)
            and type(made).calculate is Counting.calculate
        ):
            return made.older(payload, total)
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
            result = result_of(cast("dict[str, Any]", stored), row, self._copied)
        except ValueError:  # the census says so
            return
        problem = problem_of(result.metadata, row)
        self._problems.append(id_hash(f"\x1f{len(self._problems)}" if problem is None else problem))
        self._passed.append(bool(result.correct))
        for side, value in zip(
            SIDES, (result.predicted, result.golden, result.metadata), strict=True
        ):
            if side in self._sides:
                self._sides[side].append(self._interned(value))

    def _interned(self, value: Any) -> Any:
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


def collated(made: Sequence[Entry], style: Dialect, records: Iterable[Any]) -> Row:
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
    return Report(made, style, census, rows).shown()
