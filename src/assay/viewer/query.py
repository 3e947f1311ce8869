"""Samples of one or several experiments: chosen, sorted and counted. Items are joined by their ids."""

import heapq
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from assay.errors import AssayError, UserError
from assay.interfaces import FloatArray, IntArray
from assay.registry import nearest
from assay.viewer.experiments import Experiments
from assay.viewer.index.columns import column_of, conditions, query_type
from assay.viewer.index.index import Index, Part, as_json
from assay.viewer.index.opening import open_index
from assay.viewer.index.search import found_by
from assay.viewer.tags import tagged, tags_of

SamplesQuery = query_type()
MOST_ROWS = 500
PART_BITS = 40  # a row of a view is the number of its experiment, and in so many bits its own
_OWN = (1 << PART_BITS) - 1
_MOST_SHOWN = 100  # values of a facet
_MOST_LABELS = 1000
MOST_KEPT = 4  # views, and lists that one pages through
_AMONG = "r.hash IN (SELECT value FROM json_each(?))"
_numbers = count(1)


class View:
    """The samples of some experiments side by side, under a label."""

    def __init__(self, parts: Sequence[tuple[str, Index]], label: str = "") -> None:
        self.labels = list(dict.fromkeys(name for _, index in parts for name in labels_of(index)))
        if label and label not in self.labels:
            raise UserError(f"there is no label {label!r}", fix=nearest(label, self.labels))
        self.label = label or next(iter(self.labels), "")
        self.parts = [Part(id, index, self.label) for id, index in parts]
        self.name = self.label, *((id, index.made) for id, index in parts)

    def __len__(self) -> int:
        return sum(len(part.index) for part in self.parts)

    @contextmanager
    def kinds(self, items: Sequence[int] | None = None) -> Generator[int]:
        """Give the number under which tables `kind` have what is known of items, all or some, across the experiments:
        the largest difference of two tasks' mean scores, how many tasks have verdicts, and how many a sample that passed.
        """
        number, among, values = next(_numbers), "", list[str]()
        if items is not None:
            among, values = f" AND {_AMONG}", [as_json(items)]
        try:
            for part in self.parts:
                cells = part.index.stream(_CELLS.format(number, part.samples, among), values)
                self.parts[0].index.store("INSERT INTO cell VALUES (?, ?, ?, ?)", cells)
            for part in self.parts:
                kinds = self.parts[0].index.stream(_KINDS, (number,))
                part.index.store("INSERT INTO kind VALUES (?, ?, ?, ?, ?)", kinds)
            yield number
        finally:
            for part in self.parts:
                for table in ("cell", "kind"):
                    part.index.store(f"DELETE FROM {table} WHERE view = ?", [(number,)])

    def under(self, label: str) -> "View":
        return View([(part.id, part.index) for part in self.parts], label)

    def by_part(self, rows: IntArray) -> list[tuple[Part, list[int]]]:
        """Return the parts of some rows, and which rows of theirs these are."""
        parts, ids = rows >> PART_BITS, rows & _OWN
        return [
            (part, ids[parts == number].tolist())
            for number, part in enumerate(self.parts)
            if (parts == number).any()
        ]

    def places(self, rows: IntArray) -> Iterator[tuple[Part, int]]:
        return ((self.parts[row >> PART_BITS], row & _OWN) for row in rows.tolist())

    def every(self) -> IntArray:
        """Return all rows: those of an experiment are numbered from 1 on."""
        own = [
            np.arange(1, len(part.index) + 1) + (number << PART_BITS)
            for number, part in enumerate(self.parts)
        ]
        return np.concatenate([np.zeros(0, np.int64), *own])

    def numbers(self, *expressions: str, where: str = "1") -> npt.NDArray[Any]:
        """Return all rows for which a condition holds, or expressions have values: see `Part.numbers`."""
        return _side_by_side([part.numbers(expressions, where) for part in self.parts])

    def rows(
        self,
        experiments: Experiments,
        query: Any,
        *expressions: str,
        items: Sequence[int] | None = None,
    ) -> npt.NDArray[Any]:
        """Return the rows that match, of all items or some: see `Part.numbers`."""
        check_facets(self, query.where)
        used = [*expressions, *(sql for sql, _ in _asked(query))]
        kinds = self.kinds(items) if any("k." in sql for sql in used) else nullcontext(0)
        found: list[npt.NDArray[Any]] = []
        with kinds as kind:
            for part in self.parts:
                where, values = _where(part, query)
                if items is not None:
                    where, values = f"{where} AND {_AMONG}", [*values, as_json(items)]
                rows = part.numbers(expressions, where, values, kind)
                found.append(_among(experiments, part, query, rows))
        return _side_by_side(found)


