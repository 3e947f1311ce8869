"""Labels of an index: which verdicts are those of a label, where several scorers gave it, or one
failed before it."""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from assay.sdk import OUTCOMES, FloatArray, IntArray
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
    """Return the labels by name. `rows` have verdicts of the series with these `codes`. A failure
    before a label was named counts under all labels of its scorer."""
    scored = [own for own in every.values() if own.scored]
    nameless = _nameless(every.values(), {own.scorer for own in scored})
    labels: dict[str, Label] = {}
    for series in every.values():
        if series in nameless:
            continue
        failed = [(own.number, True) for own in nameless if own.scorer == series.scorer]
        is_apart = series.scored and _share_answers(scored, series.label, rows, codes)
        name = f"{series.label} ({series.scorer})" if is_apart else series.label
        label = labels.setdefault(name, Label([], []))
        label.scorers.append(series.scorer)
        label.series += [(series.number, False), *(failed if series.scored else [])]
    return labels


def _nameless(every: Collection[Series], scorers: Collection[str]) -> list[Series]:
    return [
        own for own in every if not own.scored and own.label == own.scorer and own.scorer in scorers
    ]


def _share_answers(scored: Sequence[Series], label: str, rows: IntArray, codes: IntArray) -> bool:
    """Return whether several scorers gave the label to the same answer."""
    rivals = [own.number for own in scored if own.label == label]
    answers = [rows[(codes == number) & (rows >= 0)] for number in rivals]
    return any(len(np.intersect1d(*pair)) for pair in combinations(answers, 2))


def verdicts_of(label: Label | None, given: Mapping[str, Numbers], same: IntArray) -> Verdicts:
    """Return the verdicts of all rows under a label, as the engine counts them: a missing
    `passed` is the score if all such scores are 0 or 1. `same` has the row whose verdict another
    row has, else -1."""
    outcome, passed = np.full((2, len(same)), -1, np.int8)
    found = Verdicts(outcome, passed, np.full(len(same), np.nan))
    for number, is_failure in reversed(label.series if label else []):
        chosen = (given["series"] == number) & (given["row"] >= 0)
        if is_failure:
            chosen &= np.isin(given["outcome"], _FAILURES)
        at = np.flatnonzero(chosen)[::-1]  # what is assigned last counts: the first
        for name, column in found._asdict().items():
            column[given["row"][at]] = given[name][at]
    twins = np.flatnonzero(same >= 0)
    for column in found:
        column[twins] = column[same[twins]]
    is_bare = (passed < 0) & ~np.isnan(found.score)
    bare = found.score[is_bare]
    if ((bare == 0) | (bare == 1)).all():
        passed[is_bare] = bare
    return found
