"""What evaluation rows lack and their responses and items have: facet values, and columns that metrics declare.

One more pass over the evaluations for the keys of their responses, one over the responses, one over the items, and only
where something is missing. Kept are a few bytes for each row, never the rows.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import msgspec
import numpy as np
from msgspec import UNSET

from assay.engine.aggregate.bind import BoundMetric
from assay.sdk import Codes, FloatArray, Hashes, JsonObject, Log, as_object
from assay.stats.intervals import intraclass
from assay.store.table.columns import ABSENT, Column, How, Table, in_fewer_bytes
from assay.store.table.decode import decode_row
from assay.store.table.facets import unknown
from assay.store.table.join import Lookup, row_blocks
from assay.store.table.labels import Columns, Combination, Ints
from assay.store.table.processes import Processes

_FEWEST, _MOST = 30, 20_000  # items that are looked at for clusters
_FEWEST_CLUSTERS = 10  # fewer are mostly fixed kinds (language, level), which are facets
_SURE = 0.005
_ALIKE = 0.05


class Joined(msgspec.Struct):
    """A column seen from the evaluation rows: `rows` has its row for each of them, -1 for none; None: the same row."""

    column: Column | None
    rows: Ints | None

    def take(self, at: Ints) -> list[Any]:
        """Return the values of these evaluation rows; without a column the numbers of the rows themselves."""
        rows = at if self.rows is None else self.rows[at]
        if self.column is not None:
            return self.column.take(rows)
        if (rows < 0).any():
            return [None if row < 0 else row for row in rows.tolist()]
        # it is read like a list, whose numbers would take 40 bytes each
        return cast("list[Any]", array("q", rows.astype(np.int64).tobytes()))

    def codes(self, at: slice) -> Codes:
        """Return the column's codes for these evaluation rows, -1 where there is none."""
        assert self.column is not None
        return self.column.codes[at] if self.rows is None else self.column.codes_of(self.rows[at])


class Sources:
    """The logs that an aggregation reads; rows are numbered through all evaluations."""

    def __init__(
        self,
        evaluations: Sequence[Log],
        runs: Sequence[Log],
        datasets: Sequence[Log],
        processes: Processes | None = None,
    ) -> None:
        self.evaluations = evaluations
        self.runs = runs
        self.datasets = datasets
        self._table = partial(Table, strict=True, places=False, processes=processes)
        self._responses: Ints | None = None

    def _responses_by(self, lookup: Lookup) -> Ints:
        """Return the number of the (first) response of each evaluation row. Every pass over the
        responses numbers them alike."""
        if self._responses is None:
            sought = self._table(
                self.evaluations, {}, key="responses", what="evaluation rows"
            ).responses
            self._responses = in_fewer_bytes(lookup.first(sought))
        return self._responses

    def of_evaluations(self, names: Sequence[str]) -> dict[str, Joined]:
        """Return fields of the evaluation rows themselves."""
        table = self._table(self.evaluations, dict.fromkeys(names, "value"), what="evaluation rows")
        return {name: Joined(column, None) for name, column in table.coded.items()}

    def of_responses(
        self, names: Sequence[str], how: How = "value"
    ) -> tuple[dict[str, Joined], Joined]:
        """Return fields of the responses behind the rows, as values only of those that did not fail; and the number of
        each row's response. Responses with one key that disagree have no value."""
        answered = how == "value"
        table = self._table(
            self.runs, dict.fromkeys(names, how), key="key", what="responses", state=answered
        )
        lookup = Lookup(table.responses)
        found = self._responses_by(lookup)
        failed = (table.failed,) if answered else ()
        for column in table.coded.values():
            further = (column.floats,) if answered else ()
            column.forget(lookup.disputed(column.codes, *further, *failed))
            if answered:
                column.forget(table.failed)
        return {name: Joined(column, found) for name, column in table.coded.items()}, Joined(
            None, found
        )

    def of_items(
        self, names: Sequence[str], columns: Columns, how: How = "value"
    ) -> tuple[dict[str, Joined], Joined]:
        """Return fields of the rows' items; and the number of each row's item, in the order of the dataset."""
        table = self._table(
            self.datasets, dict.fromkeys(names, how), key="id", item=True, what="items"
        )
        # of two items with one id the last
        found = in_fewer_bytes(Lookup(table.responses).last(columns.ids))[columns.item]
        joined = {name: Joined(column, found) for name, column in table.coded.items()}
        return joined, Joined(None, found)


def join_responses(columns: Columns, facets: Sequence[str], sources: Sources) -> None:
    """Fill in what `facets` find in the responses behind the rows."""
    wanted = missing(columns, facets)
    if wanted and sources.runs:
        joined, _ = sources.of_responses([facets[at] for at in wanted], "code")
        _fill_all(columns, facets, wanted, joined)


def join_items(columns: Columns, facets: Sequence[str], sources: Sources) -> None:
    """Fill in what `facets` find in the items of the rows."""
    wanted = missing(columns, facets)
    if wanted and sources.datasets:
        joined, _ = sources.of_items([facets[at] for at in wanted], columns, "code")
        _fill_all(columns, facets, wanted, joined)


