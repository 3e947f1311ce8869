"""How often a judge is right: rates, agreement, sensitivity and specificity, each with an interval over items; and
what the pass rate of each model would be by people's verdicts.

Answers that were more likely to be chosen for labelling count less (`Answer.weight`).
"""

from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np

from assay.analysis.judge.judged import JudgedAnswer, JudgedLabel
from assay.sdk import FloatArray, IntArray, Mask, Resampled, values_by_key
from assay.stats.correction import (
    Confusion,
    CorrectedRate as Correction,
    from_labels,
    rogan_gladen,
    weighted_interval,
    worth,
)
from assay.stats.intervals import codes_of
from assay.stats.resampling import statistic_interval

Ints = IntArray
KINDS = (0.0, 0.5, 1.0)  # fail, tie, pass
_STEPS = 10  # of a curve


class Estimate(msgspec.Struct, kw_only=True):
    """A number with its interval; `n` answers are behind it. Without a value or an interval, `method` says why."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    n: int = 0


def none(why: str, n: int = 0) -> Estimate:
    return Estimate(method=f"none: {why}", n=n)


class Verdicts(NamedTuple):
    """Columns of the answers that both have a verdict on."""

    item: Ints
    truth: FloatArray
    judge: FloatArray
    weight: FloatArray

    def where(self, chosen: Mask) -> "Verdicts":
        return Verdicts._make(column[chosen] for column in self)

    def without_ties(self) -> "Verdicts":
        """Return those that neither calls a tie."""
        return self.where((self.truth != 0.5) & (self.judge != 0.5))

    def mean(self, values: FloatArray, level: float, missing: str = "") -> Estimate:
        """Return the mean of values from 0 to 1; `missing` says why there may be none."""
        if not len(values):
            return none(missing)
        value = np.average(values, weights=self.weight)
        interval = weighted_interval(self.item, values, self.weight, level)
        return Estimate(value=float(value), n=len(values), **interval._asdict())


class CurvePoint(msgspec.Struct, kw_only=True):
    """Answers that the judge gave about this score, and the share of them that people passed."""

    score: float
    passed: Estimate


def curve_of(answers: Sequence[JudgedAnswer], level: float) -> list[CurvePoint]:
    """Return what people said of answers with low and with high scores: by score where there are
    few, else by tenths. None where the judge only says pass or fail, or is not on a scale from 0
    to 1."""
    graded = verdicts_of([answer for answer in answers if answer.truth in (0, 1)], "score")
    steps = scores = graded.judge
    if len(np.unique(scores)) < 3 or scores.min() < 0 or scores.max() > 1:
        return []
    if len(np.unique(scores)) > _STEPS:
        steps = np.minimum(np.floor(scores * _STEPS), _STEPS - 1)
    points: list[CurvePoint] = []
    for step in np.unique(steps):
        alike = graded.where(steps == step)
        score = float(np.average(alike.judge, weights=alike.weight))
        points.append(CurvePoint(score=score, passed=alike.mean(alike.truth, level)))
    return points


def item_codes(answers: Sequence[JudgedAnswer]) -> Ints:
    """A number for each answer's item."""
    return codes_of([answer.item for answer in answers])


def verdicts_of(answers: Sequence[JudgedAnswer], judge: str = "judge") -> Verdicts:
    """Return the verdicts of the answers that have both; `judge`: or the judge's score."""
    columns = np.array(
        [(one.truth, getattr(one, judge), one.weight) for one in answers], np.float64
    ).reshape(-1, 3)
    both: Mask = np.isfinite(columns.sum(axis=1))
    return Verdicts(item_codes([*compress(answers, both.tolist())]), *columns[both].T)


def confusion(verdicts: Verdicts) -> Confusion:
    """Decided answers by both verdicts: how many independent ones they are worth. Where answers
    share an item, or some stand for more than others, that is fewer than were labelled."""
    decided = verdicts.without_ties()
    cells: dict[float, tuple[float, float]] = {}
    for kind in (1.0, 0.0):
        alike = decided.where(decided.truth == kind)
        size = worth(alike.item, alike.judge, alike.weight)
        passes = size * float(np.average(alike.judge, weights=alike.weight)) if size else 0.0
        cells[kind] = passes, size - passes
    return Confusion(tp=cells[1.0][0], fn=cells[1.0][1], fp=cells[0.0][0], tn=cells[0.0][1])


