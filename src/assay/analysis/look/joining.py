"""The responses of an experiment with what belongs to each: its item, and the labels that name it.

`Joining` gives them by model and item, for writers of other programs' files; `SamplesTable`
gives the table `samples`, one row for each response. Nothing is stored, and rows are found by
position: memory holds about 30 bytes for a response and 10 for each of its labels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from assay.sdk import (
    OUTCOMES,
    Hashes,
    IntArray,
    Item,
    JsonObject,
    Log,
    Mask,
    Response,
    id_hash,
    safe_name,
)
from assay.store.index import ItemIndex, id_number
from assay.store.items import decode_item
from assay.store.table.columns import Table, read_columns
from assay.store.table.decode import decode_row, fitting, row_decoder
from assay.store.table.join import PLACE, Lookup, first_key, response_keys

if TYPE_CHECKING:
    from assay.analysis.look.export import Tables

_LOST = 1 << 62  # above every position: responses whose item is not in the dataset come last
_LOG_BITS = 58  # a position has the number of its log above these
_TEMPLATE = "metadata.prompt_template"


class _LabelBlock(NamedTuple):
    """Labels that stand together: the response that each names, and whether it names no other
    one."""

    responses: Hashes
    alone: Mask
    values: list[list[Any]]
    places: IntArray


def _label_blocks(logs: Sequence[Log], *fields: str) -> Iterator[_LabelBlock]:
    for block in read_columns(logs, "evaluation rows", ("responses", *PLACE, *fields)):
        behind, item, sample, model, *values = block.base
        keys = response_keys([first_key(each) for each in behind], (item, sample, model))
        alone = [not isinstance(each, list) or len(each) < 2 for each in behind]
        places = block.positions | block.log << _LOG_BITS
        yield _LabelBlock(keys, np.array(alone, np.bool_), values, places)


def _item_places(items: ItemIndex, ids: Iterable[str]) -> IntArray:
    """Return where these items stand in the dataset, -1 for those that it lacks."""
    return items.positions(np.array([id_number(id) for id in ids], np.uint64))


# ---- by model and item


class SeriesKey(NamedTuple):
    """What tells the rows of one series from another's. `sample` is -1 where all samples are one
    series."""

    model: str
    template: str
    task: str
    sample: int


_beside_task = attrgetter("model", "template", "sample")


def _series_names(cells: Iterable[SeriesKey]) -> dict[SeriesKey, str]:
    """Return the name of each: no longer than it must be for all of them to differ, with a
    number for those that are still called alike."""
    ordered = sorted(cells)
    several_templates = len({cell.template for cell in ordered}) > 1
    several_samples = len({cell.sample for cell in ordered}) > 1
    tasks = Counter(map(_beside_task, ordered))
    names: dict[str, SeriesKey] = {}
    for cell in ordered:
        parts = [cell.model or cell.task or "unknown"]
        if several_templates and cell.template:
            parts.append(safe_name(cell.template))
        if tasks[_beside_task(cell)] > 1:
            parts.append(safe_name(cell.task))
        if several_samples:
            parts.append(f"sample_{cell.sample}")
        name = plain = "_".join(parts)
        number = 2
        while name in names:
            name, number = f"{plain}_{number}", number + 1
        names[name] = cell
    return {cell: name for name, cell in names.items()}


class Series(msgspec.Struct):
    """The answers of one address: `rows` are numbers of responses in the order of their items."""

    address: SeriesKey
    code: int
    name: str = ""
    total_samples: int = 1
    timestamp: float = 0.0
    rows: Any = ()


class Joining:
    """The rows of one experiment, joined; with `means` the samples of an item are together.

    Series come in the order of their names and answers in the order of the items, so that equal
    rows give equal files in whatever order they stand on disk.
    """

    def __init__(self, tables: "Tables", *, means: bool = False) -> None:
        self.items = ItemIndex(tables.log("items"))
        self._runs = tables.logs("responses")
        self._labels = tables.source.logs("evaluation")
        self._means = means
        self._series: dict[SeriesKey, Series] = {}
        self._scorers: dict[str, set[str]] = {}
        self.matches = 0
        self._find_labels(self._read_responses())

    def series(self) -> Iterator[Series]:
        return iter(sorted(self._series.values(), key=attrgetter("name")))

    def cases(self, series: Series) -> Iterator[tuple[JsonObject, list[tuple[str, JsonObject]]]]:
        """Yield each response of a series with its (metric, evaluation) pairs, in the order of
        the metrics' names."""
        for number in map(int, series.rows):  # a list would take five times the memory
            response = _row_at(self._runs, int(self._positions[number]))
            yield response, self._labels_of(number, str(response.get("key") or ""))

    def by_item(
        self, series: Series
    ) -> Iterator[list[tuple[JsonObject, list[tuple[str, JsonObject]]]]]:
        """Yield the same cases, those of one item together."""
        cases = groupby(self.cases(series), lambda case: case[0]["item_id"])
        return (list(several) for _, several in cases)

    def item(self, response: JsonObject) -> Item | None:
        """Return the response's item, where it is in the dataset."""
        return self.items.get(str(response.get("item_id")))

    def _read_responses(self) -> Hashes:
        """Find the series and their rows; return the engine's key of each response."""
        parts: list[tuple[Any, ...]] = []
        names = ("key", *PLACE, "task", "total_samples", "timestamp")
        for block in read_columns(self._runs, "responses", names, (_TEMPLATE,)):
            key, item, sample, model, task, *others = block.base
            samples = [int(_number(each)) for each in sample]
            addresses = map(self._address, model, block.found[0], task, samples)
            cells = map(self._code_of, addresses, *others)
            parts.append(
                (
                    response_keys(key, (item, sample, model)),
                    self._ranks([str(id) for id in item]),
                    np.array(samples, np.int32),
                    np.fromiter(cells, np.int32, len(samples)),
                    block.positions | block.log << _LOG_BITS,
                )
            )
        keys, items, samples, cells, self._positions = map(np.concatenate, zip(*parts, strict=True))
        del parts
        ends = np.cumsum(np.bincount(cells, minlength=len(self._series)))
        rows = np.split(np.lexsort((samples, items, cells)), ends[:-1])
        names = _series_names(self._series)
        for address, series in self._series.items():
            series.name, series.rows = names[address], rows[series.code]
        return keys

    def _address(self, model: Any, template: Any, task: Any, sample: int) -> SeriesKey:
        """Return what tells a row's series from others."""
        name = "" if template in (None, msgspec.UNSET) else str(template)
        place = -1 if self._means else sample
        return SeriesKey(str(model or ""), name, str(task or ""), place)

    def _code_of(self, address: SeriesKey, total: Any, when: Any) -> int:
        """Return the number of a row's series, and note what the row tells about it."""
        series = self._series.get(address)
        if series is None:
            series = self._series[address] = Series(address, len(self._series))
        if not self._means:
            series.total_samples = max(series.total_samples, int(_number(total)))
        series.timestamp = max(series.timestamp, _number(when))
        return series.code

    def _ranks(self, ids: list[str]) -> IntArray:
        """Return what orders items: where they stand in the dataset."""
        found = _item_places(self.items, ids)
        for at in np.flatnonzero(found < 0).tolist():
            found[at] = _LOST | id_hash(ids[at]) >> 2
        return found

    def _find_labels(self, responses: Hashes) -> None:
        """Sort the places of labels by the responses that they name; those of matches are
        counted."""
        keys, places = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for block in _label_blocks(self._labels, "label", "scorer"):
            self.matches += int((~block.alone).sum())
            keys.append(block.responses[block.alone])
            places.append(block.places[block.alone])
            for alone, label, scorer in zip(block.alone.tolist(), *block.values, strict=True):
                if alone:
                    self._scorers.setdefault(str(label or ""), set()).add(str(scorer or ""))
        lookup = Lookup(np.concatenate(keys))
        self._label_places = np.concatenate(places)[lookup.order]
        self._ranges = np.stack(lookup.ranges(responses), axis=1).astype(np.uint32)

    def _labels_of(self, number: int, key: str) -> list[tuple[str, JsonObject]]:
        begin, end = self._ranges[number].tolist()
        places = self._label_places[begin:end].tolist()
        rows = [_row_at(self._labels, place) for place in places]
        named = [(self._metric(row), row) for row in rows if _is_about(row, key)]
        return sorted(named, key=_by_metric)

    def _metric(self, evaluation: JsonObject) -> str:
        """Return a label's name among the metrics: with its scorer where several give the same
        label."""
        label, scorer = str(evaluation.get("label") or ""), str(evaluation.get("scorer") or "")
        return f"{scorer}.{label}" if len(self._scorers.get(label, ())) > 1 else label


