"""What metrics of likelihoods share: values that the scorers keep in `detailed_results`, added up over items."""

from typing import Any

import numpy as np

from assay.sdk import FloatArray, Group, Values, is_number
from assay.stats.intervals import item_contributions, item_weights

DETAILS = "detailed_results."


def numbers(group: Group, name: str) -> tuple[list[int], FloatArray]:
    """The rows that have a number of this name, and the numbers."""
    column: list[Any] = group.columns[DETAILS + name]
    rows = [at for at, value in enumerate(column) if is_number(value)]
    return rows, np.array([column[at] for at in rows], dtype=np.float64)


def mean_of(group: Group, name: str, scorers: str) -> Values:
    """The mean of a detail over the rows that have it."""
    rows, values = numbers(group, name)
    counts = {"ignored_count": len(group.item) - len(rows)}
    if not rows:
        return Values(fields=counts, reason=f"only labels of {scorers} have it")
    items = group.item[rows]
    return Values(
        value=float(values.mean()),
        fields=counts,
        per_item=item_contributions(items, values),
        weights=item_weights(items),
        items=items,
        rows=rows,
    )


def per_item_sums(group: Group, rows: list[int], *columns: FloatArray) -> list[FloatArray]:
    """Each column added up by item, so that whole items can be drawn."""
    items, number = np.unique(group.item[rows], return_inverse=True)
    return [
        np.bincount(number, weights=column, minlength=len(items)).astype(np.float64)
        for column in columns
    ]
