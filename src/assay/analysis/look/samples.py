"""The table `samples`: one row for each response, with its item's data, the expected answer and all of its labels.

Nothing is stored: it is joined as it is read. Memory holds 16 bytes for a response and 10 for each of its labels.
"""

from array import array
from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from assay.engine.aggregate.fields import read_columns
from assay.engine.aggregate.join import response_key
from assay.records import OUTCOMES, Response, tolerant_json
from assay.store.index import ItemIndex
from assay.store.items import normalise

if TYPE_CHECKING:
    from assay.analysis.look.export import Tables

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
DATA, TRUTH, SCORE, PASSED, OUTCOME = "data", "ground_truth", "score", "passed", "outcome"
_MOST_KEYS = 200  # keys of items that are columns; beyond, the data are one
_NEITHER = -1
_PLACE = ("item_id", "sample_index", "model_name")
_LABEL = ("responses", "label", "scorer", "score", "passed", "outcome", "error", *_PLACE)


class _Label(NamedTuple):
    """The values of one label, by the numbers of responses."""

    score: npt.NDArray[np.float64]
    passed: npt.NDArray[np.int8]
    outcome: npt.NDArray[np.int8]


class SamplesTable:
    """The responses of an experiment, each with what belongs to it."""

    def __init__(self, tables: "Tables") -> None:
        self._tables = tables
        self._items = ItemIndex(tables.log("items")) if "items" in tables else None

    def columns(self) -> dict[str, str]:
        return {**FRONT, **self._data, TRUTH: self._truth, **BACK, **self._label_columns}

    def cells(self) -> Iterator[list[Any]]:
        """The rows as lists, in the order of the columns."""
        names = list(self.columns())
        places = {name: at for at, name in enumerate(names)}
        data = [(places[name], name[len(DATA) + 1 :]) for name in self._data if name != DATA]
        get_item = self._items.get if self._items is not None else lambda _: None
        labels, nothing = self._cells(), [None] * (len(names) - len(FRONT) - len(BACK))
        front, back = attrgetter(*FRONT), attrgetter(*BACK)
        middle = len(self._data) + 1
        for number, response in enumerate(self._responses()):
            row = [*front(response), *nothing[:middle], *back(response), *nothing[middle:]]
            item = get_item(response.item_id)
            if item is not None:
                if data:
                    for at, name in data:
                        row[at] = item.data.get(name)
                else:
                    row[places[DATA]] = item.data
                if item.ground_truth is not item.data:
                    row[places[TRUTH]] = item.ground_truth
            for name, value in labels(number):
                row[places[name]] = value
            yield row

    def rows(self) -> Iterator[dict[str, Any]]:
        names = list(self.columns())
        return (dict(zip(names, cells, strict=True)) for cells in self.cells())

    def _responses(self) -> Iterator[Response]:
        decode = msgspec.json.Decoder(Response).decode_lines
        for log in self._tables.logs("responses"):
            for block in log.blocks():
                try:
                    yield from decode(block)
                except (ValueError, RecursionError):
                    lines = (line for line in block.split(b"\n") if line.strip())
                    yield from (msgspec.convert(tolerant_json(line), Response) for line in lines)

    # ---- items

    @cached_property
    def _kinds(self) -> tuple[dict[str, str], str]:
        """The columns of the items' data, and the type of their ground truth."""
        from assay.analysis.look.export import wider

        keys: dict[str, str | None] = {}
        whole, truth = False, None
        for item in self._items if self._items is not None else ():
            if item.ground_truth is not item.data:
                truth = wider(truth, msgspec.json.encode(item.ground_truth))
            if whole or not isinstance(item.data, dict) or len(keys) > _MOST_KEYS:
                whole = True
                continue
            for name, value in cast("dict[str, Any]", item.data).items():
                keys[name] = wider(keys.get(name), msgspec.json.encode(value))
        if whole or not keys:
            return {DATA: "JSON"}, truth or "JSON"
        return {f"{DATA}.{name}": kind or "JSON" for name, kind in keys.items()}, truth or "JSON"

    @property
    def _data(self) -> dict[str, str]:
        return self._kinds[0]

    @property
    def _truth(self) -> str:
        return self._kinds[1]

    # ---- labels

    @cached_property
    def _labels(self) -> dict[str, _Label]:
        """Each label's values: the first one for a response counts, those of several responses none."""
        if "evaluations" not in self._tables:
            return {}
        responses = self._keys()
        order = np.argsort(responses, kind="stable")
        ordered = responses[order]
        found: dict[tuple[str, str], _Label] = {}
        for columns, _ in read_columns(self._tables.logs("evaluations"), "evaluation rows", _LABEL, ()):
            places = zip(columns[0], *columns[-3:], strict=True)
            keys = [response_key(_first(behind), (item, sample, model or "")) for behind, item, sample, model in places]
            sought = np.array(keys, np.uint64)
            at = np.minimum(np.searchsorted(ordered, sought), max(len(ordered) - 1, 0))
            numbers = np.where(ordered[at] == sought, order[at], _NEITHER).tolist() if len(ordered) else []
            for number, (behind, label, scorer, *values) in zip(numbers, zip(*columns, strict=True), strict=False):
                if number >= 0 and not (isinstance(behind, list) and len(behind) > 1):
                    name = str(label or ""), str(scorer or "")
                    if name not in found:
                        found[name] = _empty(len(responses))
                    _fill(found[name], number, *values[:4])
        return _named(found)

    def _keys(self) -> npt.NDArray[np.uint64]:
        """The engine's key of each response."""
        keys = array("Q")
        for (key, *place), _ in read_columns(self._tables.logs("responses"), "responses", ("key", *_PLACE), ()):
            rows = zip(key, *place, strict=True)
            keys.extend(response_key(own, (item, sample, model or "")) for own, item, sample, model in rows)
        return np.frombuffer(keys, np.uint64) if keys else np.zeros(0, np.uint64)

    @property
    def _label_columns(self) -> dict[str, str]:
        columns: dict[str, str] = {}
        for name, label in self._labels.items():
            columns[f"{SCORE}.{name}"] = "DOUBLE"
            if (label.passed >= 0).any():
                columns[f"{PASSED}.{name}"] = "BOOLEAN"
            if (label.outcome > 0).any():
                columns[f"{OUTCOME}.{name}"] = "VARCHAR"
        return columns

    def _cells(self) -> Any:
        """A function that gives the (column, value) pairs of a response."""
        columns = self._label_columns
        parts = [
            (
                f"{SCORE}.{name}",
                f"{PASSED}.{name}",
                f"{OUTCOME}.{name}",
                f"{OUTCOME}.{name}" in columns,
                *map(memoryview, cast("Any", label)),
            )
            for name, label in self._labels.items()
        ]

        def cells(number: int) -> Iterator[tuple[str, Any]]:
            for score, passed, outcome, shown, scores, verdicts, outcomes in parts:
                code = outcomes[number]
                if code < 0:
                    continue
                value = scores[number]
                if value == value:  # not NaN: there is one
                    yield score, value
                if verdicts[number] >= 0:
                    yield passed, bool(verdicts[number])
                if shown:
                    yield outcome, OUTCOMES[code]

        return cells


