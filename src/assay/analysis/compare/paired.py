"""Experiments as sides that can be compared: their evaluation rows, read by the aggregator's
reader."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET

from assay.config.differences import by_name
from assay.engine.aggregate.groups import under_every_label, verdicts
from assay.engine.aggregate.join import (
    Joined,
    Sources,
    cluster_column,
    declared,
    join_items,
    join_responses,
    missing,
)
from assay.engine.aggregate.measure import BoundMetric, Policy, Sample, item_clusters
from assay.engine.evaluate.directions import Directions
from assay.engine.experiment.resolve import find_source, find_sources
from assay.engine.experiment.sources import Source
from assay.sdk import Hashes, JsonMapping, JsonObject, Log, UserError, check_name, id_hash, nearest
from assay.store.log import FileLog
from assay.store.table.columns import place_of
from assay.store.table.decode import NoRow, decode_row, read_blocks
from assay.store.table.facets import order, text_of, typed, unknown
from assay.store.table.join import Groups, Lookup
from assay.store.table.labels import Columns, Ints, Reader, in_fewer_bytes

T = TypeVar("T")
_FAILED = ("errored", "unparsed", "refused")
_Codes = list[int]


def once(of: "SideRows | Source", make: Callable[..., T], *given: Any) -> T:
    """Return what a function makes of something that was read, made once."""
    key = f"{make.__name__} {given}"
    if key not in of.facts:
        of.facts[key] = make(of, *given)
    return of.facts[key]


class SideRows(msgspec.Struct, kw_only=True, dict=True):
    """All rows of a source, which several sides share, with facets. A combination of label and
    facets is known by its place. `as_read`: the columns with the ids of the dataset, where those
    are others by now."""

    source: Source
    log: Log
    facets: Sequence[str]
    columns: Columns
    as_read: Columns | None = None
    facts: JsonObject = {}

    @cached_property
    def of_combination(self) -> list[Ints]:
        columns = self.columns
        return Groups(columns.combination, np.arange(len(columns.combinations))).rows()

    @cached_property
    def verdicts(self) -> Any:
        return verdicts(self.columns)

    @cached_property
    def directions(self) -> Directions:
        return Directions([self.source.manifest("evaluation")])

    @cached_property
    def sources(self) -> Sources:
        return _sources(self.source, self.log)

    def numbers(self, at: Ints) -> Ints:
        """Return the numbers of rows among those of the log."""
        return at if self.columns.row is None else self.columns.row[at]

    def having(self, facet: str, value: Any) -> _Codes:
        """Return the combinations with this value. Where no row has it, those with one that is
        written alike."""
        found = once(self, _by_value, facet)
        if typed(value) in found:
            return found[typed(value)][1]
        alike = [codes for own, codes in found.values() if text_of(own) == text_of(value)]
        if not alike:
            own = [own for own, _ in found.values()]
            texts = map(text_of, sorted(own, key=order))
            raise UserError(
                f"no row has {facet} = {value!r}",
                where=self.source.place,
                fix=nearest(text_of(value), texts),
            )
        return [*chain.from_iterable(alike)]


def _by_value(rows: SideRows, facet: str) -> dict[bytes, tuple[Any, _Codes]]:
    at = rows.facets.index(facet)
    found: dict[bytes, tuple[Any, _Codes]] = {}
    for code, one in enumerate(rows.columns.combinations):
        value = None if one.values[at] is UNSET else one.values[at]
        found.setdefault(typed(value), (value, []))[1].append(code)
    return found


def _columns_of(rows: SideRows, names: tuple[str, ...], cluster_by: str) -> dict[str, Joined]:
    columns = rows.as_read or rows.columns
    found = declared(names, columns, rows.sources)
    return found | (
        {cluster_by: cluster_column(cluster_by, columns, rows.sources)} if cluster_by else {}
    )


def _clusters(rows: SideRows, name: str) -> Hashes:
    """Return the cluster of each item, the same for all sources; one without a value is its own."""
    columns = rows.columns
    values = once(rows, _columns_of, (), name)[name].take(
        rows.numbers(np.arange(len(columns.item)))
    )
    clusters = columns.ids.copy()
    for at, key in item_clusters(values, columns.item, name).items():
        clusters[at] = id_hash(f"cluster {key}")
    return clusters


class Side(msgspec.Struct, kw_only=True, dict=True):
    """Rows of one source, or those of one facet value in it: the combinations that are `chosen`,
    in their order. `lower` are labels under which less is better, beside those whose scorer says
    so."""

    name: str
    whole: SideRows
    chosen: _Codes
    lower: Sequence[str] = ()

    @property
    def source(self) -> Source:
        return self.whole.source

    @property
    def columns(self) -> Columns:
        return self.whole.columns

    @property
    def partial(self) -> str:
        """Return what is present of what was planned, where that is not all."""
        return self.source.partial()

    def by(self, facet: str, values: Sequence[Any] = ()) -> "list[Side]":
        """A part for each value of a facet that was read: for those given, or for all that there
        are, in order."""
        own = set(self.chosen)
        present = once(self.whole, _by_value, facet).values()
        chosen = list(values) or sorted(
            (value for value, codes in present if not own.isdisjoint(codes)), key=order
        )
        parts = [(text_of(value), self.whole.having(facet, value)) for value in chosen]
        return [
            msgspec.structs.replace(self, name=name, chosen=[code for code in codes if code in own])
            for name, codes in parts
        ]

    @cached_property
    def _by_label(self) -> tuple[dict[str, _Codes], dict[str, _Codes], dict[str, str]]:
        """The combinations of each label, those of the failures of each scorer, and the scorer
        of each label that has a verdict."""
        of_label: dict[str, _Codes] = {}
        failures: dict[str, _Codes] = {}
        scorers: dict[str, str] = {}
        for code in self.chosen:
            one = self.columns.combinations[code]
            of_label.setdefault(one.label, []).append(code)
            if one.outcome in _FAILED:
                failures.setdefault(one.scorer, []).append(code)
            elif one.outcome == "scored":
                scorers[one.label] = one.scorer
        return of_label, failures, scorers

    def labels(self, *, verdicts: bool = True) -> dict[str, str]:
        """Labels with a verdict, or all, and the scorer of each."""
        of_label, _, scorers = self._by_label
        if verdicts:
            return scorers
        last = self.columns.combinations
        return {label: last[codes[-1]].scorer for label, codes in of_label.items()}

    def rows(self, label: str, scorer: str = "") -> Ints:
        """Places of the rows under a label. A side where every call of the scorer failed has
        only rows that name the scorer itself, and those count."""
        of_label, failures, _ = self._by_label
        codes = of_label.get(label) or (failures.get(scorer) if scorer else None)
        if not codes:
            fix = nearest(label, self.labels(verdicts=False))
            raise UserError(f"{self.name!r} has no row with the label {label!r}", fix=fix)
        return self._rows_of(codes)

    def _rows_of(self, codes: _Codes) -> Ints:
        found = self.whole.of_combination
        return (
            np.sort(np.concatenate([found[code] for code in codes]))
            if len(codes) > 1
            else found[codes[0]]
        )

    def _rows_together(self, bound: BoundMetric) -> Ints:
        """Places of the rows under all labels that a metric takes together."""
        taken = [codes for label, codes in self._by_label[0].items() if bound.takes(label)]
        return self._rows_of([*chain.from_iterable(taken)])

    def lower_is_better(self, label: str, scorer: str) -> bool:
        return label in self.lower or self.whole.directions.lower([scorer])

    def sample(
        self, bound: BoundMetric, label: str, scorer: str = "", only: Hashes | None = None
    ) -> Sample:
        """The rows of a metric in an order that does not depend on their order on disk."""
        whole, columns = self.whole, self.columns
        at = self._rows_together(bound) if label == bound.together else self.rows(label, scorer)
        if only is not None:
            at = at[np.isin(columns.ids[columns.item[at]], only)]
        outcome, passed, score = whole.verdicts
        at = at[np.lexsort((score[at], columns.sample[at], columns.item[at]))]
        joined = once(whole, _columns_of, tuple(bound.columns), bound.cluster_by)
        rows = whole.numbers(at)
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
            scale=whole.directions.scale([scorer]),
        )

    def cluster_of(self, items: Hashes, name: str) -> Hashes:
        """Return the cluster of each item, the same on all sides; one that this source lacks is
        its own."""
        at = Lookup(self.columns.ids).first(items)
        return np.where(at < 0, items, once(self.whole, _clusters, name)[at])

    def row(self, place: int) -> JsonObject:
        """A whole row, by its place among the columns."""
        line = self.whole.log.read(int(self.columns.positions[place]))
        return decode_row(line, str(self.source.path))


def rows_of(source: Source) -> FileLog:
    return source.log("evaluation", f"score its responses first: assay evaluate {source.path}")


Lost = list[tuple[FileLog, NoRow]]


def read_noting(log: FileLog, kind: type[T], lost: Lost) -> Iterator[tuple[int, T]]:
    """Yield (position, row) of the rows of a log, and add to `lost` what is none."""
    for block in read_blocks(log, kind):
        lost += [(log, line) for line in block.unreadable]
        yield from zip(block.positions.tolist(), block.rows, strict=True)


def left_out(unreadable: Lost) -> list[str]:
    """Return a note about the lines of logs that are no rows, if there are any."""
    lines = f"{len(unreadable):,} unreadable line{'s' * (len(unreadable) > 1)} left out"
    return [
        f"{lines} (the first: {place_of(log, str(log.path), line.position)}, {line.reason})"
        for log, line in unreadable[:1]
    ]


def _sources(source: Source, log: Log) -> Sources:
    return Sources([log], source.logs("run"), source.logs("dataset"))


def _read_columns(source: Source, log: Log, facets: Sequence[str]) -> Columns:
    """All rows of a source, with facets that the rows lack taken from their responses and items."""
    where = source.place
    reader = Reader(facets, positions=True)
    reader.read(log, where)
    columns = reader.columns()
    columns.sample = in_fewer_bytes(columns.sample)
    columns.combination = in_fewer_bytes(columns.combination)
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


def read_side(source: Source, where: JsonMapping) -> Side:
    """The rows of a source whose facets have these values."""
    return read_sides(source, {source.name: where})[0]


def read_sides(
    source: Source, sides: Mapping[str, JsonMapping], more: Sequence[str] = ()
) -> list[Side]:
    """Sides by name, each the rows whose facets have its values; the source is read once. `more`
    are facets that the sides are to be split by."""
    facets = list(dict.fromkeys([*chain.from_iterable(sides.values()), *more]))
    whole: SideRows | None = source.facts.get("rows")
    if whole is None or not set(facets) <= set(whole.facets):
        log = rows_of(source)
        columns = _read_columns(source, log, facets)
        # the next comparison is probably of the same rows
        whole = SideRows(source=source, log=log, columns=columns, facets=facets)
        source.facts["rows"] = whole
    read: list[Side] = []
    for name, where in sides.items():
        chosen = set(range(len(whole.columns.combinations)))
        for facet, value in where.items():
            chosen.intersection_update(whole.having(facet, value))
        if not chosen:
            raise UserError(f"no row has all of {dict(where)!r}", where=source.place)
        read.append(Side(name=name, whole=whole, chosen=sorted(chosen)))
    return read


def planned_scorers(source: Source) -> dict[str, JsonObject]:
    """Return the scorers that gave a source's labels, by name, as its manifest has them."""
    manifest = source.manifest("evaluation")
    return by_name(manifest.plan.get("scorers")) if manifest else {}


