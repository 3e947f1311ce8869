"""Items against tasks: the mean score of the samples that match, item by item."""

from typing import Any

import msgspec
import numpy as np

from assay.sdk import Codes, FloatArray, IntArray, JsonObject
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import column_of
from assay.viewer.index.view import View
from assay.viewer.query import (
    MOST_KEPT,
    MOST_LABELS,
    SamplesQuery,
    chosen,
    order_of,
    page_of,
    sort_values,
    view,
)
from assay.viewer.rows import beginning, question_of, read_row

Query = SamplesQuery
_MOST_COLUMNS = 200
_SHOWN = [column_of(name) for name in ("item", "disagreement")]


def page(experiments: Experiments, query: Any) -> JsonObject:
    part = page_of(query)
    samples, share = view(experiments, query.experiment, query.label)
    asked = msgspec.structs.replace(query, offset=0, limit=0)
    ids = [each.id for each in samples.parts]
    key = ("matrix", samples.name, msgspec.json.encode(asked))
    rows = chosen(
        experiments, samples, msgspec.structs.replace(query, sort="order", descending=False)
    )
    # one pages through it
    items = experiments.cached(key, ids, lambda: _sort_items(samples, asked, rows), MOST_KEPT)
    task, tasks = samples.tasks
    columns = np.flatnonzero(np.bincount(task[rows]))[:_MOST_COLUMNS].tolist()
    return {
        "total": len(items),
        "label": samples.label,
        "labels": samples.labels[:MOST_LABELS],
        "indexed": share,
        "columns": [dict(zip(("experiment", "task"), tasks[at], strict=True)) for at in columns],
        "rows": _rows(samples, rows, items[part], columns),
    }


def _rows(samples: View, rows: IntArray, items: IntArray, columns: list[int]) -> list[JsonObject]:
    is_shown = np.zeros(len(samples.items[0]), np.bool_)
    is_shown[items] = True
    own = rows[is_shown[samples.item[rows]]]
    return [_row(samples, own[samples.item[own] == item], columns) for item in items.tolist()]


def _sort_items(samples: View, query: Any, rows: IntArray) -> IntArray:
    """Return the items, sorted by their first row, their id, or the mean of a column."""
    item = samples.item[rows]
    first = np.full(len(samples.items[0]), len(rows))
    first[item[::-1]] = np.arange(len(rows))[::-1]  # what is assigned last counts
    by_row = np.argsort(first, kind="stable")[: int((first < len(rows)).sum())]
    if query.sort == "order":
        return by_row[::-1] if query.descending else by_row
    means = _means(sort_values(samples, query.sort)[rows], item, len(first))
    return by_row[order_of(means[by_row], descending=query.descending)]


def _means(values: FloatArray, item: Codes, items: int) -> FloatArray:
    """Return the mean value of each item, NaN for none."""
    there = ~np.isnan(values)
    counts = np.bincount(item[there], minlength=items)
    sums = np.bincount(item[there], weights=values[there], minlength=items)
    return np.divide(sums, counts, out=np.full(items, np.nan), where=counts > 0)


def _row(samples: View, rows: IntArray, columns: list[int]) -> JsonObject:
    part, id = samples.place(int(rows[0]))
    item = samples.values(_SHOWN, rows[:1])[0]
    score, task = samples.verdicts.score[rows], samples.tasks[0][rows]
    return {
        "item": item["item"],
        "question": beginning(question_of(part.index, item["item"], read_row(part.index, id))),
        "rate": _mean(score),
        "disagreement": item["disagreement"],
        "cells": [_cell(score[task == column]) for column in columns],
    }


def _cell(score: FloatArray) -> JsonObject | None:
    if not len(score):
        return None
    return {"value": _mean(score), "samples": len(score), "failed": int(np.isnan(score).sum())}


def _mean(score: FloatArray) -> float | None:
    there = score[~np.isnan(score)].tolist()
    return sum(there) / len(there) if there else None
