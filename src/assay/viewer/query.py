"""Samples of one or several experiments: chosen, sorted and counted by their columns. Items are joined by their ids."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from assay.errors import AssayError, UserError
from assay.interfaces import FloatArray, IntArray, Mask
from assay.records import OUTCOMES
from assay.registry import nearest
from assay.store.table.facets import text_of
from assay.viewer.experiments import Experiments
from assay.viewer.index.decode import RESPONSE_OUTCOMES
from assay.viewer.index.index import Index
from assay.viewer.index.opening import open_index
from assay.viewer.index.search import found_by
from assay.viewer.tags import tagged, tags_of

Rows = IntArray
MOST_ROWS = 500
_MOST_SHOWN = 100  # values of a facet
_MOST_LABELS = 1000
_MOST_VIEWS = 4


class SamplesQuery(msgspec.Struct, kw_only=True):
    """What can be asked of samples. Values of one field are alternatives; fields, and facets of `where`, must
    all hold."""

    experiment: list[str] = []
    label: str = ""
    search: str = ""
    regex: bool = False
    outcome: list[str] = []
    passed: Literal["passed", "failed", ""] = ""
    low: float | None = None
    high: float | None = None
    where: list[str] = []
    tag: list[str] = []
    only: Literal["disagree", "failed_by_all", "passed_by_one", ""] = ""
    sort: Literal["order", "disagreement", "length", "latency", "score", "item"] = "order"
    descending: bool = False
    offset: int = 0
    limit: int = 50


class View:
    """The indexes of some experiments side by side, under a label. `task` is a place in `columns`, `item` a number that
    equal ids share; rows are numbered through all experiments, `starts` has the first of each."""

    def __init__(self, parts: Sequence[tuple[str, Index]], label: str = "") -> None:
        self.parts = parts
        self.labels = list(dict.fromkeys(name for _, index in parts for name in index.labels()))
        if label and label not in self.labels:
            raise UserError(f"there is no label {label!r}", fix=nearest(label, self.labels))
        self.label = label or next(iter(self.labels), "")
        self.starts = np.cumsum([0, *(len(index) for _, index in parts)])
        self.columns = [
            (id, task) for id, index in parts for task in index.coded.tasks or index.coded.models
        ]
        hashes = [index.arrays["item.hash"] for _, index in parts]
        if len(parts) == 1:
            self.numbers = [np.arange(len(hashes[0]))]
        else:
            _, inverse = np.unique(
                np.concatenate([np.zeros(0, np.uint64), *hashes]), return_inverse=True
            )
            self.numbers = (
                np.split(inverse, np.cumsum([len(each) for each in hashes])[:-1]) if hashes else []
            )
        self.items = 1 + max((int(each.max(initial=-1)) for each in self.numbers), default=-1)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def column(self, name: str) -> npt.NDArray[Any]:
        """A column of the responses, of all experiments."""
        own = [index.arrays[f"response.{name}"] for _, index in self.parts]
        return own[0] if len(own) == 1 else np.concatenate([np.zeros(0, np.int32), *own])

    @cached_property
    def item(self) -> Rows:
        parts = zip(self.parts, self.numbers, strict=True)
        own = [numbers[index.arrays["response.item"]] for (_, index), numbers in parts]
        return np.concatenate([np.zeros(0, np.int64), *own])

    @cached_property
    def task(self) -> Rows:
        before, own = 0, [np.zeros(0, np.int64)]
        for _, index in self.parts:
            own.append(index.arrays["response.task"].astype(np.int64) + before)
            before += len(index.coded.tasks or index.coded.models)
        return np.concatenate(own)

    @cached_property
    def verdicts(
        self,
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], FloatArray]:
        """Outcome, passed and score of every row under the label: see `Index.verdicts`."""
        own = [index.verdicts(self.label) for _, index in self.parts]
        empty = np.zeros(0, np.int8), np.zeros(0, np.int8), np.zeros(0)
        outcome, passed, score = (
            np.concatenate(columns) for columns in zip(empty, *own, strict=True)
        )
        return outcome, passed, score

    @cached_property
    def _by_task(self) -> tuple[Rows, FloatArray, Mask, Mask]:
        """Return of each item and task with scored samples the item, the mean score, whether
        samples have verdicts, and whether one passed."""
        _, passed, score = self.verdicts
        rows = np.flatnonzero(~np.isnan(score))
        cells, inverse, counts = np.unique(
            self.item[rows] * max(1, len(self.columns)) + self.task[rows],
            return_inverse=True,
            return_counts=True,
        )
        means = np.bincount(inverse, weights=score[rows], minlength=len(cells)) / counts
        judged, won = (
            np.bincount(inverse, weights=passed[rows] >= least, minlength=len(cells)) > 0
            for least in (0, 1)
        )
        return cells // max(1, len(self.columns)), np.round(means, 12), judged, won

    @cached_property
    def disagreement(self) -> FloatArray:
        """By item: the largest difference of two tasks' mean scores, at most 1."""
        items, means, *_ = self._by_task
        high, low = np.full(self.items, -np.inf), np.full(self.items, np.inf)
        np.maximum.at(high, items, means)
        np.minimum.at(low, items, means)
        there = np.isfinite(high)
        return np.subtract(high, low, out=np.zeros(self.items), where=there).clip(0, 1)

    def only(self, name: str) -> Mask:
        """The items of a kind, by number."""
        if name == "disagree":
            return self.disagreement > 0
        items, _, judged, won = self._by_task
        tasks, passes = (
            np.bincount(items[judged], minlength=self.items),
            np.bincount(items[won], minlength=self.items),
        )
        return (tasks > 0) & (passes == 0) if name == "failed_by_all" else passes == 1

    def place(self, row: int) -> tuple[str, Index, int]:
        """The experiment of a row, its index, and the row's number there."""
        part = int(np.searchsorted(self.starts, row, side="right")) - 1
        return *self.parts[part], int(row - self.starts[part])

    def outcomes(self, names: Sequence[str]) -> Mask:
        """Rows whose label, or response where nothing judged it, has one of these outcomes."""
        judged = self.verdicts[0]
        by_label = np.array([name in names for name in (*OUTCOMES, "")])
        by_response = np.array([name in names for name in RESPONSE_OUTCOMES])
        return np.where(judged >= 0, by_label[judged], by_response[self.column("outcome")])

    @cached_property
    def ranks(self) -> IntArray:
        """By item: its place among all ids."""
        ids: list[str] = [""] * self.items
        for (_, index), numbers in zip(self.parts, self.numbers, strict=True):
            for number, id in zip(numbers.tolist(), index.item_ids(), strict=True):
                ids[number] = id
        ranks = np.empty(self.items, np.int64)
        ranks[sorted(range(self.items), key=ids.__getitem__)] = np.arange(self.items)
        return ranks


