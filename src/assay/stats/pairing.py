"""Which players should meet next: pairs whose order is in doubt, given the matches so far.

Strengths are those of the Bradley-Terry model with a normal prior, so that there are some before anybody has met. A
match is worth what it is expected to tell about an order that is open: pairs that are far apart are left alone, and so
are pairs that have met often enough.
"""

import numpy as np
import numpy.typing as npt

from assay.interfaces import FloatArray

PRIOR_VARIANCE = 1.0  # of a strength, in log odds: two players of the field differ by about one standard deviation
_MOST_STEPS = 100


def choose_pairs(
    payoffs: FloatArray, available: npt.NDArray[np.int64], count: int, random: "np.random.Generator"
) -> list[tuple[int, int]]:
    """This many pairs (i < j), fewer if no more are `available`. `payoffs[i, j]` is what i won against j, ties half.

    Within a round the uncertainty shrinks as if each match chosen were played, so that the round spreads.
    """
    strengths, covariance = posterior(payoffs)
    left = np.triu(available, 1).copy()
    gap = strengths[:, None] - strengths[None, :]
    information = 1 / (2 + 2 * np.cosh(gap))  # of one match, p (1 - p)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < count and left.any():
        own = np.diag(covariance)
        variance = np.maximum(own[:, None] + own[None, :] - 2 * covariance, 1e-12)
        worth = information * variance / (1 + information * variance) * np.exp(-(gap**2) / (2 * variance))
        worth = np.where(left > 0, worth * random.uniform(1, 1.01, worth.shape), -1.0)
        first, second = divmod(int(np.argmax(worth)), len(own))
        chosen.append((first, second))
        left[first, second] -= 1
        direction = covariance[:, first] - covariance[:, second]
        weight = information[first, second]
        covariance = covariance - np.outer(direction, direction) * (weight / (1 + weight * variance[first, second]))
    return chosen


def posterior(payoffs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The most probable strengths and their covariance, by Newton's method."""
    games = payoffs + payoffs.T
    won = payoffs.sum(axis=1)
    strengths: FloatArray = np.zeros(len(payoffs))
    prior = np.eye(len(payoffs)) / PRIOR_VARIANCE
    covariance: FloatArray = PRIOR_VARIANCE * np.eye(len(payoffs))
    for _ in range(_MOST_STEPS):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        curvature = games * chance * (1 - chance)
        covariance = np.asarray(np.linalg.inv(np.diag(curvature.sum(axis=1)) - curvature + prior), np.float64)
        step = covariance @ (won - (games * chance).sum(axis=1) - strengths / PRIOR_VARIANCE)
        strengths = strengths + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return strengths, covariance
