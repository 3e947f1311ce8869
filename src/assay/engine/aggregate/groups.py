"""Columns of rows become groups: under which labels a row counts, its verdict, and an order that depends on the rows
alone."""

import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.engine.aggregate.bind import BoundMetric
from assay.engine.aggregate.join import Joined
from assay.engine.aggregate.measure import Sample, measure
from assay.engine.aggregate.planned import Planned
from assay.engine.evaluate.directions import Directions
from assay.engine.evaluate.judges import Judges
from assay.sdk import FloatArray, Hashes, JsonObject, Log, MetricRow, UserError, nearest, short
from assay.store.table.decode import decode_row
from assay.store.table.facets import order, typed
from assay.store.table.labels import (
    OUTCOMES,
    SKIPPED,
    VALUED,
    Codes,
    Columns,
    Combination,
    Ints,
    labels_apart,
)
from assay.store.table.processes import Processes

Ties = tuple[Hashes, ...]


def sorted_rows(
    group: Codes, item: Codes, sample: Codes, ties: Callable[[], list[npt.NDArray[Any]]]
) -> Ints:
    """The order of rows by group, item and sample.

    Rows may tie, as those of two models without a facet for the model. Then `ties` decides: their keys where their
    order matters, otherwise their scores, so that sums are equal to the last bit; never their place in a file.
    """
    lowest = int(sample.min())
    items = int(item.max()) + 1
    samples = int(sample.max()) - lowest + 1
    combined = (int(group.max()) + 1) * items * samples
    if combined < 2**62:
        joint = group.astype(np.int64 if combined >= 2**31 else np.int32)
        joint *= items
        joint += item
        joint *= samples
        joint += sample - lowest
        found = np.argsort(joint)
        joint.sort()
        if not (joint[1:] == joint[:-1]).any():
            return found
    return np.lexsort((*ties(), sample, item, group))


class _RowKey(msgspec.Struct):
    key: str = ""


def tie_breakers(logs: Iterable[Log]) -> Ties:
    """Columns, the last one first to sort by, that depend on nothing but the row: its text and its key."""
    decode = msgspec.json.Decoder(_RowKey).decode
    texts = array("Q")
    keys = array("Q")
    for log in logs:
        for _, line in log.scan():
            if not line.strip():
                continue
            try:
                key = decode(line).key
            except msgspec.DecodeError:
                key = ""
            keys.append(short(key) if key else 0)
            texts.append(crc32(line))
    return np.frombuffer(texts, dtype=np.uint64), np.frombuffer(keys, dtype=np.uint64)


Unit = tuple[int, int, int]  # a set of metrics, a group, a metric
_Group = tuple[tuple[Any, ...], str | None, set[str]]
_DICTS = 20  # as many times as a row of columns does a row as a dict cost

_FAILED = {"errored", "unparsed", "refused"}


def under_every_label(columns: Columns) -> Columns:
    """Rows of scorer calls that failed before they could name a label count under every label that the scorer gave
    where facets are the same, else under all of its labels: otherwise a failure would be missing from the very
    denominators that it belongs to."""
    columns.combinations = given = _with_labels_apart(columns)
    labels: dict[tuple[str, bytes], dict[str, None]] = {}
    for one in given:
        if one.scorer and one.outcome == "scored":
            for place in (_place(one), (one.scorer, b"")):
                labels.setdefault(place, {})[one.label] = None
    spread: dict[int, list[int]] = {}
    combinations = list(given)
    for number, one in enumerate(given):
        own = labels.get(_place(one)) or labels.get((one.scorer, b""), {})
        if own and one.outcome in _FAILED and one.label == one.scorer and one.label not in own:
            start = len(combinations)
            combinations += [one._replace(label=label) for label in own]
            spread[number] = list(range(start, len(combinations)))
    if not spread:
        return columns
    copies = np.array([len(spread.get(number, "1")) for number in range(len(given))])
    row = np.repeat(np.arange(len(columns.item)), copies[columns.combination])
    combination = columns.combination[row]
    for number, codes in spread.items():
        at = combination == number
        combination[at] = np.resize(codes, int(at.sum()))
    return Columns(
        item=columns.item[row],
        sample=columns.sample[row],
        score=columns.score[row],
        combination=combination,
        combinations=combinations,
        ids=columns.ids,
        starts=np.searchsorted(row, columns.starts).tolist(),
        positions=columns.positions[row] if len(columns.positions) else columns.positions,
        row=row,
    )


def _with_labels_apart(columns: Columns) -> list[Combination]:
    """Return the combinations; labels that several scorers gave to an answer are told apart."""
    given = columns.combinations
    code = columns.combination
    places: dict[bytes, int] = {}
    place = np.array([places.setdefault(_place(one)[1], len(places)) for one in given], np.int32)
    labels = labels_apart(given, code, columns.item, columns.sample, place[code])
    return [one._replace(label=label) for one, label in zip(given, labels, strict=True)]


def _place(one: Combination) -> tuple[str, bytes]:
    """A scorer, and the facets of a row."""
    return one.scorer, typed([None if value is UNSET else [value] for value in one.values])


