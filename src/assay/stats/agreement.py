"""How far raters agree: percent, Cohen's κ, Fleiss' κ and Krippendorff's α, with any votes missing.

All four are 1 - observed / expected disagreement (percent: 1 - observed); they differ in who is expected to meet whom.
Everything is summed from patterns of votes, so that a resample of items costs a few products of small matrices. The
item is the unit: several answers to one item are drawn together.
"""

from itertools import combinations
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from assay.interfaces import FloatArray, IntArray, Integers, Resampled
from assay.stats.intervals import Interval, item_contributions, mean_interval, no_interval
from assay.stats.resampling import of_cells, statistic_interval

Coefficient = Literal["percent", "cohen_kappa", "fleiss_kappa", "krippendorff_alpha"]
Level = Literal["nominal", "ordinal", "interval"]
Ints = IntArray
MISSING = -1
MOST_VALUES = 256
_ONE_VALUE = "all votes are the same, so that agreement by chance would be complete too"
_NO_PAIR = "no answer has two votes"


class RaterAgreement(msgspec.Struct, kw_only=True):
    """`value` is None where `reason` says why. `pairs` counts the pairs of votes on one answer. The interval comes from
    `resampled`, or for percent, a mean over items, from `per_item` with `answers`, the number of answers behind it."""

    value: float | None
    reason: str | None = None
    raters: int = 0
    answers: int = 0
    pairs: int = 0
    missing: int = 0
    resampled: Resampled | None = None
    per_item: FloatArray | None = None

    def interval(self, level: float = 0.95) -> Interval:
        """The confidence interval over items."""
        if self.value is None:
            return no_interval("there is no value")
        if self.per_item is not None:
            return mean_interval(self.per_item, samples=self.answers, scale=(0.0, 1.0), level=level)
        if self.resampled is None:
            return no_interval(f"{self.reason}")
        return statistic_interval(self.resampled, level)


