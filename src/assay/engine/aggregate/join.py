"""What evaluation rows lack and their responses and items have: facet values, and columns that metrics declare.

One more pass over the evaluations for the keys of their responses, one over the responses, one over the items, and only
where something is missing. Kept are a few bytes for each row, never the rows.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, compress
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from assay.engine.aggregate.bind import BoundMetric
from assay.interfaces import FloatArray, Hashes, Log
from assay.stats.intervals import intraclass
from assay.store.keys import id_hash
from assay.store.table.columns import ABSENT, Column, read_columns
from assay.store.table.decode import decode_row
from assay.store.table.facets import unknown
from assay.store.table.join import PLACE, Lookup, first_key, response_keys
from assay.store.table.labels import Columns, Combination, Ints
from assay.store.table.processes import Processes

Keys = Hashes
_FEWEST, _MOST = 30, 20_000  # items that are looked at for clusters
_FEWEST_CLUSTERS = 10  # fewer are mostly fixed kinds (language, level), which are facets
_SURE = 0.005
_ALIKE = 0.05


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
        self.processes = processes or Processes()

    @cached_property
    def _sought(self) -> Keys:
        """The key of the (first) response of each evaluation row."""

        def read() -> Keys:
            fields = ("responses", *PLACE)
            blocks = read_columns(self.evaluations, "evaluation rows", fields, ())
            found = [
                response_keys([first_key(keys) for keys in responses], place)
                for (responses, *place), *_ in blocks
            ]
            return np.concatenate([np.zeros(0, np.uint64), *found])

        return np.concatenate(self.processes.over(self.evaluations, read))

    def of_evaluations(self, names: Sequence[str]) -> dict[str, "Joined"]:
        """Fields of the evaluation rows themselves."""

        def read() -> list[Column]:
            columns = [Column() for _ in names]
            for _, values, *_ in read_columns(self.evaluations, "evaluation rows", (), names):
                for column, own in zip(columns, values, strict=True):
                    column.extend(own)
            return columns

        columns = _joined(self.processes.over(self.evaluations, read))
        return {name: Joined(column, None) for name, column in zip(names, columns, strict=True)}

    def of_responses(
        self, names: Sequence[str], *, numbers: bool = True, answered: bool = False
    ) -> tuple[dict[str, "Joined"], "Joined"]:
        """Fields of the responses behind the rows, with `answered` only of those that did not fail; and the number of
        each row's response."""
        state = ("outcome", "error") if answered and names else ()

        def read() -> tuple[Keys, list[Column]]:
            columns = [Column(numbers=numbers) for _ in names]
            keys = [np.zeros(0, np.uint64)]
            for (own, *place), values, *_ in read_columns(
                self.runs, "responses", ("key", *PLACE), (*state, *names)
            ):
                keys.append(response_keys(own, place))
                for column, found in zip(columns, values[len(state) :], strict=True):
                    column.extend(found if not state else _of_answers(found, *values[:2]))
            return np.concatenate(keys), columns

        keys, parts = zip(*self.processes.over(self.runs, read), strict=True)
        match = _Match(np.concatenate(keys), self._sought)
        columns = dict(zip(names, _joined(parts), strict=True))
        joined = {name: Joined(column, match.rows(column)) for name, column in columns.items()}
        return joined, Joined(None, match.found)

    def of_items(
        self, names: Sequence[str], columns: Columns, *, numbers: bool = True
    ) -> tuple[dict[str, "Joined"], "Joined"]:
        """Fields of the rows' items; and the number of each row's item, in the order of the dataset."""
        of_rows = Lookup(columns.ids)

        def read() -> tuple[Ints, list[Column]]:
            made = [Column(numbers=numbers) for _ in names]
            places: list[Ints] = [np.zeros(0, np.int64)]
            for (own,), values, *_ in read_columns(
                self.datasets, "items", ("id",), names, item=True
            ):
                ids = np.array([id_hash(str(id)) for id in own], np.uint64)
                items = of_rows.first(ids)
                known = items >= 0
                places.append(items[known])
                for column, found in zip(made, values, strict=True):
                    column.extend(compress(found, known))
            return np.concatenate(places), made

        places, parts = zip(*self.processes.over(self.datasets, read), strict=True)
        places = np.concatenate(places)
        rows = np.full(len(columns.ids), -1, dtype=np.int64)
        rows[places] = np.arange(len(places))  # of two items with one id the last
        found = rows[columns.item]
        made = dict(zip(names, _joined(parts), strict=True))
        return {name: Joined(column, found) for name, column in made.items()}, Joined(None, found)