def view(
    experiments: Experiments, ids: Sequence[str], label: str, *, wait: bool = False
) -> tuple[View, float | None]:
    """The samples of these experiments, or of all that have any, and the share of them that is indexed."""
    parts: list[tuple[str, Index]] = []
    shares: list[float] = []
    for id in ids or experiments.list():
        try:
            index, share = open_index(experiments, id, wait=wait)
        except AssayError:
            if ids:
                raise
            continue
        parts.append((id, index))
        shares.append(1.0 if share is None else share)
    share = None if all(share == 1 for share in shares) else min(shares)
    key = ("view", label, *((id, index.made) for id, index in parts))
    return experiments.cached(key, (), lambda: View(parts, label), _MOST_VIEWS), share


# ---- facets


def facets_of(view: View) -> dict[str, list[str]]:
    """What one can filter by: the values of each facet. One that nearly every item has another value of is none."""
    values: dict[str, dict[str, None]] = {"task": {}, "model_name": {}}
    for _, index in view.parts:
        coded = index.coded
        layers: list[dict[str, list[str]]] = [
            {"task": coded.tasks, "model_name": index.models},
            coded.facets,
        ]
        layers += [
            {name: [text_of(value)] for name, value in _scalars(task)}
            for task in index.plan[1].values()
        ]
        items = len(index.arrays["item.hash"])
        shared = {
            name: texts
            for name, texts in coded.item_facets.items()
            if 2 * len(texts) <= max(items, 10)
        }
        for layer in (*layers, shared):
            for name, texts in layer.items():
                values.setdefault(name, {}).update(dict.fromkeys(texts))
    return {name: sorted(texts)[:_MOST_SHOWN] for name, texts in values.items() if texts}


def _scalars(facets: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in facets.items()
        if isinstance(value, (str, int, float, bool))
    ]


