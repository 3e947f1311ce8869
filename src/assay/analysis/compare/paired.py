"""Experiments as sides that can be compared: their evaluation rows, read by the aggregator's reader."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from assay.engine.aggregate.groups import under_every_label, verdicts
from assay.engine.aggregate.join import (
    Sources,
    cluster_column,
    join_items,
    join_responses,
    joined_columns,
    missing,
)
from assay.engine.aggregate.measure import BoundMetric, Policy, Sample, item_clusters
from assay.engine.evaluate.directions import Directions
from assay.engine.experiment.resolve import find_source, find_sources
from assay.engine.experiment.sources import Source
from assay.errors import UserError
from assay.interfaces import Hashes, Log, Mask
from assay.registry import nearest
from assay.store.keys import id_hash
from assay.store.table.decode import decode_row
from assay.store.table.facets import order, text_of, typed, unknown
from assay.store.table.labels import Columns, Ints, Reader

MOST_SIDES = 100
_FAILED = ("errored", "unparsed", "refused")


class Side(msgspec.Struct, kw_only=True):
    """The rows of one source, or of one facet value in it: those whose combination is in `chosen`. `lower` are labels
    under which less is better, beside those whose scorer says so; `facets` were read with the rows.
    `as_read`: the columns with the ids of the dataset, where those are others by now; `clusters` of
    items, by the name of what they share."""

    name: str
    source: Source
    log: Log
    columns: Columns
    chosen: Mask
    directions: Directions
    lower: Sequence[str] = ()
    facets: Sequence[str] = ()
    as_read: Columns | None = None
    clusters: dict[str, dict[int, int]] = {}

    def by(self, facet: str, values: Sequence[Any] = ()) -> "list[Side]":
        """A part for each value of a facet that was read: for those given, or for all that there are, in order."""
        at = self.facets.index(facet)
        where = str(self.source.path)
        own = compress(self.columns.combinations, self.chosen)
        return [
            msgspec.structs.replace(
                self,
                name=text_of(value),
                chosen=self.chosen & having(self.columns, at, facet, value, where),
            )
            for value in list(values) or _distinct(combination.values[at] for combination in own)
        ]

    @property
    def partial(self) -> str:
        """What is present of what was planned, where that is not all."""
        return self.source.partial()

    def labels(self, *, verdicts: bool = True) -> dict[str, str]:
        """Labels with a verdict, or all, and the scorer of each."""
        chosen = compress(self.columns.combinations, self.chosen)
        return {row.label: row.scorer for row in chosen if row.outcome == "scored" or not verdicts}

    def rows(self, label: str, scorer: str = "") -> Ints:
        """Places of the rows under a label. A side where every call of the scorer failed has only rows that name
        the scorer itself, and those count."""
        combinations = self.columns.combinations
        named = self.chosen & np.array([combination.label == label for combination in combinations])
        if not named.any() and scorer:
            named = self.chosen & np.array(
                [
                    combination.scorer == scorer and combination.outcome in _FAILED
                    for combination in combinations
                ]
            )
        if not named.any():
            fix = nearest(label, self.labels(verdicts=False))
            raise UserError(f"{self.name!r} has no row with the label {label!r}", fix=fix)
        return np.flatnonzero(named[self.columns.combination])

    def lower_is_better(self, label: str, scorer: str) -> bool:
        return label in self.lower or self.directions.lower([scorer])

    def sample(
        self, bound: BoundMetric, label: str, scorer: str = "", only: Hashes | None = None
    ) -> Sample:
        """The rows of a metric in an order that does not depend on their order on disk."""
        columns = self.columns
        at = self._rows_together(bound) if label == bound.together else self.rows(label, scorer)
        if only is not None:
            at = at[np.isin(columns.ids[columns.item[at]], only)]
        outcome, passed, score = verdicts(columns)
        at = at[np.lexsort((score[at], columns.sample[at], columns.item[at]))]
        joined = joined_columns([bound], self.as_read or columns, self.sources())
        rows = at if columns.row is None else columns.row[at]
        return Sample(
            label=label,
            item=columns.item[at],
            sample=columns.sample[at],
            passed=passed[at],
            score=score[at],
            outcome=outcome[at],
            load=lambda: [self.row(int(place)) for place in at],
            take=lambda name: joined[name].take(rows),
            lower_is_better=self.lower_is_better(label, scorer),
            scale=self.directions.scale([scorer]),
        )

    def _rows_together(self, bound: BoundMetric) -> Ints:
        """Places of the rows under all labels that a metric takes together."""
        taken = np.array(
            [bound.takes(combination.label) for combination in self.columns.combinations]
        )
        return np.flatnonzero((self.chosen & taken)[self.columns.combination])

    def sources(self) -> Sources:
        return _sources(self.source, self.log)

    def cluster_of(self, items: Hashes, name: str) -> Hashes:
        """Return the cluster of each item, the same on all sides; one without a value is its own."""
        own = self.clusters.get(name)
        if own is None:
            columns = self.columns
            rows = np.arange(len(columns.item)) if columns.row is None else columns.row
            values = cluster_column(name, self.as_read or columns, self.sources()).take(rows)
            found = item_clusters(values, columns.item, name)
            own = {int(columns.ids[at]): id_hash(f"cluster {key}") for at, key in found.items()}
            self.clusters[name] = own
        return np.array([own.get(item, item) for item in items.tolist()], np.uint64)

    def row(self, place: int) -> dict[str, Any]:
        """A whole row, by its place among the columns."""
        return decode_row(self.log.read(int(self.columns.positions[place])), str(self.source.path))


def rows_of(source: Source) -> Log:
    return source.log("evaluation", f"score its responses first: assay evaluate {source.path}")


def _sources(source: Source, log: Log) -> Sources:
    return Sources([log], source.logs("run"), source.logs("dataset"))


def read_columns(source: Source, log: Log, facets: Sequence[str]) -> Columns:
    """All rows of a source, with facets that the rows lack taken from their responses and items."""
    where = source.place
    reader = Reader(facets, positions=True)
    reader.read(log, where)
    columns = reader.columns()
    if missing(columns, facets):
        sources = _sources(source, log)
        join_responses(columns, facets, sources)
        join_items(columns, facets, sources)
    for at, facet in enumerate(facets):
        if all(combination.values[at] is UNSET for combination in columns.combinations):
            raise unknown(
                facet, [decode_row(line, where) for _, line in islice(log.scan(), 1)], where=where
            )
    return under_every_label(columns)


def read_side(source: Source, where: Mapping[str, Any]) -> Side:
    """The rows of a source whose facets have these values."""
    return read_sides(source, {source.name: where})[0]


def read_sides(
    source: Source, sides: Mapping[str, Mapping[str, Any]], more: Sequence[str] = ()
) -> list[Side]:
    """Sides by name, each the rows whose facets have its values; the source is read once. `more` are facets that the
    sides are to be split by."""
    log = rows_of(source)
    facets = list(dict.fromkeys([*(facet for where in sides.values() for facet in where), *more]))
    before, columns = source.facts.get("columns", ([], None))
    if columns is not None and set(facets) <= set(before):
        facets = before
    else:
        columns = read_columns(source, log, facets)
        # the next comparison is probably of the same rows
        source.facts["columns"] = (facets, columns)
    directions = Directions([source.manifest("evaluation")])
    read: list[Side] = []
    for name, where in sides.items():
        chosen = _all(columns)
        for facet, value in where.items():
            chosen &= having(columns, facets.index(facet), facet, value, source.place)
        if not chosen.any():
            raise UserError(f"no row has all of {dict(where)!r}", where=source.place)
        parts: dict[str, Any] = {"source": source, "log": log, "columns": columns, "facets": facets}
        read.append(Side(name=name, chosen=chosen, directions=directions, **parts))
    return read


def read_sides_by(
    source: Source, facet: str, values: Sequence[Any], where: Mapping[str, Any]
) -> list[Side]:
    """One side for each value of a facet: for those given, or for all that there are, in order."""
    return read_sides(source, {source.name: where}, [facet])[0].by(facet, values)


def find_sides(
    paths: Sequence[str | Path],
    facet: str,
    values: Sequence[Any],
    where: Mapping[str, Any],
    lower: Sequence[str] = (),
) -> list[Side]:
    """At least two sides with different names."""
    if facet:
        if len(paths) != 1:
            raise UserError(
                "--facet compares within one experiment",
                fix="name one path, then the facet's values",
            )
        sides = read_sides_by(find_source(paths[0], "evaluation"), facet, values, where)
        fix = "name at least two values of the facet"
    else:
        sides = [read_side(source, where) for source in find_sources(paths, "evaluation")]
        fix = (
            "name a second experiment, or use --facet metadata.model_id to compare within this one"
        )
    if len(sides) < 2:
        only = f": {sides[0].name!r}" if sides else ""
        raise UserError(f"there is only one side to compare{only}", fix=fix)
    if len(sides) > MOST_SIDES:
        raise UserError(
            f"there are {len(sides):,} values of {facet!r}",
            fix="name those to compare after the path",
        )
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        raise UserError(
            f"{max(names, key=names.count)!r} is named twice", fix="name each side once"
        )
    shared = {label for side in sides for label in side.labels()}
    for label in lower:
        if label not in shared:
            raise UserError(
                f"no row has the label {label!r}", where="--lower", fix=nearest(label, shared)
            )
    for side in sides:
        side.lower = lower
    return sides


class _Planned(msgspec.Struct):
    policy: Policy | None = None
    cluster_by: str = ""


def planned_metrics(sources: Iterable[Source]) -> Iterator[_Planned]:
    """Yield what the experiments' own metrics are planned with."""
    for source in sources:
        manifest = source.manifest("aggregation")
        try:
            yield from msgspec.convert(
                manifest.plan.get("metrics", []) if manifest else [], list[_Planned]
            )
        except msgspec.ValidationError as error:
            fix = "run `assay aggregate` on it again"
            raise UserError(
                f"the manifest's plan cannot be read: {error}", where=str(source.path), fix=fix
            ) from None


