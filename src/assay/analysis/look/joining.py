"""An experiment's responses by model and item, each with its evaluations, for writers of other programs' files: they
are found by position and never held.

Series come in the order of their names and answers in the order of the items, so that equal rows give equal files in
whatever order they stand on disk. Memory holds 20 bytes for a response, 28 where they are not in the order of the
items, and 8 for an evaluation.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from assay.analysis.look.export import Tables
from assay.interfaces import Codes, IntArray, Log
from assay.interfaces import Hashes as Keys
from assay.records import Item
from assay.store.files import safe_name
from assay.store.index import ItemIndex, id_number
from assay.store.keys import id_hash
from assay.store.table.columns import read_columns
from assay.store.table.decode import decode_row
from assay.store.table.join import response_key

Row = dict[str, Any]
Ints = IntArray
_LOST = 1 << 62  # above every position: responses whose item is not in the dataset come last
_PLACE = ("item_id", "sample_index", "model_name")
_ADDRESS = ("key", *_PLACE, "task", "total_samples", "timestamp")
_TEMPLATE = "metadata.prompt_template"
_LABEL = ("responses", "label", "scorer", *_PLACE)


class SeriesKey(NamedTuple):
    """What tells the rows of one series from another's. `sample` is -1 where all samples are one series."""

    model: str
    template: str
    task: str
    sample: int


def series_names(cells: Sequence[SeriesKey]) -> dict[SeriesKey, str]:
    """The name of each: no longer than it must be for all of them to differ."""
    several_templates = len({cell.template for cell in cells}) > 1
    several_samples = len({cell.sample for cell in cells}) > 1
    tasks = Counter(cell[:2] + cell[3:] for cell in cells)
    names: dict[SeriesKey, str] = {}
    for cell in cells:
        parts = [cell.model or cell.task or "unknown"]
        if several_templates and cell.template:
            parts.append(safe_name(cell.template))
        if tasks[cell[:2] + cell[3:]] > 1:
            parts.append(safe_name(cell.task))
        if several_samples:
            parts.append(f"sample_{cell.sample}")
        names[cell] = "_".join(parts)
    return _apart(names)


def _apart(names: dict[SeriesKey, str]) -> dict[SeriesKey, str]:
    """A number for those that are still called alike, in the order of the cells."""
    taken: set[str] = set()
    for cell in sorted(names):
        name, number = names[cell], 2
        while names[cell] in taken:
            names[cell], number = f"{name}_{number}", number + 1
        taken.add(names[cell])
    return names


class _Of(msgspec.Struct):
    """What is true of all rows of an address."""

    code: int
    rows: int = 0
    total_samples: int = 1
    timestamp: float = 0.0


class Series(msgspec.Struct):
    """The answers of one address: `rows` are numbers of responses in the order of their items."""

    name: str
    address: SeriesKey
    rows: Ints | range
    total_samples: int
    timestamp: float


class Joining:
    """The rows of one experiment, joined; with `means` the samples of an item are together."""

    def __init__(self, tables: Tables, *, means: bool = False) -> None:
        self.items = ItemIndex(tables.log("items"))
        self._runs = _Logs(tables.logs("responses"))
        self._means = means
        self._cells: dict[SeriesKey, _Of] = {}
        keys = self._read_responses()
        self._evaluations = _Evaluations(_Logs(tables.source.logs("evaluation")), keys)
        self.matches = self._evaluations.matches

    def series(self) -> Iterator[Series]:
        names = series_names(list(self._cells))
        for cell in sorted(self._cells, key=lambda cell: names[cell]):
            of = self._cells[cell]
            begin, end = self._begins[of.code], self._begins[of.code + 1]
            yield Series(
                name=names[cell],
                address=cell,
                rows=range(begin, end) if self._order is None else self._order[begin:end],
                total_samples=1 if self._means else of.total_samples,
                timestamp=of.timestamp,
            )

    def cases(self, series: Series) -> Iterator[tuple[Row, list[tuple[str, Row]]]]:
        """Each response of a series with its (metric, evaluation) pairs, in the order of the metrics' names."""
        for number in map(int, series.rows):  # a list would take five times the memory
            response = self._runs.read(self._position[number])
            yield response, self._evaluations.of(number, response)

    def by_item(self, series: Series) -> Iterator[list[tuple[Row, list[tuple[str, Row]]]]]:
        """The same cases, those of one item together."""
        return (
            list(several)
            for _, several in groupby(self.cases(series), lambda case: case[0]["item_id"])
        )

    def item(self, response: Row) -> Item | None:
        """The response's item, where it is in the dataset."""
        return self.items.get(str(response.get("item_id")))

    def _read_responses(self) -> Keys:
        """The engine's key of each response."""
        cells, samples, items, keys = array("i"), array("i"), array("q"), array("Q")
        for own, (templates,), *_ in read_columns(
            self._runs.logs, "responses", _ADDRESS, (_TEMPLATE,)
        ):
            items.frombytes(self._places([str(id) for id in own[1]]).tobytes())
            for key, item, sample, model, task, total, when, template in zip(
                *own, templates, strict=True
            ):
                keys.append(response_key(key, (item, sample, model or "")))
                sample, total, when = (
                    part if isinstance(part, (int, float)) else 0 for part in (sample, total, when)
                )
                name = "" if template in (None, msgspec.UNSET) else str(template)
                cell = SeriesKey(
                    str(model or ""), name, str(task or ""), -1 if self._means else int(sample)
                )
                of = self._cells.setdefault(cell, _Of(len(self._cells)))
                of.rows += 1
                of.total_samples = max(of.total_samples, int(total) or 1)
                of.timestamp = max(of.timestamp, when)
                cells.append(of.code)
                if self._means:  # else it is the same for a whole series
                    samples.append(int(sample))
        self._position = array(
            "q", (position for position, _ in zip(self._runs.positions(), cells, strict=False))
        )
        self._sort(
            np.frombuffer(items, np.int64),
            np.frombuffer(cells, np.int32),
            np.frombuffer(samples, np.int32),
        )
        return np.frombuffer(keys, np.uint64)

    def _places(self, ids: Sequence[str]) -> Ints:
        """Where these items stand in the dataset."""
        found = self.items.positions(array("Q", map(id_number, ids)))
        for at in np.flatnonzero(found < 0).tolist():
            found[at] = _LOST | id_hash(ids[at]) >> 2
        return found

    def _sort(self, item: Ints, cell: Codes, sample: Codes) -> None:
        keys = (sample, item, cell) if self._means else (item, cell)
        self._order = None if _in_order(*keys) else np.lexsort(keys)
        self._begins = [0, *accumulate(of.rows for of in self._cells.values())]


