"""Columns of rows become groups: under which labels a row counts, its verdict, how many rows a group should have, and
an order that depends on the rows alone."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from assay.engine.aggregate.bind import BoundMetric
from assay.engine.aggregate.columns import OUTCOMES, SKIPPED, VALUED, Columns, Ints, decode_row
from assay.engine.aggregate.facets import find_in_row, order, typed
from assay.engine.aggregate.join import Joined
from assay.engine.aggregate.measure import Sample, measure
from assay.engine.evaluate.directions import Directions
from assay.engine.evaluate.judges import Judges
from assay.errors import UserError
from assay.interfaces import FloatArray, Log
from assay.records import Manifest, MetricRow
from assay.registry import nearest
from assay.store.keys import short

Codes = npt.NDArray[np.int32]
_LOOKED_AT = 1000


class Planned:
    """Knows the runs' tasks, and which scorers give one label of a name to each response (not those of matches)."""

    def __init__(self, runs: Sequence[Manifest | None], evaluations: Sequence[Log]) -> None:
        self._runs = runs
        self._plain = _plain_scorers(evaluations)

    def count(self, facets: Mapping[str, Any], scorers: Iterable[str]) -> int | None:
        """The planned rows of one label of a group; None if a facet is not a property of the tasks."""
        if not self._runs or not set(scorers) <= self._plain:
            return None
        total = 0
        for manifest in self._runs:
            tasks = manifest.plan.get("tasks") if manifest else None
            if manifest is None or manifest.planned is None or not tasks:
                return None
            belongs = [_belongs(task, facets) for task in tasks]
            if None in belongs:
                return None
            total += manifest.planned // len(tasks) * belongs.count(True)
        return total


def _belongs(task: Mapping[str, Any], facets: Mapping[str, Any]) -> bool | None:
    """Whether the task's rows are in the group; None if it does not say."""
    shown = task.get("facets") or {}
    row = {"task": task.get("name"), "metadata": shown}
    if "model_id" in shown:
        row["model_name"] = shown["model_id"]
    found = {facet: find_in_row(row, facet) for facet in facets}
    if UNSET in found.values():
        return None
    return all(typed(found[facet]) == typed(value) for facet, value in facets.items())


def _plain_scorers(logs: Sequence[Log]) -> set[str]:
    seen: dict[str, bool] = {}
    for log in logs:
        for _, line in islice(log.scan(), _LOOKED_AT):
            row = decode_row(line if line.strip() else b"{}", "evaluation row")
            answers = row.get("responses")
            plain = not row.get("players") and not (isinstance(answers, list) and len(answers) > 1)
            seen.setdefault(str(row.get("scorer") or ""), plain)
    return {name for name, plain in seen.items() if plain and name}


_FAILED = {"errored", "unparsed", "refused"}


def under_every_label(columns: Columns) -> Columns:
    """Rows of scorer calls that failed before they could name a label count under every label of that scorer:
    otherwise a failure would be missing from the very denominators that it belongs to."""
    labels: dict[str, dict[str, None]] = {}
    for one in columns.combinations:
        if one.scorer and one.outcome == "scored":
            labels.setdefault(one.scorer, {})[one.label] = None
    spread: dict[int, list[int]] = {}
    combinations = list(columns.combinations)
    for number, one in enumerate(columns.combinations):
        own = labels.get(one.scorer, {})
        if own and one.outcome in _FAILED and one.label == one.scorer and one.label not in own:
            spread[number] = list(range(len(combinations), len(combinations) + len(own)))
            combinations += [one._replace(label=label) for label in own]
    if not spread:
        return columns
    copies = np.array([len(spread.get(number, "1")) for number in range(len(columns.combinations))])
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


def verdicts(columns: Columns) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_], FloatArray]:
    """Outcome (its place in OUTCOMES), passed and score of every row.

    A missing score is 1 or 0 by `passed`, a missing `passed` is score > 0; a scored row with neither has only a value.
    """
    given = columns.combinations
    outcome = np.array([OUTCOMES.index(one.outcome) for one in given], dtype=np.int8)[columns.combination]
    passed = np.array([-1 if one.passed is None else int(one.passed) for one in given], dtype=np.int8)
    verdict = passed[columns.combination]
    score, unscored = columns.score, np.isnan(columns.score)
    if unscored.any():
        outcome[unscored & (verdict < 0) & (outcome == 0)] = VALUED
        score = np.where(unscored, verdict == 1, score)
    return outcome, np.where(verdict < 0, score > 0, verdict == 1), score


class _RowKey(msgspec.Struct):
    key: str = ""