def layers_of(index: Index, name: str) -> list[tuple[npt.NDArray[Any], list[str]]]:
    """Where a facet may be found, first choice first: for every row a code, -1 for none, and what codes stand for."""
    arrays, coded, task = index.arrays, index.coded, index.arrays["response.task"]
    if name in ("task", "model_name"):
        texts = coded.models if name == "model_name" or index.judged else coded.tasks
        return [(arrays["response.model" if name == "model_name" else "response.task"], texts)]
    layers: list[tuple[npt.NDArray[Any], list[str]]] = []
    if name in coded.facets:
        layers.append((arrays[f"facet:{name}"], coded.facets[name]))
    planned = {of: dict(_scalars(facets)) for of, facets in index.plan[1].items()}
    if any(name in facets for facets in planned.values()):
        texts = sorted({text_of(facets[name]) for facets in planned.values() if name in facets})
        codes = [
            texts.index(text_of(planned[of][name])) if name in planned.get(of, {}) else -1
            for of in coded.tasks
        ]
        layers.append((np.array([*codes, -1], np.int32)[task], texts))
    if name in coded.item_facets:
        layers.append(
            (arrays[f"item_facet:{name}"][arrays["response.item"]], coded.item_facets[name])
        )
    return layers


def _where(view: View, conditions: Sequence[str]) -> Mask:
    wanted: dict[str, set[str]] = {}
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise UserError(
                f"a filter is facet=value, got {condition!r}", fix="correct the address"
            )
        wanted.setdefault(name, set()).add(value)
    chosen = np.ones(len(view), np.bool_)
    for name, values in wanted.items():
        known = False
        for (_, index), start, stop in zip(view.parts, view.starts, view.starts[1:], strict=False):
            layers = layers_of(index, name) or layers_of(index, name.removeprefix("metadata."))
            known |= bool(layers)
            hit, absent = np.zeros(len(index), np.bool_), np.ones(len(index), np.bool_)
            for codes, texts in layers:
                hit |= absent & np.array([*(text in values for text in texts), False])[codes]
                absent &= codes < 0
            chosen[start:stop] &= hit | absent if "null" in values else hit
        if not known:
            raise UserError(f"there is no facet {name!r}", fix=nearest(name, facets_of(view)))
    return chosen


# ---- choosing and sorting


def chosen(experiments: Experiments, view: View, query: SamplesQuery) -> Rows:
    """The rows that match, in their order."""
    _, passed, score = view.verdicts
    mask = _where(view, query.where)
    if query.outcome:
        mask &= view.outcomes(query.outcome)
    if query.passed:
        mask &= passed == (query.passed == "passed")
    if query.low is not None:
        mask &= score >= query.low
    if query.high is not None:
        mask &= score <= query.high
    if query.only:
        mask &= view.only(query.only)[view.item]
    if query.tag:
        mask &= np.concatenate(
            [tagged(experiments, id, index, query.tag) for id, index in view.parts]
        )
    if query.search:
        mask &= np.concatenate(
            [found_by(index, query.search, regex=query.regex) for _, index in view.parts]
        )
    return np.flatnonzero(mask)


def sort(view: View, rows: Rows, query: SamplesQuery) -> Rows:
    """Stable; rows without the value come last."""
    if query.sort == "order":
        return rows[::-1] if query.descending else rows
    if query.sort == "disagreement":
        values = view.disagreement[view.item[rows]]
    elif query.sort == "item":
        values = view.ranks[view.item[rows]].astype(np.float64)
    else:
        column = view.verdicts[2] if query.sort == "score" else view.column(query.sort)
        values = column[rows].astype(np.float64)
    return rows[np.argsort(-values if query.descending else values, kind="stable")]


def page_of(query: SamplesQuery) -> slice:
    """The part of the rows that is asked for."""
    if query.limit > MOST_ROWS or query.limit < 0 or query.offset < 0:
        raise UserError(f"a page has at most {MOST_ROWS} rows from 0 on", fix=f"limit={MOST_ROWS}")
    return slice(query.offset, query.offset + query.limit)


def about(experiments: Experiments, view: View, share: float | None) -> dict[str, Any]:
    """What pages of samples say about all of them."""
    tags = {
        tag for id, _ in view.parts for record in tags_of(experiments, id) for tag in record.tags
    }
    return {
        "all": len(view),
        "label": view.label,
        "labels": view.labels[:_MOST_LABELS],
        "facets": facets_of(view),
        "tags": sorted(tags),
        "indexed": share,
        "left_out": sum(index.coded.left_out for _, index in view.parts),
    }