def verdicts(columns: Columns) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], FloatArray]:
    """Return outcome (its place in OUTCOMES), passed (-1: none) and score of every row.

    A missing score is 1 or 0 by `passed`. A missing `passed` is a score of 1 or 0, which any
    threshold reads alike. A scored row with neither has only a value.
    """
    given = columns.combinations
    code = columns.combination
    outcome = np.array([OUTCOMES.index(one.outcome) for one in given], dtype=np.int8)[code]
    said = [-1 if one.passed is None else int(one.passed) for one in given]
    verdict = np.array(said, dtype=np.int8)[code]
    score = columns.score
    unscored = np.isnan(columns.score)
    if unscored.any():
        outcome[unscored & (verdict < 0) & (outcome == 0)] = VALUED
        score = np.where(unscored, verdict == 1, score)
    bare = (verdict < 0) & (outcome == 0)
    passed = np.where(bare, score == 1, verdict == 1).astype(np.int8)
    passed[bare & (score != 0) & (score != 1)] = -1
    return outcome, passed, score


class _TiesError(Exception):
    """Rows tie, and their order matters."""


class _Set(NamedTuple):
    """Metrics that share their facets, and the labels that are one group, share the sorting and the groups. A group is
    its facet values, its label (None: these metrics do not look at it) and the scorers of its rows; `ranks` has that
    of each combination."""

    metrics: dict[int, BoundMetric]
    places: dict[str, int]
    groups: list[_Group]
    ranks: Codes


