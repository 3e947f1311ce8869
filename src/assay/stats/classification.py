"""Scores of a classifier from its confusion matrix. Where a ratio has nothing to divide by it is 0, as in scikit-learn.

The matrix has a row for each true class and a column for each predicted one; a further column holds cases without a
prediction, which are wrong and belong to no class.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray, IntArray, Integers, Mask, Resampled
from assay.stats.intervals import Interval, codes_of
from assay.stats.resampling import of_cells
from assay.stats.student import t_quantile

Matrix = IntArray
NONE = -1
_FEW = 5
_FOLDED = (2 / math.pi) ** 0.5  # the mean of |x| for standard normal x


class Scores(msgspec.Struct, kw_only=True):
    """`precision`, `recall`, `f1` and `support` have an entry for each class."""

    accuracy: float
    balanced_accuracy: float
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    support: Matrix
    averages: dict[str, dict[str, float]]
    mcc: float
    kappa: float


def confusion(actual: npt.ArrayLike, predicted: npt.ArrayLike, classes: int) -> Matrix:
    """Counts by (true class, predicted class); classes are numbers from 0, and NONE is a missing prediction."""
    true = np.asarray(actual, dtype=np.int64)
    guessed = np.asarray(predicted, dtype=np.int64)
    guessed = np.where(guessed == NONE, classes, guessed)
    return np.bincount(true * (classes + 1) + guessed, minlength=classes * (classes + 1)).reshape(
        classes, classes + 1
    )


def scores(matrix: Matrix) -> Scores:
    """All scores of a confusion matrix that is not empty."""
    classes = len(matrix)
    total = int(matrix.sum())
    hits = np.diag(matrix)
    support = matrix.sum(axis=1)
    guessed = matrix.sum(axis=0)
    precision = _ratio(hits, guessed[:classes])
    recall = _ratio(hits, support)
    f1 = _ratio(2 * hits, guessed[:classes] + support)
    correct = int(hits.sum())
    # total² times the agreement of independent guesses
    agreed = float((support * guessed[:classes]).sum())
    spread = (total**2 - float((guessed**2).sum())) * (total**2 - float((support**2).sum()))
    answered = int(guessed[:classes].sum())
    micro = (
        correct / answered if answered else 0.0,
        correct / total,
        2 * correct / (answered + total),
    )
    return Scores(
        accuracy=correct / total,
        balanced_accuracy=float(recall[support > 0].mean()),
        precision=precision,
        recall=recall,
        f1=f1,
        support=support,
        averages={
            "macro": _class_scores(*(float(each.mean()) for each in (precision, recall, f1))),
            "micro": _class_scores(*micro),
            "weighted": _class_scores(
                *(float((each * support).sum() / total) for each in (precision, recall, f1))
            ),
        },
        mcc=(correct * total - agreed) / spread**0.5 if spread else 0.0,
        kappa=(correct * total - agreed) / (total**2 - agreed) if total**2 != agreed else 0.0,
    )


def _class_scores(precision: float, recall: float, f1: float) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": f1}


def _ratio(part: Matrix, whole: Matrix) -> FloatArray:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def resampled(matrix: Matrix, item: Integers, true: Matrix, guess: Matrix, name: str) -> Resampled:
    """Return how a score of these cases, which belong to items, changes with the items. What was
    not seen is one right answer to each class and one without a prediction."""
    classes, columns = matrix.shape
    codes = true * columns + np.where(guess == NONE, classes, guess)
    right = np.arange(classes) * (columns + 1)
    wrong = np.arange(classes) * columns + classes
    cells, cell = np.unique(np.concatenate([codes, right, wrong]), return_inverse=True)

    def statistic(weights: FloatArray) -> FloatArray:
        made = np.zeros((len(weights), matrix.size))
        made[:, cells] = weights
        return _score_of_each(made.reshape(-1, *matrix.shape), name)

    scale = (-1.0 if name in ("mcc", "kappa") else 0.0), 1.0
    return of_cells(item, cell, 2 * classes, statistic, scale)


def _score_of_each(matrices: FloatArray, name: str) -> FloatArray:
    """One score of each of many confusion matrices; averages are over the classes that occur in it."""
    classes = matrices.shape[1]
    hits = matrices.diagonal(axis1=1, axis2=2)
    support = matrices.sum(axis=2)
    guessed = matrices.sum(axis=1)
    both = guessed[:, :classes] + support
    total = support.sum(axis=1)
    f1 = _over(2 * hits, both)
    if name == "balanced_accuracy":
        return _over(_over(hits, support).sum(axis=1), (support > 0).sum(axis=1))
    if name == "macro_f1":
        return _over(f1.sum(axis=1), (both > 0).sum(axis=1))
    if name == "weighted_f1":
        return _over((f1 * support).sum(axis=1), total)
    agreed = (support * guessed[:, :classes]).sum(axis=1)
    beyond = hits.sum(axis=1) * total - agreed
    if name == "kappa":
        return _over(beyond, total**2 - agreed)
    spread = (total**2 - (guessed**2).sum(axis=1)) * (total**2 - (support**2).sum(axis=1))
    return _over(beyond, np.sqrt(spread))


def area(score: FloatArray, positive: Mask, item: Integers, level: float) -> tuple[float, Interval]:
    """Return the area under the ROC curve of these rows, and its interval.

    It is Newcombe's (2006, method 5): all areas from which the one that was found is not too far,
    measured by the variance that Hanley and McNeil (1982) give for that area. Items with several
    rows, ties and scores of other shapes make another variance than theirs. How much more is told
    by DeLong's (1988) over items, drawn towards 1 with the weight of two items of the rarer class,
    which was chosen by simulation.
    """
    value, variance = _delong(score, positive, item)
    sizes = [len(np.unique(item[here])) for here in (positive, ~positive)]
    areas = np.linspace(0.0, 1.0, 4001)
    usual = float(_area_variance(np.array(value), *sizes))
    telling = min(sizes) - 1
    effect = (telling * variance / usual + 2) / (telling + 2) if usual > 0 else 1.0
    expected = np.maximum(effect * _area_variance(areas, *sizes), 1e-300)
    quantile = t_quantile((1 + level) / 2, max(len(np.unique(item)) - 2, 1))
    distance = np.minimum.accumulate((value - areas) / np.sqrt(expected))
    low, high = np.interp((-quantile, quantile), -distance, areas).tolist()
    weak = f"; weak: fewer than {_FEW} items of a class" if min(sizes) < _FEW else ""
    return value, Interval(min(low, value), max(high, value), f"newcombe{weak}")


def _delong(score: FloatArray, positive: Mask, item: Integers) -> tuple[float, float]:
    """Return the area, and its variance over items."""
    ranks = _midranks(score)
    own = np.zeros(len(score))
    for here, sign in ((positive, 1), (~positive, -1)):
        ahead = sign * (ranks[here] - _midranks(score[here])) / np.sum(~here)
        own[here] = (ahead - ahead.mean()) / max(len(ahead) * (len(ahead) - 1), 1) ** 0.5
    place = codes_of(item)
    number = int(positive.sum())
    others = int((~positive).sum())
    ahead = float(ranks[positive].sum()) - number * (number + 1) / 2
    return ahead / (number * others), float((np.bincount(place, own) ** 2).sum())


def _midranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value from 1, the mean rank where several are equal."""
    place = codes_of(values)
    counts = np.bincount(place)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _area_variance(area: FloatArray, positives: int, negatives: int) -> FloatArray:
    """Hanley and McNeil's (1982), of scores that are distributed exponentially."""
    first = area / (2 - area)
    second = 2 * area**2 / (1 + area)
    rest = (positives - 1) * (first - area**2) + (negatives - 1) * (second - area**2)
    return (area * (1 - area) + rest) / (positives * negatives)