class _Logs:
    """Several logs as one; a position has the number of its log in the highest bits."""

    _BITS = 58

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = logs

    def positions(self) -> Iterator[int]:
        """Where each row stands."""
        for number, log in enumerate(self.logs):
            for position, line in log.scan():
                if line and not line.isspace():
                    yield number << self._BITS | position

    def read(self, position: int) -> Row:
        return decode_row(
            self.logs[position >> self._BITS].read(position & ((1 << self._BITS) - 1)), "a row"
        )


def _behind(responses: Any) -> list[Any]:
    """The keys of an evaluation's responses; the row may be anybody's."""
    return cast("list[Any]", responses) if isinstance(responses, list) else []


class _Evaluations:
    """The evaluations of each response, found by the engine's key of their response."""

    def __init__(self, rows: _Logs, responses: Keys) -> None:
        self.matches = 0
        self._rows = rows
        self._scorers: dict[str, set[str]] = {}
        keys, positions = array("Q"), array("q")
        places = rows.positions()
        for columns, *_ in read_columns(rows.logs, "evaluation rows", _LABEL, ()):
            for responses_of, label, scorer, item, sample, model, position in zip(
                *columns, places, strict=False
            ):
                behind = _behind(responses_of)
                if len(behind) > 1:
                    self.matches += 1  # of two answers: not a metric of one
                    continue
                self._scorers.setdefault(str(label or ""), set()).add(str(scorer or ""))
                keys.append(
                    response_key(behind[0] if behind else None, (item, sample, model or ""))
                )
                positions.append(position)
        sought = np.frombuffer(keys, np.uint64)
        order = np.argsort(sought, kind="stable")
        self._at = array("q", np.frombuffer(positions, np.int64)[order].tobytes())
        sought = sought[order]
        self._begins, self._ends = (
            array("I", np.searchsorted(sought, responses, side).astype(np.uint32).tobytes())
            for side in ("left", "right")
        )

    def of(self, number: int, response: Row) -> list[tuple[str, Row]]:
        """(metric, evaluation) of the response with this number, in the order of the metrics' names."""
        key = str(response.get("key") or "")
        rows = map(self._rows.read, self._at[self._begins[number] : self._ends[number]])
        rows = [row for row in rows if not key or _behind(row.get("responses"))[:1] in ([], [key])]
        return sorted(((self._metric(row), row) for row in rows), key=_by_metric)

    def _metric(self, evaluation: Row) -> str:
        """A label's name among the metrics: with its scorer where several give the same label."""
        label, scorer = str(evaluation.get("label") or ""), str(evaluation.get("scorer") or "")
        return f"{scorer}.{label}" if len(self._scorers.get(label, ())) > 1 else label


def _by_metric(pair: tuple[str, Row]) -> Any:
    return pair[0], pair[1].get("part") or [0]


def _in_order(*keys: npt.NDArray[Any]) -> bool:
    """Whether rows are sorted by these keys, the last one first: what `lexsort` would leave as it is."""
    later = np.zeros(max(len(keys[-1]) - 1, 0), np.bool_)
    equal = ~later
    for key in reversed(keys):
        later |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    return bool((later | equal).all())
