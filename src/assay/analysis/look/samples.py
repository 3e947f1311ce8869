"""The table `samples`: one row for each response, with its item's data, the expected answer and all of its labels.

Nothing is stored: it is joined as it is read. Memory holds 16 bytes for a response and 10 for each of its labels.
"""

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import Hashes
from assay.records import OUTCOMES, Item, Response, decode_json
from assay.store.index import ItemIndex, id_number
from assay.store.items import normalise
from assay.store.keyset import Seen
from assay.store.table.columns import read_columns
from assay.store.table.join import response_key

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
_MANY = 64  # more items than an index remembers
_PLACE = ("item_id", "sample_index", "model_name")
_LABEL = ("responses", "label", "scorer", "score", "passed", "outcome", "error", *_PLACE)


class _Label(NamedTuple):
    """The values of one label, by the numbers of responses."""

    score: "array[float]"
    passed: "array[int]"
    outcome: "array[int]"


class SamplesTable:
    """The responses of an experiment, each with what belongs to it."""

    def __init__(self, tables: "Tables") -> None:
        self._tables = tables
        self._items = ItemIndex(tables.log("items")) if "items" in tables else None
        self._unplaced = 0

    def columns(self) -> dict[str, str]:
        return {**FRONT, **self._data, TRUTH: self._truth, **BACK, **self._label_columns}

    def cells(self) -> Iterator[list[Any]]:
        """The rows as lists, in the order of the columns."""
        names, whole = [name[len(DATA) + 1 :] for name in self._data], DATA in self._data
        nothing: list[Any] = [None] * (len(names) + 1)
        front, back = attrgetter(*FRONT), attrgetter(*BACK)
        last, item = None, nothing
        find = self._finder()
        unlabelled = [None] * len(self._label_columns)
        for response, labels in zip(
            self._responses(), chain(self._label_cells(), repeat(unlabelled)), strict=False
        ):
            if response.item_id != last:
                last, found = response.item_id, find(response.item_id)
                item = nothing
                if found is not None:
                    data = [found.data] if whole else map(found.data.get, names)
                    item = [*data, None if found.ground_truth is found.data else found.ground_truth]
            yield [*front(response), *item, *back(response), *labels]

    def rows(self) -> Iterator[dict[str, Any]]:
        names = list(self.columns())
        return (dict(zip(names, cells, strict=True)) for cells in self.cells())

    def left_out(self) -> dict[str, int]:
        """Count the items without an answer, and of the labels that were read those of several answers or of none."""
        answered = Seen()
        for (ids,), *_ in read_columns(
            self._tables.logs("responses"), "responses", ("item_id",), ()
        ):
            for id in ids:
                answered.add(id_number(str(id)))
        items = self._items if self._items is not None else ()
        unanswered = sum(id_number(item.id) not in answered for item in items)
        return {"items": unanswered, "evaluations": self._unplaced}

    def _responses(self) -> Iterator[Response]:
        decode = msgspec.json.Decoder(Response).decode_lines
        for log in self._tables.logs("responses"):
            for block in log.blocks():
                try:
                    yield from decode(block)
                except (ValueError, RecursionError):
                    lines = (line for line in block.split(b"\n") if line.strip())
                    yield from (msgspec.convert(decode_json(line), Response) for line in lines)

    # ---- items

    def _finder(self) -> Callable[[str], Item | None]:
        """Finds items by id, the next one of the file first: responses are often in the order of the items."""
        items = self._items
        if items is None:
            return lambda _: None
        following = iter(items)
        ahead = next(following, None)

        def find(id: str) -> Item | None:
            nonlocal ahead, following
            if ahead is None or ahead.id != id:
                return items.get(id)
            found, ahead = ahead, next(following, None)
            # those of the next model may be in the same order
            if ahead is None and len(items) > _MANY:
                following = iter(items)
                ahead = next(following, None)
            return found

        return find

    @cached_property
    def _kinds(self) -> tuple[dict[str, str], str]:
        """The columns of the items' data, and the type of their ground truth."""
        from assay.analysis.look.export import wider

        keys: dict[str, str | None] = {}
        whole, truth = False, None
        encode = msgspec.json.Encoder().encode
        for item in self._items if self._items is not None else ():
            if item.ground_truth is not item.data:
                truth = wider(truth, encode(item.ground_truth))
            if whole or not isinstance(item.data, dict) or len(keys) > _MOST_KEYS:
                whole = True
                continue
            for name, value in cast("dict[str, Any]", item.data).items():
                kind = keys.get(name)
                if kind != "VARCHAR" or type(value) is not str:
                    keys[name] = wider(kind, encode(value))
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
        for columns, *_ in read_columns(
            self._tables.logs("evaluations"), "evaluation rows", _LABEL, ()
        ):
            sought = _numbers(list(map(_first, columns[0])), columns[-3:])
            numbers = _positions(ordered, order, sought)
            for number, (behind, label, scorer, *values) in zip(
                numbers, zip(*columns, strict=True), strict=False
            ):
                if number >= 0 and not (isinstance(behind, list) and len(behind) > 1):
                    name = str(label or ""), str(scorer or "")
                    if name not in found:
                        found[name] = _empty(len(responses))
                    _fill(found[name], number, *values[:4])
                else:
                    self._unplaced += 1
        return _named(found)

    def _keys(self) -> Hashes:
        """The engine's key of each response."""
        keys = array("Q")
        for (key, *place), *_ in read_columns(
            self._tables.logs("responses"), "responses", ("key", *_PLACE), ()
        ):
            keys.frombytes(_numbers(key, place).tobytes())
        return np.frombuffer(keys, np.uint64) if keys else np.zeros(0, np.uint64)

    @cached_property
    def _label_columns(self) -> dict[str, str]:
        columns: dict[str, str] = {}
        for name, label in self._labels.items():
            columns[f"{SCORE}.{name}"] = "DOUBLE"
            if max(label.passed, default=_NEITHER) >= 0:
                columns[f"{PASSED}.{name}"] = "BOOLEAN"
            if max(label.outcome, default=_NEITHER) > 0:
                columns[f"{OUTCOME}.{name}"] = "VARCHAR"
        return columns

    def _label_cells(self) -> Iterator[Sequence[Any]]:
        """The cells of the labels' columns, response by response."""
        columns, labels = self._label_columns, self._labels
        count = max((len(label.score) for label in labels.values()), default=0)
        for start in range(0, count, _BATCH):
            cells: list[list[Any]] = []
            for name, label in labels.items():
                score, passed, outcome = (
                    np.asarray(part[start : start + _BATCH]) for part in label
                )
                # NaN: there is none
                cells.append([value if value == value else None for value in score.tolist()])
                for kind, values, codes in (
                    (PASSED, _VERDICTS, passed),
                    (OUTCOME, _OUTCOMES, outcome),
                ):
                    if f"{kind}.{name}" in columns:
                        cells.append(values[codes].tolist())
            yield from zip(*cells, strict=True)


