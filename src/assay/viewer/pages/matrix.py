"""Items against tasks: the mean score of the samples that match, item by item."""

from typing import Any

import numpy as np

from assay.viewer.experiments import Experiments
from assay.viewer.query import Rows, SamplesQuery, View, about, chosen, page_of, view
from assay.viewer.rows import beginning, question_of, read_row

Query = SamplesQuery
_MOST_COLUMNS = 200


def page(experiments: Experiments, query: Query) -> dict[str, Any]:
    part = page_of(query)
    samples, share = view(experiments, query.experiment, query.label)
    rows = chosen(experiments, samples, query)
    items, first = np.unique(samples.item[rows], return_index=True)
    ordered = _sorted(samples, rows, items, first, query)
    columns = np.unique(samples.task[rows])[:_MOST_COLUMNS]
    by_item = rows[np.argsort(samples.item[rows], kind="stable")]
    bounds = np.searchsorted(
        samples.item[by_item], [items[ordered[part]], items[ordered[part]] + 1]
    )
    shown = [_row(samples, by_item[start:stop], columns) for start, stop in bounds.T.tolist()]
    said = about(experiments, samples, share)
    return {
        "total": len(items),
        **{name: said[name] for name in ("label", "labels", "indexed")},
        "columns": [
            dict(zip(("experiment", "task"), samples.columns[at], strict=True))
            for at in columns.tolist()
        ],
        "rows": shown,
    }


def _sorted(samples: View, rows: Rows, items: Rows, first: Rows, query: Query) -> Rows:
    """Places of the items: by their first row, their id, their disagreement, or the mean of a column."""
    if query.sort == "order":
        values = first.astype(np.float64)
    elif query.sort == "item":
        values = samples.ranks[items].astype(np.float64)
    elif query.sort == "disagreement":
        values = samples.disagreement[items]
    else:
        column = (
            samples.verdicts[2]
            if query.sort == "score"
            else samples.column(query.sort).astype(np.float64)
        )
        there = rows[~np.isnan(column[rows])]
        counts = np.bincount(samples.item[there], minlength=samples.items)[items]
        sums = np.bincount(samples.item[there], weights=column[there], minlength=samples.items)[
            items
        ]
        values = np.divide(sums, counts, out=np.full(len(items), np.nan), where=counts > 0)
    by_row = np.argsort(first, kind="stable")
    return by_row[
        np.argsort(-values[by_row] if query.descending else values[by_row], kind="stable")
    ]


def _row(samples: View, rows: Rows, columns: Rows) -> dict[str, Any]:
    score, task = samples.verdicts[2][rows], samples.task[rows]
    _, index, own = samples.place(int(rows[0]))
    item = int(index.arrays["response.item"][own])
    return {
        "item": index.item_id(item),
        "question": beginning(question_of(index, item, read_row(index, own))),
        "rate": _mean(score),
        "disagreement": float(samples.disagreement[samples.item[rows[0]]]),
        "cells": [_cell(score[task == column]) for column in columns.tolist()],
    }


def _cell(score: Any) -> dict[str, Any] | None:
    if not len(score):
        return None
    return {"value": _mean(score), "samples": len(score), "failed": int(np.isnan(score).sum())}


def _mean(score: Any) -> float | None:
    there = score[~np.isnan(score)]
    return float(there.mean()) if len(there) else None