def binned_error(
    right: Mask, sure: FloatArray, place: Matrix, item: Integers, level: float
) -> tuple[float, float, str]:
    """Return the interval of Σ (n_b / n) · |share that is right - mean confidence| over bins of
    infinitely many rows.

    Chance makes every gap larger, so that the sum of a calibrated model is not 0. It adds at most
    the sum of what it makes of gaps that are 0, which the lower end leaves out, and it takes away
    nothing on average, so that the upper end is the usual one.
    """
    number = np.bincount(place)
    number = number[number > 0]
    place = codes_of(place)
    mean, rate = (np.bincount(place, each) / number for each in (sure, right))
    gaps = rate - mean
    share = number / len(place)
    found = float(share @ np.abs(gaps))
    effect = _effect(np.sign(gaps)[place] * (right - sure) - found, item)
    errors = share * np.sqrt(effect / number)
    rate = (number * rate + 0.5) / (number + 1)
    error, (_, most) = _by_chance(errors * np.sqrt(rate * (1 - rate)), level)
    high = found + NormalDist().inv_cdf((1 + level) / 2) * error
    _, band = _by_chance(errors * np.sqrt(mean * (1 - mean)), level)
    text = f"debiased; a calibrated model would have {band[0]:.2g}–{band[1]:.2g}"
    return max(found - most, 0.0), min(high, 1.0), text


def _by_chance(errors: FloatArray, level: float) -> tuple[float, tuple[float, float]]:
    """Return the standard error of a sum of gaps with these errors, and what it is mostly between if
    all gaps are 0: one gap is the worst case."""
    error = float(np.linalg.norm(errors))
    centre = float(errors.sum()) * _FOLDED
    reach = (NormalDist().inv_cdf((3 + level) / 4) - _FOLDED) * error
    return error, (max(centre - reach, 0.0), centre + reach)


def _effect(values: FloatArray, item: Integers) -> float:
    """Return how much more the sums of items vary than those of as many independent rows."""
    sums = np.bincount(codes_of(item), values)
    return max(1.0, float(sums @ sums) / max(float(values @ values), 1e-300))


def _over(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole > 0)


def mean_ratio(
    hits: Mapping[str, int], counts: Mapping[str, int]
) -> tuple[float, dict[str, float]]:
    """The ratio of each label that occurs, and their unweighted mean; 0 if there is none."""
    each = {label: hits.get(label, 0) / count for label, count in counts.items()}
    return sum(each.values()) / len(each) if each else 0.0, each


def harmonic_mean(first: float, second: float) -> float:
    return 2 * first * second / (first + second) if first + second else 0.0