def _positions(ordered: Hashes, order: npt.NDArray[np.intp], sought: Hashes) -> list[int]:
    """Return where each of these keys is in the rows, whose keys are given in order with their positions."""
    if not len(ordered):
        return []
    at = np.minimum(np.searchsorted(ordered, sought), len(ordered) - 1)
    return np.where(ordered[at] == sought, order[at], _NEITHER).tolist()


def _numbers(keys: Sequence[Any], places: Sequence[Sequence[Any]]) -> Hashes:
    """The engine's keys of many rows (see `response_key`), at once where all are as the engine writes them."""
    try:
        digits = "".join([key[:16] for key in keys])
        found = np.frombuffer(bytes.fromhex(digits), ">u8").astype(np.uint64)
        if len(found) == len(keys) and len(digits) == 16 * len(keys):
            return found
    except (TypeError, ValueError):
        pass
    rows = zip(keys, *places, strict=True)
    return np.array(
        [response_key(key, (item, sample, model or "")) for key, item, sample, model in rows],
        np.uint64,
    )


def _first(responses: Any) -> Any:
    return responses[0] if isinstance(responses, list) and responses else None


def _empty(count: int) -> _Label:
    return _Label(
        array("d", [math.nan]) * count,
        array("b", [_NEITHER]) * count,
        array("b", [_NEITHER]) * count,
    )


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
        f"{label} ({scorer})"
        if several.count(label) > 1 or label_and_scorer(label)[1]
        else label: values
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