class Grouping:
    """All rows, and what their groups are made from."""

    def __init__(
        self,
        columns: Columns,
        logs: Sequence[Log],
        further: dict[str, Joined],
        planned: Planned,
        judges: Judges,
        directions: Directions,
    ) -> None:
        self.columns = columns
        self.logs = logs
        self.further = further
        self.planned = planned
        self.judges = judges
        self.directions = directions
        self.outcome, self.passed, self.score = verdicts(columns)
        columns.score = self.score  # so that there is one of it
        self._tie_breakers: Ties | None = None
        self._process = os.getpid()
        self._processes = Processes()

    def measured(
        self,
        facets: Sequence[str],
        metrics: Sequence[BoundMetric],
        processes: Processes | None = None,
    ) -> list[MetricRow]:
        """The rows in order of metrics, each in order of its groups."""
        self._processes = processes = processes or Processes()
        sets = self._sets(facets, metrics)
        counts = np.bincount(self.columns.combination, minlength=len(self.columns.combinations))
        units: list[Unit] = []
        weights: list[float] = []
        for at, shared in enumerate(sets):
            rows = np.bincount(shared.ranks, counts, len(shared.groups)).tolist()
            for rank, (_, label, _) in enumerate(shared.groups):
                for number, bound in shared.metrics.items():
                    if label is not None and rows[rank] and (bound.together or bound.takes(label)):
                        units.append((at, rank, number))
                        weights.append(rows[rank] * (_DICTS if bound.wants_rows else 1))
        measure = partial(self._measured, sets)
        parts = processes.each(units, weights, measure)
        if None in parts:
            self._read_ties()
            parts = processes.each(units, weights, measure)
        made = [(number, rank, rows) for part in parts for number, rank, rows in part or ()]
        return [row for _, _, rows in sorted(made, key=itemgetter(0, 1)) for row in rows]

    def item_means(self) -> tuple[Hashes, FloatArray]:
        """Return the items, as hashes, of the first label and facets, and the mean score of each."""
        columns = self.columns
        groups = [(one.label, *_place(one)) for one in columns.combinations]
        first = min(groups)
        own = np.array([group == first for group in groups])
        at = np.flatnonzero(own[columns.combination] & (self.outcome == 0))
        rows = np.bincount(columns.item[at], minlength=len(columns.ids))
        there = rows > 0
        sums = np.bincount(columns.item[at], self.score[at], len(rows))
        return columns.ids[there], sums[there] / rows[there]

    def _sets(self, facets: Sequence[str], metrics: Sequence[BoundMetric]) -> list["_Set"]:
        labels = {one.label for one in self.columns.combinations}
        sets: dict[Any, dict[int, BoundMetric]] = {}
        for number, bound in enumerate(metrics):
            _check_labels(bound, labels, self.columns)
            joined = frozenset(filter(bound.takes, labels)) if bound.together else None
            sets.setdefault((*bound.facets, joined, bound.together), {})[number] = bound
        made: list[_Set] = []
        for (*chosen, joined, together), sharing in sets.items():
            places = {facet: facets.index(facet) for facet in chosen}
            named = {
                label: str(together or label) for label in (labels if joined is None else joined)
            }
            made.append(_Set(sharing, places, *_groups(self.columns.combinations, places, named)))
        return made

    def _measured(
        self, sets: Sequence["_Set"], units: Sequence[Unit]
    ) -> list[tuple[int, int, list[MetricRow]]] | None:
        """Metric, group and rows of each unit. None, in a child, if rows tie, and what decides then is not read yet."""
        made: list[tuple[int, int, list[MetricRow]]] = []
        by_set: dict[int, dict[int, list[int]]] = {}
        for at, rank, number in units:
            by_set.setdefault(at, {}).setdefault(rank, []).append(number)
        for at, chosen in by_set.items():
            try:
                made += self._measured_set(sets[at], chosen)
            except _TiesError:
                return None
        return made

    def _measured_set(
        self, shared: "_Set", chosen: Mapping[int, Sequence[int]]
    ) -> list[tuple[int, int, list[MetricRow]]]:
        made: list[tuple[int, int, list[MetricRow]]] = []
        for rank, rows in self._sorted_groups(shared, chosen):
            if (self.outcome[rows] != SKIPPED).any():  # else no verdict is due
                sample = self._sample(shared, rank, rows)
                made += [(at, rank, measure(shared.metrics[at], sample)) for at in chosen[rank]]
        return made

    def _sample(self, shared: "_Set", rank: int, rows: Ints) -> Sample:
        values, label, scorers = shared.groups[rank]
        assert label is not None
        facets = dict(zip(shared.places, values, strict=True))
        return Sample(
            label=label,
            facets=facets,
            item=self.columns.item[rows],
            sample=self.columns.sample[rows],
            passed=self.passed[rows],
            score=self.score[rows].astype(np.float64),
            outcome=self.outcome[rows],
            load=partial(self._load, rows),
            take=partial(self._take, rows),
            planned=self.planned.count(facets, scorers),
            calibration=self.judges.calibration(label),
            warning=self.judges.warning(scorers, facets),
            lower_is_better=self.directions.lower(scorers),
            scale=self.directions.scale(scorers),
        )

    def _sorted_groups(self, shared: "_Set", chosen: Collection[int]) -> Iterator[tuple[int, Ints]]:
        """Yield the chosen groups of a set, in order, each with its rows by item and sample."""
        columns = self.columns
        group = shared.ranks[columns.combination]
        ordered = any(bound.ordered for bound in shared.metrics.values())
        if np.isin(shared.ranks, list(chosen)).all():
            rows = sorted_rows(group, columns.item, columns.sample, lambda: self._ties(ordered))
        else:
            own = np.flatnonzero(np.isin(group, list(chosen)))
            group = group[own]
            ties = lambda: [column[own] for column in self._ties(ordered)]  # noqa: E731
            rows = own[sorted_rows(group, columns.item[own], columns.sample[own], ties)]
        rows = rows.astype(np.min_scalar_type(len(columns.item)), copy=False)
        ends = np.cumsum(np.bincount(group, minlength=len(shared.groups))).tolist()
        del group
        for number in sorted(chosen):
            yield number, rows[[0, *ends][number] : ends[number]]

    def _ties(self, ordered: bool) -> list[npt.NDArray[Any]]:
        if not ordered:
            return [self.score]
        if self._tie_breakers is None:
            self._read_ties()
        row = self.columns.row
        return [column if row is None else column[row] for column in self._tie_breakers or ()]

    def _read_ties(self) -> None:
        if os.getpid() != self._process:  # each child would read all rows
            raise _TiesError
        parts = self._processes.over(self.logs, lambda: tie_breakers(self.logs))
        self._tie_breakers = tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _take(self, at: Ints, name: str) -> list[Any]:
        return self.further[name].take(at if self.columns.row is None else self.columns.row[at])

    def _load(self, at: Ints) -> list[JsonObject]:
        sources = np.searchsorted(self.columns.starts, at, side="right") - 1
        places = zip(sources.tolist(), self.columns.positions[at].tolist(), strict=True)
        return [
            decode_row(self.logs[source].read(position), "evaluation row")
            for source, position in places
        ]


def _check_labels(bound: BoundMetric, labels: set[str], columns: Columns) -> None:
    """A label that is included and that no row has is a slip, unless all calls failed before they could name one."""
    scored = any(combination.outcome == "scored" for combination in columns.combinations)
    for pattern in bound.include:
        if scored and not any(label == pattern or fnmatchcase(label, pattern) for label in labels):
            raise UserError(
                f"no row has the label {pattern!r}",
                where=f"metric {bound.name}",
                fix=nearest(pattern, labels),
            )


def _groups(
    combinations: Sequence[Combination], places: Mapping[str, int], named: Mapping[str, str]
) -> tuple[list[_Group], Codes]:
    """The groups in order of their facet values and label, and that of each combination. `named` has the name that a
    label has in these groups."""
    groups: dict[Any, _Group] = {}
    keys: list[Any] = []
    for one in combinations:
        values = tuple(
            None if one.values[at] is UNSET else one.values[at] for at in places.values()
        )
        label = named.get(one.label)
        key = (*map(typed, values), label)
        groups.setdefault(key, (values, label, set()))[2].add(one.scorer)
        keys.append(key)
    ranked = sorted(
        groups, key=lambda key: ([order(value) for value in groups[key][0]], groups[key][1] or "")
    )
    rank = {key: number for number, key in enumerate(ranked)}
    return [groups[key] for key in ranked], np.array([rank[key] for key in keys], dtype=np.int32)
