"""Every metric of a Group can be called as EEN calls one: `mean(evaluation_results, facets, **params) -> dict`.

The rows are one group, as the engine hands it to a custom function; the engine's default policy applies to them.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from msgspec import UNSET

from assay.interfaces import Group, Values
from assay.records import JsonMapping, JsonObject, find_in_row, verdict_of

Rows = Sequence[JsonMapping]
F = TypeVar("F", bound=Callable[..., Any])


def on_rows(function: F, name: str, columns: Any) -> F:
    """The metric called `name`, of a Group or of rows; `columns` are the further fields that its groups have."""

    @wraps(function)
    def metric(
        group: Group | Rows | None = None,
        facets: Sequence[str] = (),
        *,
        evaluation_results: Rows | None = None,
        **params: Any,
    ) -> Any:
        if isinstance(group, Group):
            return function(group, **params)
        rows = (evaluation_results if group is None else group) or ()
        names: Any = columns(params) if callable(columns) else columns
        made = _group_of(rows, names, facets)
        if not len(made.item):
            return {"value": None, name: None, "reason": f"none of {len(rows)} rows counts"}
        found = function(made, **params)
        if isinstance(found, Values):
            return _as_dict(found, name)
        return [_as_dict(each, name) for each in found] if isinstance(found, list) else found

    return cast("F", metric)


def _as_dict(found: Values, name: str) -> JsonObject:
    reason = {} if found.value is not None or not found.reason else {"reason": found.reason}
    return {**found.facets, "value": found.value, name: found.value, **found.fields, **reason}


def _group_of(rows: Rows, columns: Iterable[str], facets: Iterable[str]) -> Group:
    import numpy as np

    counted = [(row, *verdict) for row in rows if (verdict := _verdict(row)) is not None]
    counted.sort(
        key=lambda entry: (str(entry[0].get("item_id")), entry[0].get("sample_index") or 0)
    )
    own = [row for row, _, _ in counted]
    ids = [str(row.get("item_id")) for row in own]
    numbers = {id: number for number, id in enumerate(dict.fromkeys(ids))}
    first = own[0] if own else {}
    return Group(
        item=np.array([numbers[id] for id in ids], dtype=np.int32),
        sample=np.array([row.get("sample_index") or 0 for row in own], dtype=np.int32),
        passed=np.array([passed for _, passed, _ in counted], dtype=np.bool_),
        score=np.array([score for _, _, score in counted], dtype=np.float64),
        columns={name: [_column(row, name) for row in own] for name in columns},
        rows=[*map(dict, own)],
        label=str(first.get("label") or ""),
        facets={facet: _column(first, facet) for facet in facets},
    )


def _verdict(row: JsonMapping) -> tuple[bool, float] | None:
    """Passed and score; None for rows that do not count."""
    outcome, passed, score = verdict_of(row)
    if outcome in ("unparsed", "refused"):
        return False, 0.0
    if outcome != "scored":
        return None
    score = float(bool(passed)) if score != score else score
    return score > 0 if passed is None else passed, score


def _column(row: JsonMapping, name: str) -> Any:
    """Rows in a list have no response or item beside them, so `response.x` and `item.x` are their own field x:
    responses can be given as they are."""
    value = (
        None
        if name == "response"
        else find_in_row(row, name.removeprefix("response.").removeprefix("item."))
    )
    return None if value is UNSET else value