def agreement(
    votes: FloatArray,
    item: Integers | None = None,
    *,
    coefficient: Coefficient = "krippendorff_alpha",
    level: Level = "nominal",
) -> RaterAgreement:
    """Return how far the columns of `votes` agree: a row for each answer, NaN where a rater gave no
    vote.

    `item` has the item of each answer; without it, each answer is one. `level` says how far two votes lie apart. At the
    nominal level they are equal or not. Further, for α, ordinal votes differ by their ranks and interval votes by their
    squared distance; for Cohen's κ these are the linear and the quadratic weights. Fleiss' κ and percent are nominal.
    """
    answers, raters = votes.shape
    item = np.arange(answers) if item is None else item
    given = np.isfinite(votes)
    per_answer = given.sum(axis=1)
    found = RaterAgreement(
        value=None,
        raters=raters,
        answers=int((per_answer > 1).sum()),
        pairs=int((per_answer * (per_answer - 1) // 2).sum()),
        missing=int(votes.size - given.sum()),
    )
    if not found.answers:
        found.reason = _NO_PAIR
        return found
    if coefficient == "percent":
        counted = per_answer > 1
        shares = 1 - _unequal(_value_codes(votes[counted])[0])
        found.value, found.per_item = (
            float(shares.mean()),
            item_contributions(item[counted], shares),
        )
        return found
    number = len(np.unique(votes[given]))
    if number > MOST_VALUES and (level != "interval" or coefficient == "fleiss_kappa"):
        found.reason = f"{number} different votes are too many for classes; use krippendorff_alpha at the interval level"
        return found
    resampled = _statistic(votes, item, coefficient, level)
    value = float(resampled.statistic(resampled.counts[None, :])[0])
    if np.isfinite(value):
        found.value = value
        found.resampled = resampled
    else:
        found.reason = _ONE_VALUE
    return found


def _statistic(
    votes: FloatArray, item: Integers, coefficient: Coefficient, level: Level
) -> Resampled:
    unseen = _unseen(votes, level)
    codes, values = _value_codes(np.vstack([votes, unseen]))
    patterns, pattern = np.unique(codes, axis=0, return_inverse=True)
    stretched = (values - values[0]) / max(values[-1] - values[0], 1e-300)
    statistic = {
        "cohen_kappa": _Cohen,
        "fleiss_kappa": _Fleiss,
        "krippendorff_alpha": _Krippendorff,
    }[coefficient](_Table(patterns, stretched), level)
    return of_cells(item, pattern.reshape(-1), len(unseen), statistic, (-1.0, 1.0))


def _unseen(votes: FloatArray, level: Level) -> FloatArray:
    """Return answers that stand for what did not happen: of each value, or of the lowest and the
    highest where votes are graded, one on which all agree and one on which the last rater does
    not."""
    values = np.unique(votes[np.isfinite(votes)])
    places = np.arange(len(values)) if level == "nominal" else np.array([0, len(values) - 1])
    agreed = np.repeat(values[places, None], votes.shape[1], axis=1)
    apart = agreed.copy()
    apart[:, -1] = values[np.where(places > 0, places - 1, min(1, len(values) - 1))]
    return np.vstack([agreed, apart])


# ---- patterns of votes


class _Table(NamedTuple):
    """The patterns of votes on one answer: `codes` are places in `values`, or MISSING. Values are stretched to 0…1,
    which changes no coefficient."""

    codes: Ints
    values: FloatArray

    def votes(self, codes: Ints, level: Level = "nominal") -> FloatArray:
        """Return how many of each row's votes are of each value; at the interval level their
        number, sum and squares."""
        rows, raters = np.nonzero(codes != MISSING)
        given = codes[rows, raters]
        if level == "interval":
            found = np.zeros((len(codes), 3))
            np.add.at(found, rows, self.values[given, None] ** np.arange(3))
        else:
            found = np.zeros((len(codes), len(self.values)))
            np.add.at(found, (rows, given), 1)
        return found


def _value_codes(votes: FloatArray) -> tuple[Ints, FloatArray]:
    given = np.isfinite(votes)
    values = np.unique(votes[given])
    return np.where(given, np.searchsorted(values, np.where(given, votes, 0)), MISSING).astype(
        np.int64
    ), values


# ---- disagreement


def _unequal(codes: Ints) -> FloatArray:
    """The share of each row's pairs of votes that differ; 0 for rows without a pair."""
    given = codes != MISSING
    pairs = np.zeros(len(codes))
    equal = np.zeros(len(codes))
    for one, other in combinations(range(codes.shape[1]), 2):
        both = given[:, one] & given[:, other]
        pairs += both
        equal += both & (codes[:, one] == codes[:, other])
    return np.where(pairs > 0, 1 - equal / np.maximum(pairs, 1), 0.0)


def _squared_differences(places: FloatArray, votes: FloatArray) -> FloatArray:
    """Σ(x - y)² over the ordered pairs of votes along the last axis: 2(m Σx² - (Σx)²) for m votes."""
    sums = (places * votes).sum(axis=-1)
    return 2 * (votes.sum(axis=-1) * (places**2 * votes).sum(axis=-1) - sums**2)


def _chance_agreement(
    first: FloatArray, second: FloatArray, values: FloatArray, level: Level
) -> FloatArray:
    """Σ p(x) q(y) δ(x, y) for each row of two matrices of votes: counts by value, or at the interval level moments."""
    if level == "interval":
        return (
            first[:, 0] * second[:, 2] + first[:, 2] * second[:, 0] - 2 * first[:, 1] * second[:, 1]
        )
    one = first.sum(axis=1, keepdims=True)
    other = second.sum(axis=1, keepdims=True)
    if level == "nominal":
        return (one * other)[:, 0] - (first * second).sum(axis=1)
    below = np.cumsum(first, axis=1)[:, :-1]
    also = np.cumsum(second, axis=1)[:, :-1]
    # |x - y| is the sum of the gaps between x and y
    between = below * (other - also) + also * (one - below)
    return between @ np.diff(values)


def _beyond_chance(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """1 - observed / expected; NaN where chance alone would agree completely."""
    possible = expected > 1e-12
    return np.where(possible, 1 - observed / np.where(possible, expected, 1), np.nan)


# ---- the coefficients, as functions of how many answers there are of each pattern


class _Fleiss:
    """Fleiss' κ (1971). With unequal numbers of votes, Gwet's generalisation (2014): the observed agreement is the mean
    over answers with two votes or more, the share of a value the mean of its shares in all answers."""

    def __init__(self, table: _Table, level: Level) -> None:
        votes = table.votes(table.codes)
        number = votes.sum(axis=1, keepdims=True)
        unequal = _unequal(table.codes)[:, None]
        self._observed = np.hstack([unequal, number > 1])
        self._shares = votes / np.maximum(number, 1)

    def __call__(self, weights: FloatArray) -> FloatArray:
        unequal, answers = (weights @ self._observed).T
        shares = weights @ self._shares
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
        corrected = _beyond_chance(unequal / np.maximum(answers, 1), 1 - (shares**2).sum(axis=1))
        return np.where(answers > 0, corrected, np.nan)


class _Cohen:
    """Cohen's κ (1960, 1968 with weights) over the answers that both voted on; of more than two raters the mean of all
    pairs (Light 1971)."""

    def __init__(self, table: _Table, level: Level) -> None:
        self._values = table.values
        self._level: Level = level
        self._pairs: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        for one, other in combinations(range(table.codes.shape[1]), 2):
            first = table.codes[:, [one]]
            second = table.codes[:, [other]]
            both = ((first != MISSING) & (second != MISSING)).astype(np.float64)
            if both.any():
                apart = self._distance(first, second) * both
                votes = [table.votes(codes, level) * both for codes in (first, second)]
                self._pairs.append((np.hstack([apart, both]), *votes))

    def _distance(self, first: Ints, second: Ints) -> FloatArray:
        if self._level == "nominal":
            return (first != second).astype(np.float64)
        apart = np.abs(self._values[first] - self._values[second])
        return apart if self._level == "ordinal" else apart**2

    def __call__(self, weights: FloatArray) -> FloatArray:
        total = np.zeros(len(weights))
        defined = np.zeros(len(weights))
        for observed, first, second in self._pairs:
            apart, answers = (weights @ observed).T
            expected = _chance_agreement(
                weights @ first, weights @ second, self._values, self._level
            )
            answers = np.maximum(answers, 1)
            kappa = _beyond_chance(apart / answers, expected / answers**2)
            total = total + np.nan_to_num(kappa)
            defined = defined + np.isfinite(kappa)
        return np.where(defined > 0, total / np.maximum(defined, 1), np.nan)


class _Krippendorff:
    """Krippendorff's α (2004): observed over the pairs within answers, expected over the pairs of all votes. Answers
    with fewer than two votes do not count."""

    def __init__(self, table: _Table, level: Level) -> None:
        self._level: Level = level
        number = (table.codes != MISSING).sum(axis=1)
        answers = number > 1
        self._answers = answers
        self._codes = table.codes[answers]
        self._given = (self._codes != MISSING).astype(np.float64)
        self._others = number[answers] - 1.0
        self._values = table.values
        votes = table.votes(table.codes, level)
        self._votes = np.hstack([number[:, None], votes]) * answers[:, None]
        self._differing = _unequal(self._codes) * (self._others + 1)
        if level == "interval":
            self._differing = self._apart(table.values[self._codes])

    def _apart(self, places: FloatArray) -> FloatArray:
        return _squared_differences(places, self._given) / self._others

    def __call__(self, weights: FloatArray) -> FloatArray:
        number, votes = np.split(weights @ self._votes, [1], axis=1)
        number = np.maximum(number[:, 0], 2)
        answers = weights[:, self._answers]
        # the distance of two values is that of their ranks among all votes
        if self._level == "ordinal":
            ranks = np.cumsum(votes, axis=1) - votes / 2
            observed = (answers * self._apart(ranks[:, self._codes])).sum(axis=1)
            expected = _squared_differences(ranks, votes)
        else:
            observed = answers @ self._differing
            expected = _chance_agreement(votes, votes, self._values, self._level)
        return _beyond_chance(observed / number, expected / (number * (number - 1)))
