"""The samples of some experiments side by side: their columns by row. Items are joined by their ids."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from assay.sdk import OUTCOMES, Codes, FloatArray, IntArray, JsonObject, UserError, nearest
from assay.store.table.join import distinct, group_rows
from assay.viewer.index.columns import Column
from assay.viewer.index.index import Index
from assay.viewer.index.packed import Numbers
from assay.viewer.index.series import Verdicts

NAMED = {"task": "task", "model_name": "model"}  # facets that are columns
# where texts may be found, first choice first: their numbers in every row, -1 for none, and the texts
Layers = list[tuple[Codes, Iterable[str]]]


class Part(msgspec.Struct, frozen=True):
    """The samples of one experiment, and which rows of a view they are."""

    id: str
    index: Index
    rows: slice


class View:
    """The samples of some experiments side by side, under a label."""

    def __init__(self, parts: Sequence[tuple[str, Index]], label: str = "") -> None:
        self.labels = list(dict.fromkeys(name for _, index in parts for name in labels_of(index)))
        if label and label not in self.labels:
            raise UserError(f"there is no label {label!r}", fix=nearest(label, self.labels))
        self.label = label or next(iter(self.labels), "")
        self.starts = [*accumulate((len(index) for _, index in parts), initial=0)]
        rows = map(slice, self.starts, self.starts[1:])
        self.parts = [Part(*part, own) for part, own in zip(parts, rows, strict=True)]
        self.name = self.label, *((id, index.made) for id, index in parts)

    def __len__(self) -> int:
        return self.starts[-1]

    def under(self, label: str) -> "View":
        return View([(part.id, part.index) for part in self.parts], label)

    def place(self, row: int) -> tuple[Part, int]:
        part = self.parts[bisect_right(self.starts, row) - 1]
        return part, row - part.rows.start

    def _joined(self, column: Callable[[Index], Numbers]) -> Numbers:
        own = [column(part.index) for part in self.parts]
        return own[0] if len(own) == 1 else np.concatenate([np.zeros(0, np.int8), *own])

    def packed(self, name: str) -> Numbers:
        return self._joined(lambda index: index.column("response", name))

    @cached_property
    def verdicts(self) -> Verdicts:
        own = [part.index.verdicts(self.label) for part in self.parts]
        none = Verdicts(np.zeros(0, np.int8), np.zeros(0, np.int8), np.zeros(0))
        return Verdicts(*map(np.concatenate, zip(none, *own, strict=True)))

    def numbers(self, column: Column, rows: IntArray | slice = slice(None)) -> FloatArray:
        """Return the values of a column of numbers, of all rows or some; NaN for none."""
        if column.about == "item":
            return self.kinds[column.name][self.item[rows]]
        if column.sql:
            values = self._joined(lambda index: index.values(column.sql))
        elif column.about == "label":
            values = getattr(self.verdicts, column.name)
        else:
            values = self.packed(column.name)
        values = values[rows]
        is_missing = np.isinf(values) if values.dtype.kind == "f" else values < 0
        return np.where(is_missing, np.nan, values)

    def texts(self, *columns: Column) -> tuple[Codes, list[str]]:
        """Return the numbers of the texts of columns, the first that has one, and the texts."""
        return self._coded([[*map(partial(self._layer, part), columns)] for part in self.parts])

    def _layer(self, part: Part, column: Column) -> tuple[Codes, Iterable[str]]:
        if column.about == "label":
            return self.verdicts.outcome[part.rows], OUTCOMES
        return part.index.texts(column)

    def facet(self, name: str) -> tuple[Codes, list[str]] | None:
        """Return the values of a facet as `texts` does; None if there is no such facet."""
        layers = [layers_of(part.index, name) for part in self.parts]
        return self._coded(layers) if any(layers) else None

    def _coded(self, layers: list[Layers]) -> tuple[Codes, list[str]]:
        if [*map(len, layers)] == [1]:
            ((codes, known),) = layers[0]
            return codes, list(known)
        texts: dict[str, int] = {}
        whole = np.full(len(self), -1, np.int32)
        for part, found in zip(self.parts, layers, strict=True):
            own = whole[part.rows]
            for codes, known in found:
                numbers = [*(texts.setdefault(text, len(texts)) for text in known), -1]
                np.copyto(own, np.array(numbers, np.int32)[codes], where=own < 0)
        return whole, list(texts)

    # ---- items

    @cached_property
    def items(self) -> tuple[IntArray, Codes]:
        """The first row of each item, and the item of each row."""
        return distinct(self.packed("item"))[1:]

    @property
    def item(self) -> Codes:
        return self.items[1]

    @cached_property
    def tasks(self) -> tuple[Codes, list[tuple[str, str]]]:
        """The task of each row, and the tasks: an experiment, and a name there."""
        names, codes = list[tuple[str, str]](), [np.zeros(0, np.int32)]
        for part in self.parts:
            codes.append(part.index.column("response", "task") + len(names))
            names += [(part.id, name) for name in part.index.state.texts.get("task", ())]
        return np.concatenate(codes), names

    @cached_property
    def kinds(self) -> dict[str, FloatArray]:
        """What is known of items across the experiments: the largest difference of two tasks' mean
        scores, and the kinds that follow from the tasks that have verdicts, and those of which a
        sample passed."""
        items = len(self.items[0])
        _, passed, score = self.verdicts
        rows = np.flatnonzero(~np.isnan(score))
        cells = group_rows(self.item[rows], self.tasks[0][rows])
        item = self.item[rows][cells.first]
        means = np.bincount(cells.of_row, weights=score[rows]) / np.bincount(cells.of_row)
        best = np.full(len(cells), -1, np.int8)
        np.maximum.at(best, cells.of_row, passed[rows])
        judged, won = (np.bincount(item, best >= least, items) for least in (0, 1))
        differs = _differences(np.round(means, 12), item, items)
        kinds = {
            "disagreement": differs,
            "disagree": differs > 0,
            "failed_by_all": (judged > 0) & (won == 0),
            "passed_by_one": won == 1,
        }
        return {name: values.astype(np.float64) for name, values in kinds.items()}

    # ---- values of rows

    def values(self, columns: Sequence[Column], rows: IntArray) -> list[JsonObject]:
        """Return what pages show of some rows in these columns."""
        found = [map(column.json, self._values(column, rows)) for column in columns]
        names = [column.name for column in columns]
        return [dict(zip(names, own, strict=True)) for own in zip(*found, strict=True)]

    def _values(self, column: Column, rows: IntArray) -> list[Any]:
        if column.about == "response":
            found = np.empty(len(rows), object)
            for part in self.parts:
                at = np.flatnonzero((rows >= part.rows.start) & (rows < part.rows.stop))
                own = (rows[at] - part.rows.start).tolist()
                found[at] = part.index.responses(own, column.expression)
            return found.tolist()
        if column.type == "TEXT":
            return texts_at(*self.texts(column), rows)
        values = self.numbers(column, rows).tolist()
        return [None if value != value else value for value in values]


def _differences(values: FloatArray, group: Codes, groups: int) -> FloatArray:
    """Return the largest difference of two values of each group, at most 1."""
    high, low = np.full(groups, -np.inf), np.full(groups, np.inf)
    np.maximum.at(high, group, values)
    np.minimum.at(low, group, values)
    return np.where(np.isfinite(high), np.clip(high - low, 0, 1), 0)


def texts_at(codes: Codes, texts: Sequence[str], rows: IntArray) -> list[str | None]:
    """Return the texts of some rows."""
    return [None if code < 0 else str(texts[code]) for code in codes[rows].tolist()]


def labels_of(index: Index) -> list[str]:
    """Return the labels of answers in the order of the scorers' plan, then of the rows."""
    order = {scorer: number for number, scorer in enumerate(index.plan[0])}
    return sorted(
        index.labels, key=lambda name: order.get(index.labels[name].scorers[0], len(order))
    )


def layers_of(index: Index, name: str) -> Layers:
    """Return where a facet is found; nothing if it is not."""
    return _layers(index, name) or _layers(index, name.removeprefix("metadata."))


def _layers(index: Index, name: str) -> Layers:
    state, layers = index.state, Layers()
    if name in NAMED:
        column = NAMED[name]
        return [(index.column("response", column), state.texts.get(column, ()))]
    if name in state.facets.values:
        layers.append((index.column("response", f"facet {name}"), state.facets.values[name]))
    layers += _planned(index, name)
    if name in state.items.values:
        own = np.append(index.column("item", f"facet {name}"), -1)
        layers.append((own[index.item_rows], state.items.values[name]))
    return layers


def _planned(index: Index, name: str) -> Layers:
    """Return the facet that tasks have by the plan of the run."""
    tasks = index.state.texts.get("task", ())
    values = {at: index.plan[1].get(task, {}).get(name) for at, task in enumerate(tasks)}
    texts = [*dict.fromkeys(text for text in values.values() if text is not None)]
    codes = np.full(len(values) + 1, -1, np.int32)
    for at, text in values.items():
        codes[at] = texts.index(text) if text is not None else -1
    return [(codes[index.column("response", "task")], texts)] if texts else []