def only_label(labels: Sequence[str], of: str = "rows") -> str:
    """Return the only label that there is to look at."""
    if len(labels) != 1:
        raise UserError(
            f"the {of} have several labels", fix=f"add --label, one of {', '.join(labels)}"
        )
    return labels[0]


def sources_of(sides: Iterable[Side]) -> list[Source]:
    """Return the sources of some sides, each once."""
    return list({id(side.source): side.source for side in sides}.values())


def find_sides(
    paths: Sequence[str | Path],
    facet: str,
    values: Sequence[Any],
    where: JsonMapping,
    lower: Sequence[str] = (),
) -> list[Side]:
    """At least two sides with different names."""
    if facet:
        if len(paths) != 1:
            raise UserError(
                "--facet compares within one experiment",
                fix="name one path, then the facet's values",
            )
        source = find_source(paths[0], "evaluation")
        sides = read_sides(source, {source.name: where}, [facet])[0].by(facet, values)
        fix = "name at least two values of the facet"
    else:
        sides = [read_side(source, where) for source in find_sources(paths, "evaluation")]
        fix = (
            "name a second experiment, or use --facet metadata.model_id to compare within this one"
        )
    if len(sides) < 2:
        only = "".join(f": {side.name!r}" for side in sides)
        raise UserError(f"there is only one side to compare{only}", fix=fix)
    names = [side.name for side in sides]
    if len(set(names)) < len(names):
        raise UserError(
            f"{max(names, key=names.count)!r} is named twice", fix="name each side once"
        )
    shared = {label for side in sides for label in side.labels()}
    for label in lower:
        check_name(label, shared, "no row has the label", "--lower")
    for side in sides:
        side.lower = lower
    return sides