def declared(names: Sequence[str], columns: Columns, sources: Sources) -> dict[str, Joined]:
    """The columns that metrics declare: a field of the evaluation row, `response.…` of its response (`response`: its
    number), `item.…` of its item (`item`: its number)."""
    found: dict[str, Joined] = {}
    of_responses = [name for name in names if name == "response" or name.startswith("response.")]
    of_items = [name for name in names if name == "item" or name.startswith("item.")]
    own = [name for name in names if name not in of_responses and name not in of_items]
    if own:
        found |= sources.of_evaluations(own)
    if of_responses:
        fields = [name[len("response.") :] for name in of_responses if name != "response"]
        joined, number = sources.of_responses(fields)
        found |= {f"response.{name}": column for name, column in joined.items()} | {
            "response": number
        }
    if of_items:
        fields = [name[len("item.") :] for name in of_items if name != "item"]
        joined, number = sources.of_items(fields, columns)
        found |= {f"item.{name}": column for name, column in joined.items()} | {"item": number}
    return found


def joined_columns(
    metrics: Sequence[BoundMetric], columns: Columns, sources: Sources
) -> dict[str, Joined]:
    """Return the columns that metrics declare, and those of their clusters."""
    names = dict.fromkeys(name for bound in metrics for name in bound.columns)
    clusters = {bound.cluster_by for bound in metrics} - {""}
    found = {name: cluster_column(name, columns, sources) for name in clusters}
    return declared(list(names), columns, sources) | found


def cluster_column(name: str, columns: Columns, sources: Sources) -> Joined:
    """Return the field that the items of a cluster share: a declared column, else what responses or
    items have under this name."""
    for place in (name, f"response.{name}", f"item.{name}"):
        found = declared([place], columns, sources)[place]
        if found.column is None or (found.column.codes != ABSENT).any():
            return found
    item = _first(sources.datasets)
    rows = [_first(sources.evaluations), item, item.get("metadata") or {}]
    raise unknown(name.removeprefix("item."), rows, "cluster_by")


def _first(logs: Sequence[Log]) -> JsonObject:
    _, line = next(chain.from_iterable(log.scan() for log in logs), (0, b"{}"))
    return decode_row(line, "")


def cluster_hint(sources: Sources, columns: Columns, ids: Hashes, values: FloatArray) -> list[str]:
    """Return a note if items with the same value of a field of their metadata clearly have similar
    values; of several such fields it is about the one with the most similar."""
    if not _FEWEST <= len(ids) <= _MOST:
        return []
    item = Lookup(columns.ids).first(ids)
    fields = _fields_of_metadata(sources, columns, item)
    found = [(intraclass(clusters, values), name) for name, clusters in fields]
    alike = [(each.correlation or 0.0, name) for each, name in found if each.p * len(found) < _SURE]
    return [
        f"items of one `{name[9:]}` score alike (ICC {icc:.2f}): cluster_by: item.{name}"
        for icc, name in sorted(alike)[-1:]
        if icc > _ALIKE
    ]


def _fields_of_metadata(
    sources: Sources, columns: Columns, item: Ints
) -> Iterator[tuple[str, Ints]]:
    """Yield the fields that may be clusters, and their codes for these items."""
    about = _first(sources.datasets).get("metadata")
    fields = as_object(about).items()
    names = [f"metadata.{name}" for name, value in fields if isinstance(value, (str, int))]
    joined, _ = sources.of_items(names, columns, "code")
    codes = np.zeros(len(columns.ids), np.int64)
    for name in names:
        codes[columns.item] = joined[name].codes(slice(None))
        own = codes[item]
        if own.min() >= 0 and _FEWEST_CLUSTERS <= len(np.unique(own)) <= len(item) / 2:
            yield name, own


def missing(columns: Columns, facets: Sequence[str]) -> list[int]:
    """Which facets some row lacks."""
    return [
        at
        for at in range(len(facets))
        if any(one.values[at] is UNSET for one in columns.combinations)
    ]


def _fill_all(
    columns: Columns, facets: Sequence[str], wanted: list[int], joined: dict[str, Joined]
) -> None:
    for at in wanted:
        found = joined[facets[at]]
        assert found.column is not None
        _fill(columns, at, found.column.values, found.codes)


def _split(
    combinations: Sequence[Combination], at: int, values: Sequence[Any], pairs: Iterable[int]
) -> Iterator[Combination]:
    """Yield the combination of each pair, with its value in place of facet `at`, if it has one."""
    for old, code in (divmod(pair, len(values) + 1) for pair in pairs):
        one = combinations[old]
        if code:
            one = one._replace(values=(*one.values[:at], values[code - 1], *one.values[at + 1 :]))
        yield one


def _fill(columns: Columns, at: int, values: list[Any], codes_of: Callable[[slice], Codes]) -> None:
    """Split the combinations that lack facet `at` by the joined value of their rows."""
    lacking = np.array([one.values[at] is UNSET for one in columns.combinations])

    def pairs_of(rows: slice) -> Ints:
        """Return a number for the combination and the value of each row."""
        old = columns.combination[rows]
        codes = np.where(lacking[old], codes_of(rows), -1)
        return old.astype(np.int64) * (len(values) + 1) + codes + 1

    blocks = list(row_blocks(len(columns.combination)))
    pairs = np.unique(np.concatenate([np.unique(pairs_of(rows)) for rows in blocks]))
    known = Lookup(pairs)
    made = [*_split(columns.combinations, at, values, pairs.tolist())]
    combination = np.empty(len(columns.combination), np.min_scalar_type(-len(made)))
    for rows in blocks:
        combination[rows] = known.first(pairs_of(rows))
    columns.combinations, columns.combination = made, combination