def tie_breakers(logs: Iterable[Log]) -> tuple[npt.NDArray[np.uint64], ...]:
    """Columns, the last one first to sort by, that depend on nothing but the row: its text and its key."""
    decode = msgspec.json.Decoder(_RowKey).decode
    texts, keys = array("Q"), array("Q")
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

    def measured(self, facets: Sequence[str], metrics: Sequence[BoundMetric]) -> list[MetricRow]:
        """Metrics that share their facets, and the labels that are one group, share the sorting and the groups."""
        by_metric: list[list[MetricRow]] = [[] for _ in metrics]
        labels = {one.label for one in self.columns.combinations}
        sets: dict[Any, list[tuple[int, BoundMetric]]] = {}
        for number, bound in enumerate(metrics):
            _check_labels(bound, labels, self.columns)
            joined = frozenset(filter(bound.takes, labels)) if bound.together else None
            sets.setdefault((*bound.facets, joined, bound.together), []).append((number, bound))
        for at, ((*chosen, joined, together), sharing) in enumerate(sets.items(), 1):
            places = {facet: facets.index(facet) for facet in chosen}
            named = {label: str(together or label) for label in (labels if joined is None else joined)}
            for sample in self._samples(places, named, any(bound.ordered for _, bound in sharing), at == len(sets)):
                for number, bound in sharing:
                    if joined is not None or bound.takes(sample.label):
                        by_metric[number] += measure(bound, sample)
        return [row for rows in by_metric for row in rows]

    def _samples(self, places: dict[str, int], named: Mapping[str, str], ordered: bool, last: bool) -> Iterator[Sample]:
        """The groups in order of their facet values and label; groups without a due verdict are left out, and so are
        labels that are not in `named`, which has the name of each in these groups. The `last` time the columns are
        given up as they are sorted, so that there is never a second copy of all of them."""
        columns = self.columns
        groups: dict[Any, tuple[tuple[Any, ...], str | None, set[str]]] = {}
        keys: list[Any] = []
        for one in columns.combinations:
            values = tuple(None if one.values[at] is UNSET else one.values[at] for at in places.values())
            label = named.get(one.label)
            key = (*map(typed, values), label)
            groups.setdefault(key, (values, label, set()))[2].add(one.scorer)
            keys.append(key)
        ranked = sorted(groups, key=lambda key: ([order(value) for value in groups[key][0]], groups[key][1] or ""))
        rank = {key: number for number, key in enumerate(ranked)}
        group = np.array([rank[key] for key in keys], dtype=np.int32)[columns.combination]
        rows = _sorted(group, columns.item, columns.sample, lambda: self._ties(ordered))
        ends = np.cumsum(np.bincount(group, minlength=len(ranked)))
        del group
        sorted_columns = self._arranged(rows, last)
        for number, key in enumerate(ranked):
            part = slice(ends[number - 1] if number else 0, ends[number])
            at = rows[part]
            item, sample, passed, score, outcome = (column[part] for column in sorted_columns)
            values, label, scorers = groups[key]
            if label is None or (outcome == SKIPPED).all():
                continue
            facets = dict(zip(places, values, strict=True))
            yield Sample(
                label=label,
                facets=facets,
                item=item,
                sample=sample,
                passed=passed,
                score=score,
                outcome=outcome,
                load=partial(self._load, at),
                take=partial(self._take, at),
                planned=self.planned.count(facets, scorers),
                calibration=self.judges.calibration(label),
                warning=self.judges.warning(scorers, facets),
                lower_is_better=self.directions.lower(scorers),
            )

    def _arranged(self, rows: Ints, last: bool) -> list[npt.NDArray[Any]]:
        """Item, sample, passed, score and outcome in the order of `rows`."""
        found: list[npt.NDArray[Any]] = []
        for owner, name in (
            (self.columns, "item"),
            (self.columns, "sample"),
            (self, "passed"),
            (self, "score"),
            (self, "outcome"),
        ):
            column = getattr(owner, name)
            found.append(column[rows])
            if last:
                setattr(owner, name, np.empty(0, column.dtype))
                if name == "score":  # often the same array
                    self.columns.score = np.empty(0)
            del column
        return found

    def _ties(self, ordered: bool) -> list[npt.NDArray[Any]]:
        if not ordered:
            return [self.score]
        row = self.columns.row
        return [column if row is None else column[row] for column in tie_breakers(self.logs)]

    def _take(self, at: Ints, name: str) -> list[Any]:
        return self.further[name].take(at if self.columns.row is None else self.columns.row[at])

    def _load(self, at: Ints) -> list[dict[str, Any]]:
        sources = np.searchsorted(self.columns.starts, at, side="right") - 1
        places = zip(sources.tolist(), self.columns.positions[at].tolist(), strict=True)
        return [decode_row(self.logs[source].read(position), "evaluation row") for source, position in places]


def _check_labels(bound: BoundMetric, labels: set[str], columns: Columns) -> None:
    """A label that is included and that no row has is a slip, unless all calls failed before they could name one."""
    scored = any(combination.outcome == "scored" for combination in columns.combinations)
    for pattern in bound.include:
        if scored and not any(label == pattern or fnmatchcase(label, pattern) for label in labels):
            raise UserError(
                f"no row has the label {pattern!r}", where=f"metric {bound.name}", fix=nearest(pattern, labels)
            )


def _sorted(group: Codes, item: Codes, sample: Codes, ties: Callable[[], list[npt.NDArray[Any]]]) -> Ints:
    """The order of rows by group, item and sample.

    Rows may tie, as those of two models without a facet for the model. Then `ties` decides: their keys where their
    order matters, otherwise their scores, so that sums are equal to the last bit; never their place in a file.
    """
    lowest = int(sample.min())
    items, samples = int(item.max()) + 1, int(sample.max()) - lowest + 1
    if (int(group.max()) + 1) * items * samples < 2**62:
        joint = group.astype(np.int64)
        joint *= items
        joint += item
        joint *= samples
        joint += sample - lowest
        found = np.argsort(joint)
        joint.sort()
        if not (joint[1:] == joint[:-1]).any():
            return found
    return np.lexsort((*ties(), sample, item, group))