def _row_at(logs: Sequence[Log], place: int) -> JsonObject:
    log, position = divmod(place, 1 << _LOG_BITS)
    return decode_row(logs[log].read(position), "a row")


def _is_about(evaluation: JsonObject, key: str) -> bool:
    """Return whether a label that was found by the first bits of a response's key names this
    one."""
    return not key or first_key(evaluation.get("responses")) in (None, key)


def _by_metric(pair: tuple[str, JsonObject]) -> Any:
    return pair[0], pair[1].get("part") or [0]


def _number(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else 0


# ---- the table of samples

FRONT = {"item_id": "VARCHAR", "model_name": "VARCHAR", "task": "VARCHAR", "sample_index": "BIGINT"}
BACK = {
    "response": "VARCHAR",
    "outcome": "VARCHAR",
    "error": "VARCHAR",
    "prompt_tokens": "BIGINT",
    "completion_tokens": "BIGINT",
    "total_tokens": "BIGINT",
    "cost": "DOUBLE",
    "inference_time": "DOUBLE",
}
HOLDS: dict[str, tuple[str, ...]] = {  # fields of the stored tables that it has
    "items": ("id", "data", "ground_truth"),
    "responses": ("sample_id", *FRONT, *BACK),
    "evaluations": ("sample_id", *FRONT, "label", "score", "passed", "outcome"),
}
DATA, TRUTH, SCORE, PASSED, OUTCOME = "data", "ground_truth", "score", "passed", "outcome"
_MOST_KEYS = 200  # keys of items that are columns; beyond, the data are one
_NEITHER = -1
_VERDICTS = np.array([False, True, None], object)  # by number; the last is that of _NEITHER
_OUTCOMES = np.array([*OUTCOMES, None], object)
_BATCH = 1024
_front, _back = attrgetter(*FRONT), attrgetter(*BACK)


class _Label:
    """The values of one label, by the numbers of responses."""

    def __init__(self, count: int) -> None:
        self.score = np.full(count, np.nan)
        self.passed = np.full(count, _NEITHER, np.int8)
        self.outcome = np.full(count, _NEITHER, np.int8)

    def add(self, number: int, score: Any, passed: Any, outcome: Any, error: Any) -> None:
        """Take what a label says of a response; the first one counts."""
        if self.outcome[number] >= 0:
            return
        if outcome not in OUTCOMES:
            outcome = "errored" if error or (passed is None and score is None) else "scored"
        self.outcome[number] = OUTCOMES.index(outcome)
        if isinstance(score, (int, float)):
            self.score[number] = score
        if passed is not None:
            self.passed[number] = bool(passed)


class SamplesTable:
    """The responses of an experiment, each with what belongs to it."""

    def __init__(self, tables: "Tables") -> None:
        self._tables = tables
        self._logs = tables.logs("responses")
        self._items = ItemIndex(tables.log("items")) if "items" in tables else None
        self._unplaced = 0

    def columns(self) -> dict[str, str]:
        data, truth = self._item_columns
        return {**FRONT, **data, TRUTH: truth, **BACK, **self._label_columns}

    def cells(self) -> Iterator[list[Any]]:
        """Yield the rows as lists, in the order of the columns."""
        for start in range(0, len(self._table), _BATCH):
            rows = slice(start, start + _BATCH)
            responses = list(self._responses(rows))
            items = self._item_cells([response.item_id for response in responses])
            labels = self._label_cells(rows)
            for response, item, label in zip(responses, items, labels, strict=False):
                yield [*_front(response), *item, *_back(response), *label]

    def rows(self) -> Iterator[JsonObject]:
        names = list(self.columns())
        return (dict(zip(names, cells, strict=True)) for cells in self.cells())

    def left_out(self) -> dict[str, int]:
        """Count the items without an answer, and of the labels that were read those of several
        answers or of none."""
        left = {"items": 0, "evaluations": self._unplaced}
        if self._items is not None:
            blocks = read_columns(self._logs, "responses", ("item_id",))
            places = [_item_places(self._items, map(str, block.base[0])) for block in blocks]
            answered = np.unique(np.concatenate(places))
            left["items"] = len(self._items) - int((answered >= 0).sum())
        return left

    @cached_property
    def _table(self) -> Table:
        return Table(self._logs, {}, key="key", what="responses", strict=True)

    def _responses(self, rows: slice) -> Iterator[Response]:
        log, position = self._table.log[rows], self._table.position[rows]
        for number in np.unique(log).tolist():
            places = position[log == number].tolist()
            yield from map(_response, self._logs[number].read_many(places))

    # ---- items

    @cached_property
    def _item_columns(self) -> tuple[dict[str, str], str]:
        """Return the columns of the items' data, and the type of their ground truth."""
        keys: dict[str, str | None] = {}
        whole, truth = False, None
        for item in self._items if self._items is not None else ():
            if item.ground_truth is not item.data:
                truth = wider(truth, _encode(item.ground_truth))
            if whole or not isinstance(item.data, dict) or len(keys) > _MOST_KEYS:
                whole = True
                continue
            _widen(keys, cast("JsonObject", item.data))
        columns = {f"{DATA}.{name}": kind or "JSON" for name, kind in keys.items()}
        if whole or not keys:
            columns = {DATA: "JSON"}
        return columns, truth or "JSON"

    def _item_cells(self, ids: list[str]) -> Iterator[Sequence[Any]]:
        """Yield the cells of these items; many responses in a row are often of few items, or in
        their order."""
        data = self._item_columns[0]
        nothing = [None] * (len(data) + 1)
        if self._items is None:
            yield from (nothing for _ in ids)
            return
        places = _item_places(self._items, ids).tolist()
        wanted = dict.fromkeys(place for place in places if place >= 0)
        found = {
            item.id: self._cells_of(item)
            for item in map(decode_item, self._tables.log("items").read_many(wanted))
        }
        yield from (found.get(id, nothing) for id in ids)

    def _cells_of(self, item: Item) -> list[Any]:
        data = self._item_columns[0]
        cells = [item.data] if DATA in data else [item.data.get(n[len(DATA) + 1 :]) for n in data]
        return [*cells, None if item.ground_truth is item.data else item.ground_truth]

    # ---- labels

    @cached_property
    def _labels(self) -> dict[str, _Label]:
        """Each label's values by the name of its column: with the scorer where several give a
        label of this name."""
        found: dict[tuple[str, str], _Label] = {}
        responses = Lookup(self._table.responses)
        logs = self._tables.logs("evaluations") if "evaluations" in self._tables else ()
        for block in _label_blocks(logs, "label", "scorer", "score", "passed", "outcome", "error"):
            numbers = np.where(block.alone, responses.first(block.responses), -1)
            self._unplaced += int((numbers < 0).sum())
            for number, label, scorer, *values in zip(numbers.tolist(), *block.values, strict=True):
                if number >= 0:
                    name = str(label or ""), str(scorer or "")
                    if name not in found:
                        found[name] = _Label(len(self._table))
                    found[name].add(number, *values)
        scorers = Counter(label for label, _ in found)
        return {
            f"{label} ({scorer})"
            if scorers[label] > 1 or label_and_scorer(label)[1]
            else label: values
            for (label, scorer), values in found.items()
        }

    @cached_property
    def _label_columns(self) -> dict[str, str]:
        columns: dict[str, str] = {}
        for name, label in self._labels.items():
            columns[f"{SCORE}.{name}"] = "DOUBLE"
            if label.passed.max(initial=_NEITHER) >= 0:
                columns[f"{PASSED}.{name}"] = "BOOLEAN"
            if label.outcome.max(initial=_NEITHER) > 0:
                columns[f"{OUTCOME}.{name}"] = "VARCHAR"
        return columns

    def _label_cells(self, rows: slice) -> Iterator[Sequence[Any]]:
        """Yield the cells of the labels' columns, response by response."""
        columns = self._label_columns
        if not columns:
            return repeat(())
        cells: list[list[Any]] = []
        for name, label in self._labels.items():
            scores = label.score[rows].tolist()
            cells.append([None if score != score else score for score in scores])  # NaN: none
            for kind, values, codes in (
                (PASSED, _VERDICTS, label.passed),
                (OUTCOME, _OUTCOMES, label.outcome),
            ):
                if f"{kind}.{name}" in columns:
                    cells.append(values[codes[rows]].tolist())
        return zip(*cells, strict=True)


def _with_fields_of_ours(row: JsonObject) -> JsonObject:
    fields = {**fitting(row, Response), "item_id": str(row.get("item_id") or "")}
    return {name: value for name, value in fields.items() if value is not None}


_response = row_decoder(Response, _with_fields_of_ours)
_encode = msgspec.json.Encoder().encode


def _widen(kinds: dict[str, str | None], data: JsonObject) -> None:
    """Let the types of keys hold these values too."""
    for name, value in data.items():
        kind = kinds.get(name)
        if kind != "VARCHAR" or type(value) is not str:
            kinds[name] = wider(kind, _encode(value))


def wider(before: str | None, value: bytes) -> str | None:
    """Return the type that holds this JSON value too; None while only null was seen."""
    first = value[:1]
    if first == b"n":
        return before
    if first in b"tf":
        kind = "BOOLEAN"
    elif first == b'"':
        kind = "VARCHAR"
    elif first in b"{[":
        kind = "JSON"
    elif set(value) & set(b".eE"):
        kind = "DOUBLE"
    else:
        kind = "BIGINT" if len(value) <= 18 else "JSON"
    if before in (None, kind):
        return kind
    return "DOUBLE" if {before, kind} == {"BIGINT", "DOUBLE"} else "JSON"


def label_and_scorer(name: str) -> tuple[str, str]:
    """Return what a column's `label (scorer)` names; the scorer is empty for one that has no
    brackets at its end."""
    depth = 0
    for at in range(len(name) - 1, 0, -1) if name.endswith(")") else ():
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            return (name[: at - 1], name[at + 1 : -1]) if name[at - 1] == " " else (name, "")
    return name, ""