def shared_cluster_by(sources: Iterable[Source]) -> str:
    """Return what the experiments' own metrics are clustered by, if that is one and the same."""
    names: set[str] = set()
    for source in sources:
        names |= {metric.cluster_by for metric in planned_metrics([source])} or {""}
    return names.pop() if len(names) == 1 else ""


def having(columns: Columns, at: int, facet: str, value: Any, where: str) -> Mask:
    """The combinations with this value of facet `at`. Where no row has it, the value that is written alike."""
    values = [
        None if combination.values[at] is UNSET else combination.values[at]
        for combination in columns.combinations
    ]
    exact = np.array([typed(combination) == typed(value) for combination in values])
    if not exact.any():
        exact = np.array([text_of(combination) == text_of(value) for combination in values])
    if not exact.any():
        texts = [text_of(combination) for combination in _distinct(values)]
        raise UserError(
            f"no row has {facet} = {value!r}", where=where, fix=nearest(text_of(value), texts)
        )
    return exact


def _all(columns: Columns) -> Mask:
    return np.ones(len(columns.combinations), dtype=np.bool_)


def _distinct(values: Iterable[Any]) -> list[Any]:
    distinct = {
        typed(value): value for value in (None if value is UNSET else value for value in values)
    }
    return sorted(distinct.values(), key=order)


def checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise UserError(
            f"a confidence level lies between 0 and 1, got {level:g}", fix="0.95 is usual"
        )
    return level


def common_labels(sides: Sequence[Side], bound: BoundMetric | None = None) -> list[str]:
    """Return the labels that a metric takes and all sides have; of sides where every call failed nothing is known."""
    labels_of = {side.name: side.labels() for side in sides}
    known = [labels for labels in labels_of.values() if labels]
    shared = set[str]().union(*known).intersection(*known)
    if bound is not None:
        shared = set(filter(bound.takes, shared))
    if not shared:
        have = "; ".join(
            f"{name} has {', '.join(sorted(labels)) or 'none'}"
            for name, labels in labels_of.items()
        )
        pairs = quote("=".join(map(min, known)))
        fix = (
            f"score them with the same methods, or pair labels that mean the same: --label {pairs}"
        )
        raise UserError(f"no label is common to all: {have}", fix=fix)
    return sorted(shared)


def shared_label(
    sides: Sequence[Side], wanted: str = "", bound: BoundMetric | None = None
) -> tuple[str, str]:
    """The label to look at, and its scorer: the one wanted, or the only one that all sides have."""
    if bound is not None and bound.together and wanted in ("", bound.together):
        return bound.together, ""
    labelled = [(side, labels) for side in sides if (labels := side.labels())]
    without_verdict = wanted and any(
        combination.label == wanted
        for side, labels in labelled
        if wanted not in labels
        for combination in side.columns.combinations
    )
    if not labelled or without_verdict:
        rows = f"row with the label {wanted!r}" if without_verdict else "row"
        raise UserError(
            f"no {rows} has a verdict: all calls failed",
            where=", ".join(dict.fromkeys(str(side.source.path) for side in sides)),
            fix="look at the rows' `error` fields; assay run --retry-errors tries again",
        )
    for side, labels in labelled:
        if wanted and wanted not in labels:
            raise UserError(f"{side.name!r} has no label {wanted!r}", fix=nearest(wanted, labels))
    shared = [wanted] if wanted else common_labels(sides, bound)
    columns = bound.columns if bound is not None else []
    if columns and all(name.split(".")[0] == "response" for name in columns):
        shared = shared[:1]  # all labels are about the same responses
    if len(shared) > 1:
        raise UserError(
            "the rows have several labels", fix=f"add --label, one of {', '.join(shared)}"
        )
    return shared[0], labelled[0][1][shared[0]]
