"""The report over records that no run made, as when Python calls a collator's `process`: the metrics of the run's own
reports, computed from columns in memory."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
import numpy as np

from assay.engine.aggregate.measure import Sample, measure
from assay.formats.sygra.metrics.collator import Census, Dialect, Entry, Report
from assay.formats.sygra.metrics.measures import SIDES
from assay.formats.sygra.metrics.scorers import problem_of, result_of
from assay.records import MetricRow
from assay.store.keys import id_hash


class _Interned:
    """Values row by row; equal ones are one object."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._codes = array("i")
        self._known: dict[Any, int] = {}

    def append(self, value: Any) -> None:
        try:
            key: Any = msgspec.json.encode(value)
        except (TypeError, ValueError):  # an object of the user's
            key = object()
        code = self._known.setdefault(key, len(self._values))
        if code == len(self._values):
            self._values.append(value)
        self._codes.append(code)

    def all(self) -> list[Any]:
        return [self._values[code] for code in self._codes]


class _Column:
    """The results of one column, as the engine's columns: some bytes a record, and one object for equal sides."""

    def __init__(self, readers: list[Entry]) -> None:
        self.readers = [(entry, entry.bound()) for entry in readers]
        self._field, self._copied = readers[0].field, readers[0].copied
        self._problems, self._passed = array("Q"), array("B")
        wanted = {name for _, bound in self.readers for name in bound.columns}
        self._sides = {name: _Interned() for name in SIDES if name in wanted}

    def add(self, row: Mapping[str, Any]) -> None:
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
        for side, value in zip(SIDES, (result.predicted, result.golden, result.metadata), strict=True):
            if side in self._sides:
                self._sides[side].append(value)

    def rows(self) -> dict[str, MetricRow]:
        """By the keys of the entries."""
        count = len(self._passed)
        passed = np.frombuffer(self._passed, np.bool_)
        sample = Sample(
            label=self.readers[0][0].label,
            facets={},
            item=np.unique(np.frombuffer(self._problems, np.uint64), return_inverse=True)[1].astype(np.int32),
            sample=np.zeros(count, np.int32),
            passed=passed,
            score=passed.astype(np.float64),
            outcome=np.zeros(count, np.int8),
            load=list,
            take=lambda name: self._sides[name].all() if name in self._sides else [None] * count,
        )
        return {entry.key: measure(bound, sample)[0] for entry, bound in self.readers} if count else {}


def collated(made: Sequence[Entry], style: Dialect, records: Iterable[Any]) -> dict[str, Any]:
    """The report over any records."""
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
    rows: dict[str, MetricRow] = {}
    for column in columns:
        rows |= column.rows()
    return Report(made, style, census, rows).shown()