class _PlannedMetric(msgspec.Struct):
    policy: Policy | None = None
    cluster_by: str = ""


def planned_metrics(sources: Iterable[Source]) -> Iterator[_PlannedMetric]:
    """Yield what the experiments' own metrics are planned with."""
    for source in sources:
        manifest = source.manifest("aggregation")
        try:
            yield from msgspec.convert(
                manifest.plan.get("metrics", []) if manifest else [], list[_PlannedMetric]
            )
        except msgspec.ValidationError as error:
            raise UserError(
                f"the manifest's plan cannot be read: {error}",
                where=str(source.path),
                fix="run `assay aggregate` on it again",
            ) from None


def shared_cluster_by(sources: Iterable[Source]) -> str:
    """Return what the experiments' own metrics are clustered by, if that is one and the same."""
    names: set[str] = set()
    for source in sources:
        names |= {metric.cluster_by for metric in planned_metrics([source])} or {""}
    return names.pop() if len(names) == 1 else ""


def checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise UserError(
            f"a confidence level lies between 0 and 1, got {level:g}", fix="0.95 is usual"
        )
    return level


def common_labels(sides: Sequence[Side], bound: BoundMetric | None = None) -> list[str]:
    """Return the labels that a metric takes and all sides have; of sides where every call failed
    nothing is known."""
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
    labelled = [side for side in sides if side.labels()]
    lacking = [side for side in labelled if wanted and wanted not in side.labels()]
    without_verdict = any(wanted in side.labels(verdicts=False) for side in lacking)
    if not labelled or without_verdict:
        rows = f"row with the label {wanted!r}" if without_verdict else "row"
        raise UserError(
            f"no {rows} has a verdict: all calls failed",
            where=", ".join(dict.fromkeys(str(side.source.path) for side in sides)),
            fix="look at the rows' `error` fields; assay run --retry-errors tries again",
        )
    for side in lacking:
        check_name(wanted, side.labels(), f"{side.name!r} has no label")
    shared = [wanted] if wanted else common_labels(sides, bound)
    columns = bound.columns if bound is not None else []
    if columns and all(name.split(".")[0] == "response" for name in columns):
        shared = shared[:1]  # all labels are about the same responses
    label = only_label(shared)
    return label, labelled[0].labels()[label]
