"""Built-in metrics can be called like the first seed's: `mean(evaluation_results, facets, **params) -> dict`.

The rows are one group, as the engine hands it to a custom function; the engine's default policy applies to them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, cast

import numpy as np

from assay.interfaces import Group, Values

Rows = Sequence[Mapping[str, Any]]


def on_rows(function: Callable[..., Values]) -> Callable[..., Any]:
    """The metric, for a Group or for rows: with rows it gives a dict of its value and fields."""

    @wraps(function)
    def metric(
        group: Group | Rows | None = None,
        facets: Sequence[str] = (),
        *,
        evaluation_results: Rows | None = None,
        **params: Any,
    ) -> Values | dict[str, Any]:
        if isinstance(group, Group):
            return function(group, **params)
        rows = (evaluation_results if group is None else group) or ()
        marks: dict[str, Any] = metric.__dict__.get("__assay__", {})
        columns: Any = marks.get("columns", ())
        names = cast("Sequence[str]", columns(params) if callable(columns) else columns)
        made = _group(rows, names, facets)
        if not len(made.item):
            return {"value": None, function.__name__: None, "reason": f"none of {len(rows)} rows counts"}
        found = function(made, **params)
        reason = {} if found.value is not None or not found.reason else {"reason": found.reason}
        return {"value": found.value, function.__name__: found.value, **found.fields, **reason}

    return metric


def _group(rows: Rows, columns: Sequence[str], facets: Sequence[str]) -> Group:
    kept = [(row, *verdict) for row in rows if (verdict := _verdict(row)) is not None]
    kept.sort(key=lambda entry: (str(entry[0].get("item_id")), entry[0].get("sample_index") or 0))
    ids = [str(row.get("item_id")) for row, _, _ in kept]
    numbers = {id: number for number, id in enumerate(dict.fromkeys(ids))}
    return Group(
        item=np.array([numbers[id] for id in ids], dtype=np.int32),
        sample=np.array([row.get("sample_index") or 0 for row, _, _ in kept], dtype=np.int32),
        passed=np.array([passed for _, passed, _ in kept], dtype=np.bool_),
        score=np.array([score for _, _, score in kept], dtype=np.float64),
        columns={name: [_field(row, name) for row, _, _ in kept] for name in columns},
        rows=[dict(row) for row, _, _ in kept],
        label=str(kept[0][0].get("label") or "") if kept else "",
        facets={facet: _field(kept[0][0], facet) for facet in facets} if kept else {},
    )


def _verdict(row: Mapping[str, Any]) -> tuple[bool, float] | None:
    """Passed and score; None for rows that do not count."""
    outcome = row.get("outcome") or ("errored" if row.get("error") else "scored")
    if outcome in ("errored", "skipped"):
        return None
    if outcome in ("unparsed", "refused"):
        return False, 0.0
    passed, score = row.get("passed"), row.get("score")
    if score is None:
        score = float(bool(passed))
    return bool(score > 0 if passed is None else passed), float(score)


def _field(row: Mapping[str, Any], name: str) -> Any:
    """A key with dots, a path, or either inside `metadata`. Rows in a list have no response or item beside them, so
    `response.x` and `item.x` are their own field x: responses can be given as they are."""
    if name == "response":
        return None
    name = name.removeprefix("response.").removeprefix("item.")
    for start in (row, row.get("metadata")):
        found: Any = start
        if isinstance(found, Mapping) and name in found:
            return cast("Mapping[str, Any]", found)[name]
        for part in name.split("."):
            found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None
