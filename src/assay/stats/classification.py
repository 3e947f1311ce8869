"""Scores of a classifier from its confusion matrix. Where a ratio has nothing to divide by it is 0, as in scikit-learn.

The matrix has a row for each true class and a column for each predicted one; a further column holds cases without a
prediction, which are wrong and belong to no class.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray, Resampled

Matrix = npt.NDArray[np.int64]
NONE = -1


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


def confusion(actual: Sequence[int], predicted: Sequence[int], classes: int) -> Matrix:
    """Counts by (true class, predicted class); classes are numbers from 0, and NONE is a missing prediction."""
    true, guessed = np.asarray(actual, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    guessed = np.where(guessed == NONE, classes, guessed)
    return np.bincount(true * (classes + 1) + guessed, minlength=classes * (classes + 1)).reshape(
        classes, classes + 1
    )


def scores(matrix: Matrix) -> Scores:
    """All scores of a confusion matrix that is not empty."""
    classes, total = len(matrix), int(matrix.sum())
    hits, support, guessed = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    precision, recall = _ratio(hits, guessed[:classes]), _ratio(hits, support)
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
            "macro": _named(*(float(each.mean()) for each in (precision, recall, f1))),
            "micro": _named(*micro),
            "weighted": _named(
                *(float((each * support).sum() / total) for each in (precision, recall, f1))
            ),
        },
        mcc=(correct * total - agreed) / spread**0.5 if spread else 0.0,
        kappa=(correct * total - agreed) / (total**2 - agreed) if total**2 != agreed else 0.0,
    )


def _named(precision: float, recall: float, f1: float) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": f1}


def _ratio(part: Matrix, whole: Matrix) -> FloatArray:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def macro_f1s(true: Matrix, guessed: Matrix, weights: Matrix) -> FloatArray:
    """The mean F1 of the classes that occur, for each row of weights of the cells (true class, predicted class)."""
    classes = np.eye(int(max(true.max(), guessed.max())) + 1)
    is_true, is_predicted = classes[true], classes[guessed] * (guessed != NONE)[:, None]
    counts = weights.astype(np.float64)
    both = counts @ (is_true + is_predicted)
    f1 = np.divide(
        2 * (counts @ (is_true * is_predicted)), both, out=np.zeros_like(both), where=both > 0
    )
    return f1.sum(axis=1) / np.count_nonzero(both, axis=1)


def resampled(
    matrix: Matrix,
    item: npt.NDArray[np.integer],
    true: Sequence[int],
    guess: Sequence[int],
    name: str,
    sought: int,
) -> Resampled:
    """How a score of these cases, which belong to items, changes with the items; `sought` is the positive class."""
    columns = matrix.shape[1]
    codes = np.asarray(true) * columns + np.where(np.equal(guess, NONE), columns - 1, guess)
    cells, cell = cast("tuple[Matrix, Matrix]", np.unique(codes, return_inverse=True))
    kinds, counts = kinds_of_items(item, cell)

    def statistic(weights: Matrix) -> FloatArray:
        made = np.zeros((len(weights), matrix.size))
        made[:, cells] = weights @ kinds
        return _score_of_each(made.reshape(-1, *matrix.shape), name, sought)

    return Resampled(counts, statistic)


def kinds_of_items(item: npt.NDArray[np.integer], cell: Matrix) -> tuple[Matrix, Matrix]:
    """How often each kind of item has each cell, and how many items are of each kind."""
    _, place = cast("tuple[object, Matrix]", np.unique(item, return_inverse=True))
    if int(place.max()) + 1 == len(place):
        return np.eye(int(cell.max()) + 1, dtype=np.int64), np.bincount(cell)
    profiles = np.zeros((int(place.max()) + 1, int(cell.max()) + 1), np.int64)
    np.add.at(profiles, (place, cell), 1)
    return np.unique(profiles, axis=0, return_counts=True)


def _score_of_each(matrices: FloatArray, name: str, sought: int) -> FloatArray:
    """One score of each of many confusion matrices; averages are over the classes that occur in it."""
    classes = matrices.shape[1]
    hits, support = matrices.diagonal(axis1=1, axis2=2), matrices.sum(axis=2)
    guessed = matrices.sum(axis=1)
    total, answered = support.sum(axis=1), guessed[:, :classes].sum(axis=1)
    correct, agreed = hits.sum(axis=1), (support * guessed[:, :classes]).sum(axis=1)
    f1 = _over(2 * hits, guessed[:, :classes] + support)
    spread = (total**2 - (guessed**2).sum(axis=1)) * (total**2 - (support**2).sum(axis=1))
    made: dict[str, FloatArray] = {
        "balanced_accuracy": _over(_over(hits, support).sum(axis=1), (support > 0).sum(axis=1)),
        "macro_f1": _over(f1.sum(axis=1), (guessed[:, :classes] + support > 0).sum(axis=1)),
        "micro_f1": _over(2 * correct, answered + total),
        "weighted_f1": _over((f1 * support).sum(axis=1), total),
        "mcc": _over(correct * total - agreed, np.sqrt(spread)),
        "kappa": _over(correct * total - agreed, total**2 - agreed),
    }
    if name in made:
        return made[name]
    if sought < 0:
        return np.zeros(len(matrices))
    tp, fn, fp = (
        hits[:, sought],
        (support - hits)[:, sought],
        (guessed[:, :classes] - hits)[:, sought],
    )
    positive = {
        "precision": (tp, tp + fp),
        "recall": (tp, tp + fn),
        "f1": (2 * tp, 2 * tp + fp + fn),
    }
    part, whole = positive.get(name) or (total - tp - fn - fp, total - tp - fn)
    return _over(part, whole)


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
