"""The report over all records: each configured aggregator over one column of unit-metric results.

One pass over the records, whatever their number; only a user's own aggregator gets them as a list. An aggregator that
fails leaves the others' numbers alone. A record that failed is counted and enters no metric.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from assay.errors import AssayError
from assay.formats.sygra.metrics.aggregate import AggregatorMetricRegistry, BaseAggregatorMetric, Counting
from assay.formats.sygra.metrics.results import BadParameter, UnitMetricResult, UnknownName
from assay.formats.sygra.metrics.sound import Verdicts

Dialect = Literal["seed", "field"]
SUFFIX = "_result"


class Entry(msgspec.Struct):
    """One configured aggregator; `problem` says why it can have no result."""

    name: str
    field: str
    key: str
    metric: BaseAggregatorMetric | None
    copied: dict[str, str]
    results: list[UnitMetricResult] = []
    problem: str | None = None


def dialect(fields: Iterable[str], unit_metrics: Iterable[str] | None = None) -> Dialect:
    """`seed` if every column is `<unit metric>_result`, as the older version wrote them; else `field`."""
    known = None if unit_metrics is None else {f"{name}{SUFFIX}" for name in unit_metrics}
    is_seed = all(field.endswith(SUFFIX) and (known is None or field in known) for field in fields)
    return "seed" if is_seed else "field"


def column_of(configured: Mapping[str, Any], default: str) -> str:
    """The column that an entry reads; of a list it is the first."""
    found: Any = configured.get("unit_metrics_results", default)
    if isinstance(found, list):
        found = cast("list[Any]", found)[0] if found else ""
    return str(found or "")


def entries(configured: Sequence[Mapping[str, Any]], default: str, style: Dialect) -> list[Entry]:
    """The configured aggregators with their report keys: the plain name, or `<column>-<name>`.

    Two of one name on different columns would hide one another under the plain name, so both get the long one.
    """
    made = [_entry(each, column_of(each, default)) for each in configured]
    seen: set[str] = set()
    for entry in made:
        columns = {other.field for other in made if other.name == entry.name}
        entry.key = entry.name if style == "seed" and len(columns) == 1 else f"{entry.field}-{entry.name}"
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
        entry.problem = said(error)
    return entry


def said(error: Exception) -> str:
    """What an error says, without the quotes that a KeyError puts around it."""
    if isinstance(error, AssayError):
        return error.what
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text or type(error).__name__


class _Column:
    """One column of unit-metric results, with what is copied into their metadata, and the entries that read it."""

    def __init__(self, field: str, copied: Mapping[str, str], readers: list[Entry]) -> None:
        self.field = field
        self.copied = copied
        self.readers = readers
        self.verdicts = Verdicts()
        self._takers: list[tuple[Entry, Callable[[UnitMetricResult], None]]] = []
        for entry in readers:
            assert entry.metric is not None
            self.verdicts.serve(entry.metric)
            counting = _counting(entry.metric)
            if counting is not None:
                counting.start()
            self._takers.append((entry, entry.results.append if counting is None else counting.add))

    def add(self, row: dict[str, Any], number: int) -> bool:
        """Whether the record has a result here; one that is malformed is an entry's problem, not the report's."""
        found: Any = row.get(self.field)
        if not isinstance(found, dict):
            return False
        try:
            result = UnitMetricResult.from_dict(cast("dict[str, Any]", found))
        except ValueError as error:
            for entry in self.readers:
                entry.problem = entry.problem or f"{self.field} of record {row.get('id', number)!r}: {error}"
            return True
        if self.copied:
            more = {name: row.get(source, "unknown") for name, source in self.copied.items()}
            result.metadata = {**result.metadata, **more}
        self.verdicts.add(result, row)
        for entry, add in self._takers:
            if entry.problem is None:
                try:
                    add(result)
                except (TypeError, ValueError) as error:
                    entry.problem = said(error)
        return True


def _counting(metric: BaseAggregatorMetric) -> Counting | None:
    """The metric if it counts as it goes; a subclass with a `calculate` of its own wants the list."""
    return metric if isinstance(metric, Counting) and type(metric).calculate is Counting.calculate else None


class Report:
    """The report of one pass over the records."""

    def __init__(self, made: list[Entry], style: Dialect) -> None:
        self._entries = made
        self._style: Dialect = style
        self._columns = self._by_column()
        self._names: dict[str, None] = {}
        self.total = self.scored = self.failed = 0

    def _by_column(self) -> list[_Column]:
        read: dict[tuple[str, bytes], list[Entry]] = {}
        for entry in self._entries:
            if entry.metric is not None and entry.problem is None:
                read.setdefault((entry.field, msgspec.json.encode(entry.copied)), []).append(entry)
        return [_Column(field, readers[0].copied, readers) for (field, _), readers in read.items()]

    def add(self, record: Any) -> None:
        if not isinstance(record, dict):
            raise BadParameter(f"record {self.total} is no object but {type(record).__name__}")
        row = cast("dict[str, Any]", record)
        if not self._names.keys() >= row.keys():
            self._names |= dict.fromkeys(row)
        has_result = [column.add(row, self.total) for column in self._columns]
        self.total += 1
        if any(has_result):
            self.scored += 1
        elif row.get("error"):
            self.failed += 1
        elif not self._columns:
            self.scored += 1

    def made(self) -> dict[str, Any]:
        if not self.total:
            return {"evaluation_summary": {"total_records": 0, "status": "no_data"}, "results": {}}
        if self._columns and not self.scored and all(column.field in self._names for column in self._columns):
            problems = {entry.key: entry.problem for entry in self._entries if entry.problem is not None}
            summary = self._summary("no_data") | ({"errors": problems} if problems else {})
            return {"evaluation_summary": summary, "results": {}}
        results: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for entry in self._entries:
            try:
                results[entry.key] = self._payload(entry)
            except Exception as error:  # a user's metric may raise anything: the others stand
                errors[entry.key] = said(error)
        status = "success" if not errors else "partial" if results else "fatal_error"
        summary = self._summary(status)
        if errors:
            summary |= {"errors": errors} if results else {"error": "; ".join(dict.fromkeys(errors.values()))}
        report: dict[str, Any] = {"evaluation_summary": summary, "results": results}
        if sound := self._sound(results):
            report["sound"] = sound
        return report

    def _summary(self, status: str) -> dict[str, Any]:
        clock = {"timestamp": time.strftime("%Y-%m-%d %H:%M:%S")}
        counts = {"scored": self.scored, "failed": self.failed, "unscored": self.total - self.scored - self.failed}
        succeeded = self._style == "field" and status in ("success", "partial")
        return {"total_records": self.total, **(clock if succeeded else {}), "status": status, **counts}

    def _payload(self, entry: Entry) -> dict[str, Any]:
        if entry.metric is not None and entry.field not in self._names:
            columns = list(self._names)
            raise UnknownName(
                f"Missing unit metric results field {entry.field!r} in data. Available columns: {columns}"
            )
        if entry.problem is not None or entry.metric is None:
            raise BadParameter(entry.problem or "")
        counting = _counting(entry.metric)
        if counting is None:
            return _plain(entry.metric.calculate(entry.results))
        return counting.seed_payload() if self._style == "seed" else counting.payload()

    def _sound(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """By column; a column that is read with and without copied metadata is one."""
        found: dict[str, Any] = {}
        for column in self._columns:
            if any(entry.key in results for entry in column.readers):
                found[column.field] = column.verdicts.report(self.total) | found.get(column.field, {})
        return {field: numbers for field, numbers in found.items() if numbers}


def _plain(value: Any) -> Any:
    """A user's payload as JSON values; a TypeError names what is none."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_from_numpy)


def _from_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"the payload holds {type(value).__name__}, which is no JSON value")