def kappa(verdicts: Verdicts, level: float) -> Estimate:
    """Cohen's κ of judge and people. What was not seen is an answer of each verdict on which they
    agree, and one on which they do not: a judge that was right on all answers may yet be wrong."""
    if not len(verdicts.item):
        return none("no answer has both verdicts")
    truth, judge = (2 * np.stack(verdicts[1:3])).astype(np.int64)
    given = np.unique([*truth, *judge])
    truth, judge = np.append(truth, [given, given]), np.append(judge, [given, np.roll(given, 1)])
    items, more = int(verdicts.item.max()) + 1, 2 * len(given)
    tables = np.zeros((items + more, len(KINDS) ** 2))
    owner = np.append(verdicts.item, items + np.arange(more))
    weight = np.append(verdicts.weight, np.full(more, verdicts.weight.mean()))
    np.add.at(tables, (owner, truth * len(KINDS) + judge), weight)
    resampled = Resampled(
        (np.arange(len(tables)) < items).astype(np.int64),
        lambda weights: _kappa(weights @ tables),
        unseen=np.arange(items, len(tables)),
        scale=(-1.0, 1.0),
        kind=np.arange(items),
    )
    value = float(_kappa(tables[:items].sum(axis=0, keepdims=True))[0])
    if not np.isfinite(value):
        return none("people and judge gave one and the same verdict throughout", len(verdicts.item))
    low, high, method = statistic_interval(resampled, level)
    return Estimate(value=value, low=low, high=high, method=method, n=len(verdicts.item))


def _kappa(tables: FloatArray) -> FloatArray:
    """κ of flattened tables of two people's verdicts; NaN where chance is complete."""
    square = tables.reshape(len(tables), len(KINDS), len(KINDS))
    square = square / square.sum(axis=(1, 2), keepdims=True)
    agreed = np.trace(square, axis1=1, axis2=2)
    by_chance = (square.sum(axis=1) * square.sum(axis=2)).sum(axis=1)
    possible = by_chance < 1 - 1e-12
    return np.where(possible, (agreed - by_chance) / np.where(possible, 1 - by_chance, 1), np.nan)


# ---- the rates that the judge's errors leave


class Corrected(msgspec.Struct, kw_only=True):
    """The rate as the judge has it, and corrected: by its errors on all labelled answers, and by the labels of this
    model's own answers, with the judge's help where that makes the interval shorter."""

    raw: Estimate
    rogan_gladen: Estimate
    ppi: Estimate


def corrected_rates(judged: JudgedLabel, errors: Confusion, level: float) -> dict[str, Corrected]:
    """By model; in a match by pair, as the rate at which the first player wins."""
    answers = sorted(judged.answers, key=attrgetter("model"))
    models = values_by_key((each.model, each) for each in answers if each.judge is not None)
    return {model: _of_model(own, errors, level) for model, own in models.items()}


def _of_model(answers: list[JudgedAnswer], errors: Confusion, level: float) -> Corrected:
    truth, judge, weight = np.array(
        [(answer.truth, answer.judge, answer.weight) for answer in answers], np.float64
    ).T  # no truth is NaN
    item = item_codes(answers)
    decided = Verdicts(item, truth, judge, np.ones(len(item))).where(judge != 0.5)
    raw = decided.mean(decided.judge, level, "every verdict is a tie")
    by_errors = raw
    if raw.value is not None:
        size = worth(decided.item, decided.judge, decided.weight)
        by_errors = _estimate(rogan_gladen(raw.value, size, errors, level), raw.n)
    by_labels = from_labels(judge, truth, item, weight, level)
    return Corrected(raw=raw, rogan_gladen=by_errors, ppi=_estimate(by_labels, len(answers)))


def _estimate(correction: Correction, n: int) -> Estimate:
    if correction.value is None:
        return none(correction.reason or "there is no value", n)
    return msgspec.structs.replace(msgspec.convert(correction, Estimate, from_attributes=True), n=n)
