"""Scores of a classifier from its confusion matrix. Where a ratio has nothing to divide by it is 0, as in scikit-learn.

The matrix has a row for each true class and a column for each predicted one; a further column holds cases without a
prediction, which are wrong and belong to no class.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray

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
    return np.bincount(true * (classes + 1) + guessed, minlength=classes * (classes + 1)).reshape(classes, classes + 1)


def scores(matrix: Matrix) -> Scores:
    """All scores of a confusion matrix that is not empty."""
    classes, total = len(matrix), int(matrix.sum())
    hits, support, guessed = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    precision, recall = _ratio(hits, guessed[:classes]), _ratio(hits, support)
    f1 = _ratio(2 * hits, guessed[:classes] + support)
    correct = int(hits.sum())
    agreed = float((support * guessed[:classes]).sum())  # total² times the agreement of independent guesses
    spread = (total**2 - float((guessed**2).sum())) * (total**2 - float((support**2).sum()))
    answered = int(guessed[:classes].sum())
    micro = (correct / answered if answered else 0.0, correct / total, 2 * correct / (answered + total))
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
            "weighted": _named(*(float((each * support).sum() / total) for each in (precision, recall, f1))),
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
    f1 = np.divide(2 * (counts @ (is_true * is_predicted)), both, out=np.zeros_like(both), where=both > 0)
    return f1.sum(axis=1) / np.count_nonzero(both, axis=1)


def mean_ratio(hits: Mapping[str, int], counts: Mapping[str, int]) -> tuple[float, dict[str, float]]:
    """The ratio of each label that occurs, and their unweighted mean; 0 if there is none."""
    each = {label: hits.get(label, 0) / count for label, count in counts.items()}
    return sum(each.values()) / len(each) if each else 0.0, each


def harmonic_mean(first: float, second: float) -> float:
    return 2 * first * second / (first + second) if first + second else 0.0