def _side_by_side(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    for number, rows in enumerate(parts):
        rows["row"] += number << PART_BITS
    return (
        np.concatenate(parts)
        if parts
        else np.zeros(0, [("row", "i8"), ("hash", "i8"), ("v0", "f8")])
    )


_CELLS = """
SELECT {}, r.hash, round(avg(v.score), 12), max(v.passed) FROM {} WHERE v.score IS NOT NULL{} GROUP BY r.hash, r.task
"""
_KINDS = """
SELECT view, hash, min(1.0, max(mean) - min(mean)), count(won), coalesce(sum(won), 0) FROM cell WHERE view = ?
GROUP BY hash
"""


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


def labels_of(index: Index) -> list[str]:
    """Return the labels of answers in the order of the scorers' plan, then of the rows."""
    order = {scorer: number for number, scorer in enumerate(index.plan[0])}
    return sorted(
        index.labels, key=lambda name: order.get(index.labels[name].scorers[0], len(order))
    )


# ---- facets


def facets_of(view: View) -> dict[str, list[str]]:
    """What one can filter by: the values of each facet. One that nearly every item has another value of is none."""
    values: dict[str, dict[str, None]] = {"task": {}, "model_name": {}}
    for index in (part.index for part in view.parts):
        state = index.state
        layers: list[Mapping[str, Iterable[str]]] = [
            {"task": () if state.judged else state.tasks, "model_name": state.models},
            state.facets.values,
        ]
        layers += [{name: [value] for name, value in own.items()} for own in index.plan[1].values()]
        shared = {
            name: texts
            for name, texts in state.items.values.items()
            if 2 * len(texts) <= max(index.items, 10)
        }
        for layer in (*layers, shared):
            for name, texts in layer.items():
                values.setdefault(name, {}).update(dict.fromkeys(texts))
    return {name: sorted(texts)[:_MOST_SHOWN] for name, texts in values.items() if texts}


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


def _asked(query: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield what the columns of a row must hold, and the values that are bound to it."""
    for condition in conditions():
        names = filter(None, [condition.column, condition.otherwise])
        place = ", ".join(column_of(name).expression for name in names)
        place = f"coalesce({place}, NULL)"
        asked = getattr(query, condition.name)
        if condition.operator == "in" and asked:
            yield f"{place} IN ({_marks(asked)})", asked
        elif condition.operator == "is" and asked in condition.words:
            yield f"{place} = {1 - condition.words.index(asked)}", []
        elif condition.operator in (">=", "<=") and asked is not None:
            yield f"{place} {condition.operator} ?", [asked]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _where(part: Part, query: Any) -> tuple[str, list[Any]]:
    parts, values = ["1"], list[Any]()
    for sql, bound in _asked(query):
        parts.append(sql)
        values += bound
    for name, asked in facets_asked(query.where).items():
        place = part.find_facet(name, values)
        parts.append(f"coalesce({place or 'NULL'}, 'null') IN ({_marks(asked)})")
        values += asked
    return " AND ".join(parts), values


def check_facets(view: View, where: Sequence[str]) -> None:
    for name in facets_asked(where):
        if view.parts and not any(part.find_facet(name, []) for part in view.parts):
            raise UserError(f"there is no facet {name!r}", fix=nearest(name, facets_of(view)))


def _among(experiments: Experiments, part: Part, query: Any, rows: Any) -> Any:
    """Return those of the rows that have one of the tags, and the text, that are asked for."""
    own, found = rows["row"], np.ones(len(rows), np.bool_)
    if query.tag:
        found &= np.isin(own, [*tagged(experiments, part.id, part.index, query.tag)])
    if query.search:
        found &= np.isin(own, found_by(part.index, query.search, regex=query.regex))
    return rows[found]


def chosen(experiments: Experiments, view: View, query: Any) -> IntArray:
    """Return the rows that match, in the order that is asked for. One pages through them."""
    asked = msgspec.structs.replace(query, offset=0, limit=0)
    key = ("list", view.name, msgspec.json.encode(asked))
    ids = [part.id for part in view.parts]
    return experiments.cached(key, ids, lambda: _find_rows(experiments, view, asked), MOST_KEPT)


def _is_narrowed(query: Any) -> bool:
    return bool(query.where or query.tag or query.search or [*_asked(query)])


def _find_rows(experiments: Experiments, view: View, query: Any) -> IntArray:
    """Return the rows that match, sorted: stable, those without the value at the end."""
    column = column_of(query.sort) if query.sort != "order" else None
    if column is not None and column.type != "TEXT":
        rows = view.rows(experiments, query, column.expression)
        return rows["row"][order_of(rows["v0"], descending=query.descending)]
    rows = view.rows(experiments, query)["row"] if _is_narrowed(query) else view.every()
    if column is None:
        return rows[::-1] if query.descending else rows
    streams = [
        part.index.stream(
            f"SELECT {column.expression}, r.id + {number << PART_BITS} FROM {part.samples}"
            f" ORDER BY 1 {'DESC' if query.descending else ''} NULLS LAST, 2"
        )
        for number, part in enumerate(view.parts)
    ]

    def key(row: Any) -> tuple[bool, str]:
        return (row[0] is None) != query.descending, row[0] or ""

    merged = heapq.merge(*streams, key=key, reverse=query.descending)
    every = np.fromiter((row for _, row in merged), np.int64)
    return every if len(every) == len(rows) else every[np.isin(every, rows)]


def order_of(values: FloatArray, *, descending: bool) -> IntArray:
    """Return the order of values, missing ones (infinity) at the end."""
    values = np.where(np.isinf(values), np.nan, -values if descending else values)
    return np.argsort(values, kind="stable")


def page_of(query: Any) -> slice:
    """The part of the rows that is asked for."""
    if query.limit > MOST_ROWS or query.limit < 0 or query.offset < 0:
        raise UserError(f"a page has at most {MOST_ROWS} rows from 0 on", fix=f"limit={MOST_ROWS}")
    return slice(query.offset, query.offset + query.limit)


def about(experiments: Experiments, view: View, share: float | None) -> dict[str, Any]:
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
        "labels": view.labels[:_MOST_LABELS],
        "facets": facets_of(view),
        "tags": sorted(tags),
        "indexed": share,
        "left_out": sum(part.index.state.left_out for part in view.parts),
    }