def _joined(parts: Sequence[list[Column]]) -> list[Column]:
    """The columns of all rows from those of parts of them."""
    return [
        columns[0] if len(columns) == 1 else Column().join(columns)
        for columns in zip(*parts, strict=True)
    ]


def _of_answers(values: list[Any], outcomes: list[Any], errors: list[Any]) -> list[Any]:
    """The values with UNSET for those of responses that failed."""
    failed = [
        one in ("errored", "skipped") or (error is not UNSET and error)
        for one, error in zip(outcomes, errors, strict=True)
    ]
    return [UNSET if bad else value for value, bad in zip(values, failed, strict=True)]


class Joined(msgspec.Struct):
    """A column seen from the evaluation rows: `rows` has its row for each of them, -1 for none; None: the same row."""

    column: Column | None
    rows: Ints | None

    def take(self, at: Ints) -> list[Any]:
        """The values of these evaluation rows; without a column the numbers of the rows themselves."""
        rows = at if self.rows is None else self.rows[at]
        if self.column is None:
            return [None if row < 0 else row for row in rows.tolist()]
        return self.column.take(rows)

    def codes(self) -> Ints:
        """The column's code for each evaluation row, -1 where there is none."""
        assert self.column is not None
        if self.rows is None or not len(self.column.codes):
            return np.full(0 if self.rows is None else len(self.rows), -1)
        return np.where(self.rows < 0, -1, self.column.codes[self.rows]).astype(np.int64)


class _Match:
    """Which response row has the key that each evaluation row seeks."""

    def __init__(self, keys: Keys, sought: Keys) -> None:
        self._keys = keys
        self.found: Ints = Lookup(keys).first(sought)

    def rows(self, column: Column) -> Ints:
        """The response row of each evaluation row, without those whose key has rows that disagree about this column."""
        order = np.argsort(self._keys, kind="stable")
        keys, codes, floats = (each[order] for each in (self._keys, column.codes, column.floats))
        equal = (codes[1:] == codes[:-1]) & ((floats[1:] == floats[:-1]) | np.isnan(floats[1:]))
        doubtful = keys[1:][(keys[1:] == keys[:-1]) & ~equal]
        if not len(doubtful):
            return self.found
        wrong = np.isin(self._keys, doubtful)
        return np.where((self.found >= 0) & wrong[self.found], -1, self.found)


def join_responses(columns: Columns, facets: Sequence[str], sources: Sources) -> None:
    """Fill in what `facets` find in the responses behind the rows."""
    wanted = missing(columns, facets)
    if wanted and sources.runs:
        joined, _ = sources.of_responses([facets[at] for at in wanted], numbers=False)
        _fill_all(columns, facets, wanted, joined)


def join_items(columns: Columns, facets: Sequence[str], sources: Sources) -> None:
    """Fill in what `facets` find in the items of the rows."""
    wanted = missing(columns, facets)
    if wanted and sources.datasets:
        joined, _ = sources.of_items([facets[at] for at in wanted], columns, numbers=False)
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
        joined, number = sources.of_responses(fields, answered=True)
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


def _first(logs: Sequence[Log]) -> dict[str, Any]:
    _, line = next(chain.from_iterable(log.scan() for log in logs), (0, b"{}"))
    return decode_row(line, "")


def cluster_hint(sources: Sources, columns: Columns, ids: Keys, values: FloatArray) -> list[str]:
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
    fields = about.items() if isinstance(about, dict) else ()
    names = [f"metadata.{name}" for name, value in fields if isinstance(value, (str, int))]
    joined, _ = sources.of_items(names, columns, numbers=False)
    codes = np.zeros(len(columns.ids), np.int64)
    for name in names:
        codes[columns.item] = joined[name].codes()
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
        _fill(columns, at, found.column.values, found.codes())


def _fill(columns: Columns, at: int, values: list[Any], codes: Ints) -> None:
    """Split the combinations that lack facet `at` by the joined value of their rows."""
    lacking = np.array([one.values[at] is UNSET for one in columns.combinations])
    codes = np.where(lacking[columns.combination], codes, -1)
    pairs, numbers = np.unique(
        columns.combination.astype(np.int64) * (len(values) + 1) + codes + 1, return_inverse=True
    )
    made: list[Combination] = []
    for old, code in (divmod(int(pair), len(values) + 1) for pair in pairs):
        one = columns.combinations[old]
        if code:
            one = one._replace(values=(*one.values[:at], values[code - 1], *one.values[at + 1 :]))
        made.append(one)
    columns.combinations = made
    columns.combination = numbers.astype(np.int32)
