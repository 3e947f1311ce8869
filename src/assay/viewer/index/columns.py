"""The columns of samples, each declared once: the schema of the index, what is decoded of a
response, the conditions and sorts of queries, the JSON of a page's rows, and the filters, sorts
and further cells of lists in the browser are made of this list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec

from assay.records import OUTCOMES, JsonObject, ResponseOutcome

Type = Literal["TEXT", "REAL", "INTEGER", "BOOLEAN"]
Operator = Literal["in", ">=", "<=", "is"]
WHOLE = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
_DECODED: dict[Type, Any] = {"TEXT": str, "REAL": float, "INTEGER": WHOLE, "BOOLEAN": bool}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """`field`: a field of responses, which the index takes as it is, or as `made` gives it for
    decoded responses; `absent` stands for null. Lists need texts as numbers: `numbered` where there are few, or `hashed`.
    `sql` makes others of these, of the table `r`. A column about a label is a part of its
    verdicts, one about an item is of what is known of items (`View.kinds`).

    `filters` are parameters of queries: `in` takes several values (of `words`, where there are
    no others), `is` one of `words`, for what is true and what is not. `otherwise` names the column
    that stands in where this one has nothing, `missing` is what pages say then. `title` is what
    filters and sorts call it, by default its name.
    """

    name: str
    type: Type
    field: str = ""
    made: Callable[[Sequence[Any]], list[Any]] | None = None
    absent: Any = None
    texts: Literal["", "numbered", "hashed"] = ""
    sql: str = ""
    about: Literal["response", "label", "item"] = "response"
    shown: bool = True
    missing: Any = None
    sorts: bool = False
    filters: Mapping[str, Operator] = {}
    otherwise: str = ""
    words: Sequence[str] = ()
    title: str = ""

    @property
    def expression(self) -> str:
        return self.sql or f"r.{self.name}"

    def values(self, rows: Sequence[Any]) -> list[Any]:
        """Return the values of decoded responses; `absent` stands for null."""
        if self.made is not None:
            return self.made(rows)
        found = map(attrgetter(self.field), rows)
        return list(found) if self.absent is None else [value or self.absent for value in found]

    def json(self, value: Any) -> Any:
        """Return a value as pages have it."""
        if value is None:
            return self.missing
        return bool(value) if self.type == "BOOLEAN" else value


def _tasks(rows: Sequence[Any]) -> list[str]:
    return [row.task or row.model_name or "" for row in rows]


def _outcomes(rows: Sequence[Any]) -> list[str]:
    return [
        "errored" if row.error and row.outcome in ("ok", None) else row.outcome or "ok"
        for row in rows
    ]


def _lengths(rows: Sequence[Any]) -> list[int]:
    return [len(row.response) if row.response else _length(row.output) for row in rows]


def _length(output: Any) -> int:
    return 0 if output is None else len(msgspec.json.encode(output).decode())


def _kind(name: str, title: str = "") -> Column:
    """Return a kind of items, to which a list can be narrowed."""
    return Column(
        name=name,
        type="BOOLEAN",
        about="item",
        shown=False,
        filters={"only": "is"},
        words=(name,),
        title=title,
    )


COLUMNS = [
    Column(name="item", type="TEXT", field="item_id", texts="hashed", sorts=True),
    Column(name="task", type="TEXT", field="task", made=_tasks, texts="numbered"),
    Column(
        name="model",
        type="TEXT",
        field="model_name",
        absent="",
        texts="numbered",
    ),
    Column(
        name="sample",
        type="INTEGER",
        field="sample_index",
        absent=0,
    ),
    Column(name="outcome", type="TEXT", made=_outcomes, texts="numbered"),
    Column(name="latency", type="REAL", field="inference_time", missing=0.0, sorts=True),
    Column(name="tokens", type="INTEGER", field="total_tokens"),
    Column(name="cost", type="REAL", field="cost"),
    Column(name="length", type="INTEGER", made=_lengths, sorts=True),
    Column(
        name="verdict",
        type="TEXT",
        about="label",
        missing="",
        filters={"outcome": "in"},
        otherwise="outcome",
        words=OUTCOMES,
        title="outcome",
    ),
    Column(
        name="passed",
        type="BOOLEAN",
        about="label",
        filters={"passed": "is"},
        words=("passed", "failed"),
        title="verdict",
    ),
    Column(
        name="score",
        type="REAL",
        about="label",
        sorts=True,
        filters={"low": ">=", "high": "<="},
    ),
    Column(name="disagreement", type="REAL", about="item", sorts=True),
    _kind("disagree", "models disagree"),
    _kind("failed_by_all"),
    _kind("passed_by_one"),
]


def stored() -> list[Column]:
    """Return the columns that the index has of every response."""
    return [column for column in COLUMNS if column.about == "response" and not column.sql]


def columns_about(what: str) -> list[Column]:
    """Return the columns of pages' rows that say something about a response, a label, or an
    item."""
    return [column for column in COLUMNS if column.shown and column.about == what]


def definitions() -> list[str]:
    """Return these columns as the schema has them."""
    return [f"{column.name} {column.type}" for column in stored()]


def column_of(name: str) -> Column:
    return next(column for column in COLUMNS if column.name == name)


def row_type(metadata: Any) -> type[msgspec.Struct]:
    """Return what is decoded of a response: the fields of columns, and those that they are made
    of."""
    fields: dict[str, tuple[Any, ...]] = {
        "item_id": (str,),
        "key": (str | None, None),
        "metadata": (metadata | None, None),
        "error": (str | None, None),
        "outcome": (ResponseOutcome | None, None),
        "response": (str | None, None),
        "output": (Any, None),
    }
    for column in stored():
        if column.field:
            fields.setdefault(column.field, (_DECODED[column.type] | None, None))
    parts = [(name, *described) for name, described in fields.items()]
    return msgspec.defstruct("Response", parts, kw_only=True, gc=False)


# ---- what can be asked for


def query_type() -> type[msgspec.Struct]:
    """Return what can be asked of samples. Values of one field are alternatives; fields, and
    facets of `where`, must all hold."""
    sorts = ["order", *(column.name for column in COLUMNS if column.sorts)]
    parts = [
        *((name, list[str], []) for name in ("experiment", "where", "tag")),
        ("label", str, ""),
        ("search", str, ""),
        ("regex", bool, False),
        *_filters(),
        ("sort", Literal[tuple(sorts)], "order"),
        ("descending", bool, False),
        ("offset", int, 0),
        ("limit", int, 50),
    ]
    return msgspec.defstruct("SamplesQuery", parts, kw_only=True, frozen=True)


def _filters() -> Iterator[tuple[str, Any, Any]]:
    """Yield the parameters of conditions with their types and defaults."""
    words: dict[str, list[str]] = {}
    for condition in conditions():
        if condition.operator == "is":
            words.setdefault(condition.name, [""]).extend(condition.words)
        elif condition.operator == "in":
            yield condition.name, list[str], []
        else:
            yield condition.name, float | None, None
    for name, values in words.items():
        yield name, Literal[tuple(values)], ""


class Condition(msgspec.Struct):
    """What a parameter of queries asks of a column, or of the one that stands in for it."""

    name: str
    operator: Operator
    column: str
    otherwise: str = ""
    words: Sequence[str] = ()
    title: str = ""


def conditions() -> list[Condition]:
    return [
        Condition(name, operator, column.name, column.otherwise, column.words, _title(column))
        for column in COLUMNS
        for name, operator in column.filters.items()
    ]


def declared() -> JsonObject:
    """Return what the browser makes lists of: their filters, their sorts, and the columns to show
    because one can filter by them."""
    return {
        "conditions": [*conditions(), Condition("tag", "in", "tags", title="tag")],
        "sorts": {
            column.name: {"title": _title(column), "type": column.type}
            for column in COLUMNS
            if column.sorts
        },
        "cells": [column.name for column in COLUMNS if column.filters and column.shown],
    }


def _title(column: Column) -> str:
    return column.title or column.name.replace("_", " ")
