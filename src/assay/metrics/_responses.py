"""Statistics of a field of the responses behind a group: each response counts once, however many rows it has."""

from typing import Any

import numpy as np

from assay.interfaces import Group, Values
from assay.stats.intervals import item_contributions


def columns(*names: str) -> list[str]:
    return ["response", *(f"response.{name}" for name in names)]


def once(group: Group, name: str) -> tuple[Any, Any]:
    """Items and values of the responses that have a number in this field."""
    numbers, given = group.columns["response"], group.columns[f"response.{name}"]
    seen: dict[Any, int] = {}
    for at, value in enumerate(given):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            seen.setdefault(at if numbers[at] is None else ("response", numbers[at]), at)
    rows = list(seen.values())
    return group.item[rows], np.array([given[at] for at in rows], dtype=np.float64)


def statistics(group: Group, name: str, fields: dict[str, Any]) -> Values:
    """The mean of a field with its spread; null where no response has it."""
    items, values = once(group, name)
    if not len(values):
        return Values(value=None, fields=fields, reason=f"no response behind these rows has {name!r}")
    low, median, p95, p99, high = np.percentile(values, (0, 50, 95, 99, 100)).tolist()
    return Values(
        value=float(values.mean()),
        fields={
            "response_count": len(values),
            "sum": float(values.sum()),
            "min": low,
            "median": median,
            "p95": p95,
            "p99": p99,
            "max": high,
            "std": float(values.std(ddof=1)) if len(values) > 1 else None,
            **fields,
        },
        per_item=item_contributions(items, values),
    )
