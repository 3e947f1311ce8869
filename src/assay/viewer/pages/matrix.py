"""Items against tasks: the mean score of the samples that match, item by item."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from assay.interfaces import FloatArray, IntArray
from assay.store.table.join import Lookup
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import column_of
from assay.viewer.index.index import as_json
from assay.viewer.query import (
    MOST_KEPT,
    Part,
    SamplesQuery,
    View,
    about,
    chosen,
    order_of,
    page_of,
    view,
)
from assay.viewer.rows import beginning, question_of, read_row

Query = SamplesQuery
_MOST_COLUMNS = 200
_VALUES = "r.hash", "r.item", "r.task", "v.score", "k.disagreement"
_TASKS = "SELECT DISTINCT task FROM response WHERE id IN (SELECT value FROM json_each(?))"


def page(experiments: Experiments, query: Any) -> dict[str, Any]:
    part = page_of(query)
    samples, share = view(experiments, query.experiment, query.label)
    asked = msgspec.structs.replace(query, offset=0, limit=0)
    ids = [each.id for each in samples.parts]
    key = ("matrix", samples.name, msgspec.json.encode(asked))
    # one pages through it
    items, columns = experiments.cached(
        key, ids, lambda: _sort_items(experiments, samples, asked), MOST_KEPT
    )
    said = about(experiments, samples, share)
    return {
        "total": len(items),
        **{name: said[name] for name in ("label", "labels", "indexed")},
        "columns": [{"experiment": id, "task": task} for id, task in columns],
        "rows": [
            _row(own, columns)
            for own in _samples_of(experiments, samples, query, items[part].tolist())
        ],
    }


def _sort_items(experiments: Experiments, samples: View, query: Any) -> tuple[IntArray, list[Any]]:
    """Return the items, sorted by their first row, their id, or the mean of a column, and the tasks."""
    columns = [column_of(query.sort)] if query.sort != "order" else []
    numbers = [column.expression for column in columns if column.type != "TEXT"]
    rows = samples.rows(experiments, query, *numbers)
    items, first, item = np.unique(rows["hash"], return_index=True, return_inverse=True)
    by_row = np.argsort(first)
    values = first.astype(np.float64)
    if numbers:
        values = _means(rows["v0"], item, len(items))
    elif columns:
        listed = chosen(experiments, samples, msgspec.structs.replace(query, descending=False))
        values = Lookup(listed).first(rows["row"][first]).astype(np.float64)
    order = by_row[order_of(values[by_row], descending=query.descending)]
    return items[order], _tasks(samples, rows["row"])


def _means(values: FloatArray, item: IntArray, items: int) -> FloatArray:
    """Return the mean value of each item, infinity for none."""
    there = np.isfinite(values)
    counts = np.bincount(item[there], minlength=items)
    sums = np.bincount(item[there], weights=values[there], minlength=items)
    return np.divide(sums, counts, out=np.full(items, np.inf), where=counts > 0)


def _tasks(samples: View, rows: IntArray) -> list[tuple[str, str]]:
    tasks: list[tuple[str, str]] = []
    for part, ids in samples.by_part(rows):
        own = {task for (task,) in part.index.select(_TASKS, (as_json(ids),))}
        tasks += [(part.id, task) for task in part.index.state.tasks if task in own]
    return tasks[:_MOST_COLUMNS]


def _samples_of(
    experiments: Experiments, samples: View, query: Any, items: list[int]
) -> Iterable[list[tuple[Part, int, Any]]]:
    """Return the samples of each item that match, with their values."""
    found: dict[int, list[tuple[Part, int, Any]]] = {item: [] for item in items}
    rows = samples.rows(experiments, query, items=items)["row"]
    with samples.kinds(items) as kind:
        for part, ids in samples.by_part(rows):
            for id, (item, *values) in part.values(ids, _VALUES, kind).items():
                found[item].append((part, id, values))
    return found.values()


def _row(own: list[tuple[Part, int, Any]], tasks: list[Any]) -> dict[str, Any]:
    part, id, (item, _, _, disagreement) = own[0]
    scores = {task: list[float | None]() for task in tasks}
    for each, _, (_, task, score, _) in own:
        scores.setdefault((each.id, task), []).append(score)
    return {
        "item": item,
        "question": beginning(question_of(part.index, item, read_row(part.index, id))),
        "rate": _mean([score for *_, (_, _, score, _) in own]),
        "disagreement": disagreement or 0.0,
        "cells": [_cell(scores[task]) for task in tasks],
    }


def _cell(scores: list[float | None]) -> dict[str, Any] | None:
    if not scores:
        return None
    return {"value": _mean(scores), "samples": len(scores), "failed": scores.count(None)}


def _mean(scores: list[float | None]) -> float | None:
    there = [score for score in scores if score is not None]
    return sum(there) / len(there) if there else None