def _first(responses: Any) -> Any:
    return responses[0] if isinstance(responses, list) and responses else None


def _empty(count: int) -> _Label:
    codes = np.full((2, count), _NEITHER, np.int8)
    return _Label(np.full(count, np.nan), codes[0], codes[1])


def _fill(label: _Label, number: int, score: Any, passed: Any, outcome: Any, error: Any) -> None:
    if label.outcome[number] >= 0:
        return
    if outcome not in OUTCOMES:
        outcome = "errored" if error or (passed is None and score is None) else "scored"
    label.outcome[number] = OUTCOMES.index(outcome)
    if isinstance(score, (int, float)):
        label.score[number] = score
    if passed is not None:
        label.passed[number] = bool(passed)


def _named(labels: dict[tuple[str, str], _Label]) -> dict[str, _Label]:
    """By the names of their columns: with the scorer where several give a label of this name."""
    several = [label for label, _ in labels]
    return {
        f"{label} ({scorer})" if several.count(label) > 1 or label_and_scorer(label)[1] else label: values
        for (label, scorer), values in labels.items()
    }


def label_and_scorer(name: str) -> tuple[str, str]:
    """What a column's `label (scorer)` names; the scorer is empty for one that has no brackets at its end."""
    depth = 0
    for at in range(len(name) - 1, 0, -1) if name.endswith(")") else ():
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            return (name[: at - 1], name[at + 1 : -1]) if name[at - 1] == " " else (name, "")
    return name, ""


def item_of(data: Any, truth: Any, item_id: str) -> dict[str, Any]:
    """The item of a sample's row; without an id it has that of its content."""
    row: dict[str, Any] = {"id": item_id, "data": data}
    if truth is not None:
        row[TRUTH] = truth
    if not item_id:
        row["id"] = normalise(row).id
    return row
