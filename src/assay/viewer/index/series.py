"""Labels of an index: which verdicts are those of a label, where several scorers gave it, or one
failed before it."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from assay.interfaces import FloatArray, IntArray
from assay.records import OUTCOMES
from assay.viewer.index.packed import Numbers

_FAILURES = [OUTCOMES.index(name) for name in ("errored", "unparsed", "refused")]


class Series(msgspec.Struct):
    """The verdicts of one label of one scorer. `scored`: there are some beside failures."""

    label: str
    scorer: str
    scored: bool = False
    number: int = -1


class Label(msgspec.Struct):
    """A label as it is shown: the scorers that gave it, and the series with its verdicts, the
    first choice first; of some only the failures are."""

    scorers: list[str]
    series: list[tuple[int, bool]]


class Verdicts(NamedTuple):
    """Of every row the outcome (its place in OUTCOMES), whether it passed (both -1 for none), and
    the score."""

    outcome: Numbers
    passed: Numbers
    score: FloatArray


def make_labels(every: Mapping[str, Series], rows: IntArray, codes: IntArray) -> dict[str, Label]:
    """Return the labels by name. `rows` have verdicts of the series with these `codes`."""
    labels: dict[str, Label] = {}
    for name, series, failed in _by_name(every.values(), rows, codes):
        label = labels.setdefault(name, Label([], []))
        label.scorers.append(series.scorer)
        label.series += [(series.number, False), *((number, True) for number in failed)]
    return labels


def _by_name(
    every: Collection[Series], rows: IntArray, codes: IntArray
) -> Iterator[tuple[str, Series, list[int]]]:
    """Yield the series of labels, with those whose failures count as theirs. A label that several
    scorers gave to the same answer is `label (scorer)`; a failure before a label was named counts
    under all labels of its scorer."""
    scored = [series for series in every if series.scored]
    for series in every:
        own = [each for each in scored if each.scorer == series.scorer]
        if series.scored:
            rivals = [each.number for each in scored if each.label == series.label]
            name = series.label
            if _share_rows([rows[(codes == number) & (rows >= 0)] for number in rivals]):
                name = f"{name} ({series.scorer})"
            yield name, series, [each.number for each in every if _is_nameless(each, own)]
        elif not _is_nameless(series, own):
            yield series.label, series, []


def _is_nameless(series: Series, scored: Collection[Series]) -> bool:
    """Return whether there are failures alone, of a scorer that gave other labels."""
    scorers = {own.scorer for own in scored}
    return not series.scored and series.label == series.scorer and series.scorer in scorers


def _share_rows(several: list[IntArray]) -> bool:
    return any(len(np.intersect1d(*pair)) for pair in combinations(several, 2))


def verdicts_of(label: Label | None, given: Mapping[str, Numbers], same: IntArray) -> Verdicts:
    """Return the verdicts of all rows under a label, as the engine counts them: a missing
    `passed` is the score if all such scores are 0 or 1. `same` has the row whose verdict another
    row has, else -1."""
    outcome, passed = np.full((2, len(same)), -1, np.int8)
    score = np.full(len(same), np.nan)
    for number, is_failure in reversed(label.series if label else []):
        chosen = (given["series"] == number) & (given["row"] >= 0)
        if is_failure:
            chosen &= np.isin(given["outcome"], _FAILURES)
        at = np.flatnonzero(chosen)[::-1]  # what is assigned last counts: the first
        rows = given["row"][at]
        outcome[rows], passed[rows] = given["outcome"][at], given["passed"][at]
        score[rows] = given["score"][at]
    twins = np.flatnonzero(same >= 0)
    for column in (outcome, passed, score):
        column[twins] = column[same[twins]]
    is_bare = (passed < 0) & ~np.isnan(score)
    bare = score[is_bare]
    if ((bare == 0) | (bare == 1)).all():
        passed[is_bare] = bare
    return Verdicts(outcome, passed, score)
