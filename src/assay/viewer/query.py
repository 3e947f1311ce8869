"""Samples of one or several experiments: chosen, sorted and counted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from assay.sdk import (
    AssayError,
    Codes,
    FloatArray,
    IntArray,
    JsonObject,
    Mask,
    UserError,
    nearest,
)
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import column_of, conditions, query_type
from assay.viewer.index.index import Index
from assay.viewer.index.opening import open_index
from assay.viewer.index.packed import Numbers
from assay.viewer.index.search import found_by
from assay.viewer.index.view import NAMED, Part, View
from assay.viewer.tags import tagged, tags_of

SamplesQuery = query_type()
_COMPARED: JsonObject = {">=": np.greater_equal, "<=": np.less_equal}
MOST_ROWS = 500
_MOST_SHOWN = 100  # values of a facet
MOST_LABELS = 1000
MOST_KEPT = 4  # views, and lists that one pages through


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
    return experiments.cached(key, (), lambda: View(parts, label), MOST_KEPT), share


# ---- facets


def facets_of(view: View) -> dict[str, list[str]]:
    """What one can filter by: the values of each facet. One that nearly every item has another value of is none."""
    values: dict[str, dict[str, None]] = {"task": {}, "model_name": {}}
    for layer in chain.from_iterable(_facet_values(part.index) for part in view.parts):
        for name, texts in layer.items():
            values.setdefault(name, {}).update(dict.fromkeys(texts))
    return {name: sorted(texts)[:_MOST_SHOWN] for name, texts in values.items() if texts}


def _facet_values(index: Index) -> Iterator[Mapping[str, Iterable[str]]]:
    state = index.state
    for name, column in NAMED.items():
        if not (state.judged and name == "task"):
            yield {name: state.texts.get(column, ())}
    yield state.facets.values
    for planned in index.plan[1].values():
        yield {name: [value] for name, value in planned.items()}
    most = max(index.items, 10) // 2
    yield {name: texts for name, texts in state.items.values.items() if len(texts) <= most}


def facets_asked(where: Sequence[str]) -> dict[str, list[str]]:
    """Return the values that are asked for of each facet."""
    wanted: dict[str, list[str]] = {}
    for condition in where:
        name, equals, value = condition.partition("=")
        if not equals:
            raise UserError(
                f"a filter is facet=value, got {condition!r}", fix="correct the address"
            )
        wanted.setdefault(name, []).append(value)
    return wanted


# ---- choosing and sorting


def _is_chosen(view: View, query: Any) -> Mask:
    """Return which rows have what the columns and facets must have."""
    chosen = np.ones(len(view), np.bool_)
    for condition in conditions():
        asked, operator = getattr(query, condition.name), condition.operator
        columns = [*map(column_of, filter(None, [condition.column, condition.otherwise]))]
        if operator == "in" and asked:
            chosen &= _has(*view.texts(*columns), asked)
        elif operator == "is" and asked in condition.words:
            chosen &= view.numbers(columns[0]) == 1 - condition.words.index(asked)
        elif operator in _COMPARED and asked is not None:
            chosen &= _COMPARED[operator](view.numbers(columns[0]), asked)
    for name, asked in facets_asked(query.where).items():
        found = view.facet(name)
        if found is None and view.parts:
            raise UserError(f"there is no facet {name!r}", fix=nearest(name, facets_of(view)))
        if found is not None:
            chosen &= _has(*found, asked, "null")
    return chosen


def _has(
    codes: Codes, texts: Sequence[str], asked: Sequence[str], absent: str | None = None
) -> Mask:
    """Return which rows have one of the texts; those without any have `absent`."""
    return np.array([text in asked for text in (*texts, absent)])[codes]


def chosen(experiments: Experiments, view: View, query: Any) -> Numbers:
    """Return the rows that match, in the order that is asked for. One pages through them."""
    asked = msgspec.structs.replace(query, offset=0, limit=0)
    key = ("list", view.name, msgspec.json.encode(asked))
    ids = [part.id for part in view.parts]
    return experiments.cached(key, ids, lambda: _find_rows(experiments, view, asked), MOST_KEPT)


def _find_rows(experiments: Experiments, view: View, query: Any) -> Numbers:
    """Return the rows that match, sorted: stable, those without the value at the end."""
    mask = _is_chosen(view, query)
    for part in view.parts if query.tag or query.search else ():
        mask[part.rows] &= _is_found(experiments, part, query)
    rows = np.flatnonzero(mask).astype(np.int32)
    if query.sort == "order":
        return rows[::-1] if query.descending else rows
    return rows[order_of(sort_values(view, query.sort)[rows], descending=query.descending)]


def _is_found(experiments: Experiments, part: Part, query: Any) -> Mask:
    """Return which rows have one of the tags, and the text, that are asked for."""
    wanted: list[Iterable[int]] = []
    if query.tag:
        wanted.append(tagged(experiments, part.id, part.index, query.tag))
    if query.search:
        wanted.append(found_by(part.index, query.search, regex=query.regex))
    mask = np.ones(len(part.index), np.bool_)
    for rows in wanted:
        own = np.zeros(len(mask), np.bool_)
        own[np.array([*rows], np.int64)] = True
        mask &= own
    return mask


def sort_values(view: View, name: str) -> FloatArray:
    """Return the numbers that rows are sorted by, NaN for none."""
    column = column_of(name)
    if column.type != "TEXT":
        return view.numbers(column)
    codes, texts = view.texts(column)
    ranks = np.full(len(texts) + 1, np.nan)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[codes]


def order_of(values: FloatArray, *, descending: bool) -> IntArray:
    """Return the order of values, missing ones at the end."""
    return np.argsort(-values if descending else values, kind="stable")


def page_of(query: Any) -> slice:
    """The part of the rows that is asked for."""
    if query.limit > MOST_ROWS or query.limit < 0 or query.offset < 0:
        raise UserError(f"a page has at most {MOST_ROWS} rows from 0 on", fix=f"limit={MOST_ROWS}")
    return slice(query.offset, query.offset + query.limit)


def about(experiments: Experiments, view: View, share: float | None) -> JsonObject:
    """What pages of samples say about all of them."""
    tags = {
        tag
        for part in view.parts
        for record in tags_of(experiments, part.id)
        for tag in record.tags
    }
    return {
        "all": len(view),
        "label": view.label,
        "labels": view.labels[:MOST_LABELS],
        "facets": facets_of(view),
        "tags": sorted(tags),
        "indexed": share,
        "left_out": sum(part.index.state.left_out for part in view.parts),
    }
