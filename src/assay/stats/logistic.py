"""Logistic regression by Newton's method, with errors that allow for rows of one item being alike."""

from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray

_MOST_STEPS = 50
_LARGEST = 30.0  # on the scale of log odds: beyond it the fit runs off, as verdicts can be told apart without error


class Fitted(NamedTuple):
    """Coefficients in the order of the columns, and their cluster-robust covariance."""

    coefficients: FloatArray
    covariance: FloatArray


def logistic(
    columns: FloatArray, outcome: npt.NDArray[np.bool_], cluster: npt.NDArray[np.integer], weights: FloatArray
) -> Fitted | None:
    """Log odds of the outcome as a linear function of the columns; None where no finite one fits best."""
    coefficients = np.zeros(columns.shape[1])
    for _ in range(_MOST_STEPS):
        chance = 1 / (1 + np.exp(-columns @ coefficients))
        scores = columns * (weights * (outcome - chance))[:, None]
        information = (columns * (weights * chance * (1 - chance))[:, None]).T @ columns
        try:
            step = np.linalg.solve(information, scores.sum(axis=0))
        except np.linalg.LinAlgError:
            return None
        coefficients = coefficients + np.clip(step, -2, 2)
        if np.abs(columns @ coefficients).max() > _LARGEST:
            return None
        if np.abs(step).max() < 1e-9:
            return Fitted(coefficients, _robust(scores, information, cluster))
    return None


def _robust(scores: FloatArray, information: FloatArray, cluster: npt.NDArray[np.integer]) -> FloatArray:
    """The sandwich over clusters, with the usual factor for few of them."""
    _, inverse = cast("tuple[object, npt.NDArray[np.int64]]", np.unique(cluster, return_inverse=True))
    groups, (n, k) = int(inverse.max()) + 1, scores.shape
    sums = np.stack([np.bincount(inverse, weights=column) for column in scores.T], axis=1)
    bread = np.linalg.inv(information)
    factor = groups / max(groups - 1, 1) * (n - 1) / max(n - k, 1)
    return factor * bread @ (sums.T @ sums) @ bread
