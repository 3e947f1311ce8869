"""Strengths of players from their matches: the model of Bradley and Terry with ties after Davidson (1970).

Win, tie and loss of i against j are in the ratio e^(d/2) : ν : e^(-d/2), where d is the difference of their strengths.
The likelihood needs no more than how often each pair met, each player's points (a tie is half a one) and the number of
ties. It is concave, and Newton's steps are damped so that each of them climbs. Many sets of matches are fitted at once:
all arrays have a first axis for them.
"""

from typing import NamedTuple

import numpy as np

from assay.interfaces import FloatArray, IntArray

_MOST_STEPS = 200


class Tally(NamedTuple):
    """What the likelihood needs: matches by pair (sets x players x players), points (sets x players), ties (sets)."""

    played: FloatArray
    points: FloatArray
    ties: FloatArray


class Virtual(NamedTuple):
    """Weights of matches that nobody played, which keep every estimate finite: of each player against the average of
    the others, won and lost (sets x players), and between equals, tied and decided (sets)."""

    won: FloatArray
    lost: FloatArray
    tied: FloatArray
    decided: FloatArray


class DavidsonFit(NamedTuple):
    """Strengths that add up to 0 (sets x players), and ν (sets): 0 where there are no ties to explain."""

    strengths: FloatArray
    tie: FloatArray


def fit(
    tally: Tally,
    virtual: Virtual | None = None,
    *,
    start: DavidsonFit | None = None,
    tolerance: float = 1e-6,
) -> DavidsonFit:
    """The most likely strengths. Without virtual matches there are such only if `match_graph.bounded` says so.

    ν is a parameter if there are ties, or if `start` has it. The last step is at most `tolerance` long, and what is
    still missing after it about its square.
    """
    place = _beginning(tally) if start is None else parameters(start)
    for _ in range(_MOST_STEPS):
        gradient, information = slopes(place, tally, virtual)
        step = np.linalg.solve(information, gradient[..., None])[..., 0].astype(np.float64)
        place = place + step * _damping(step, tally.points.shape[1])
        if np.abs(step).max() < tolerance:
            break
    return fitted(place, tally.points.shape[1])


def even(weight: float, players: int) -> Virtual:
    """This many virtual matches for each player of one set, half won and half lost, and as many ties."""
    half = np.full((1, players), weight / 2)
    one = np.full(1, weight)
    return Virtual(half, half, one, one)


def chances(place: FloatArray, players: int) -> tuple[FloatArray, FloatArray]:
    """Return what each player may expect against each other one, points and ties (sets x players x
    players)."""
    strengths = place[:, :players]
    nu = np.exp(place[:, players])[:, None, None] if place.shape[1] > players else 0.0
    rise = np.exp((strengths[:, :, None] - strengths[:, None, :]) / 2)
    whole = rise + 1 / rise + nu
    tied = nu / whole
    return rise / whole + tied / 2, tied


def slopes(
    place: FloatArray, tally: Tally, virtual: Virtual | None
) -> tuple[FloatArray, FloatArray]:
    """The gradient of the log likelihood and its negative second derivatives at strengths (and, behind them, log ν)."""
    sets, players = tally.points.shape
    played = tally.played
    payoff, tied = chances(place, players)
    gradient = np.zeros_like(place)
    information = np.zeros((sets, place.shape[1], place.shape[1]))
    gradient[:, :players] = tally.points - (played * payoff).sum(axis=2)
    spread = played * (payoff - tied / 4 - payoff**2)
    inner = information[:, :players, :players]
    inner -= spread
    at = np.arange(players)
    inner[:, at, at] += spread.sum(axis=2)
    if place.shape[1] > players:
        ties = played * tied
        gradient[:, players] = tally.ties - ties.sum(axis=(1, 2)) / 2
        information[:, :players, players] = information[:, players, :players] = (
            ties * (0.5 - payoff)
        ).sum(axis=2)
        information[:, players, players] = (ties * (1 - tied)).sum(axis=(1, 2)) / 2
    inner += (
        spread.sum(axis=(1, 2))[:, None, None] + 1
    ) / players**2  # only differences are known: this keeps the sum
    if virtual is not None:
        add_virtual(gradient, information, place, virtual)
    return gradient, information


def add_virtual(
    gradient: FloatArray, information: FloatArray | None, place: FloatArray, virtual: Virtual
) -> None:
    """Add what virtual matches contribute to the slopes."""
    players = virtual.won.shape[1]
    # a player's lead over the mean of the others, from that over the mean of all
    scale = players / (players - 1)
    strengths = place[:, :players]
    chance = 1 / (1 + np.exp(-scale * (strengths - strengths.mean(axis=1, keepdims=True))))
    weight = virtual.won + virtual.lost
    pull = scale * (virtual.won - weight * chance)
    gradient[:, :players] += pull - pull.mean(axis=1, keepdims=True)
    if information is not None:
        curve = scale**2 * weight * chance * (1 - chance)
        inner = information[:, :players, :players]
        inner -= (
            curve[:, :, None] + curve[:, None, :] - curve.mean(axis=1)[:, None, None]
        ) / players
        at = np.arange(players)
        inner[:, at, at] += curve
    if place.shape[1] > players:
        tied = 1 / (1 + 2 * np.exp(-place[:, players]))
        weight = virtual.tied + virtual.decided
        gradient[:, players] += virtual.tied - weight * tied
        if information is not None:
            information[:, players, players] += weight * tied * (1 - tied)


def fitted(place: FloatArray, players: int) -> DavidsonFit:
    """Strengths and ν from the parameters."""
    strengths = place[:, :players]
    tie = np.exp(place[:, players]) if place.shape[1] > players else np.zeros(len(place))
    return DavidsonFit(strengths - strengths.mean(axis=1, keepdims=True), tie)


def parameters(fitted: DavidsonFit) -> FloatArray:
    """The parameters of a fit: strengths, and log ν if there are ties."""
    if not fitted.tie.any():
        return fitted.strengths.copy()
    return np.concatenate([fitted.strengths, np.log(fitted.tie)[:, None]], axis=1)


def _beginning(tally: Tally) -> FloatArray:
    """The log odds of each player's points, with as many ties as there are."""
    lost = tally.played.sum(axis=2) - tally.points
    strengths = np.log((tally.points + 1) / (lost + 1))
    if not tally.ties.any():
        return strengths
    decided = tally.points.sum(axis=1) - tally.ties
    return np.concatenate(
        [strengths, np.log((2 * tally.ties + 1) / (decided + 1))[:, None]], axis=1
    )


def _damping(step: FloatArray, players: int) -> FloatArray:
    """The share of a Newton step that surely climbs: log(1 + m) / m, where m is the most that any log odds move (such
    functions are self-concordant; Sun and Tran-Dinh 2019). Near the maximum it is 1."""
    moved = np.abs(step[:, :players]).max(axis=1) + np.ptp(step[:, :players], axis=1)
    moved += np.abs(step[:, players:]).sum(axis=1) + 1e-300
    return (np.log1p(moved) / moved)[:, None]


PRIOR_VARIANCE = 1.0  # of a strength, in log odds: two players of the field differ by about one standard deviation


def choose_pairs(
    payoffs: FloatArray, available: IntArray, count: int, random: "np.random.Generator"
) -> list[tuple[int, int]]:
    """This many pairs (i < j), fewer if no more are `available`. `payoffs[i, j]` is what i won against j, ties half.

    A match is worth what it is expected to tell about an order that is open: pairs that are far apart, or have met
    often enough, are left alone. Within a round the uncertainty shrinks as if each match chosen were played, so that
    the round spreads.
    """
    strengths, covariance = posterior(payoffs)
    left = np.triu(available, 1).copy()
    gap = strengths[:, None] - strengths[None, :]
    information = 1 / (2 + 2 * np.cosh(gap))  # of one match, p (1 - p)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < count and left.any():
        own = np.diag(covariance)
        variance = np.maximum(own[:, None] + own[None, :] - 2 * covariance, 1e-12)
        worth = (
            information
            * variance
            / (1 + information * variance)
            * np.exp(-(gap**2) / (2 * variance))
        )
        worth = np.where(left > 0, worth * random.uniform(1, 1.01, worth.shape), -1.0)
        first, second = divmod(int(np.argmax(worth)), len(own))
        chosen.append((first, second))
        left[first, second] -= 1
        direction = covariance[:, first] - covariance[:, second]
        weight = information[first, second]
        covariance = covariance - np.outer(direction, direction) * (
            weight / (1 + weight * variance[first, second])
        )
    return chosen


def posterior(payoffs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The most probable strengths and their covariance, with a normal prior and by Newton's method."""
    games = payoffs + payoffs.T
    won = payoffs.sum(axis=1)
    strengths: FloatArray = np.zeros(len(payoffs))
    prior = np.eye(len(payoffs)) / PRIOR_VARIANCE
    covariance: FloatArray = PRIOR_VARIANCE * np.eye(len(payoffs))
    for _ in range(_MOST_STEPS):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        curvature = games * chance * (1 - chance)
        covariance = np.asarray(
            np.linalg.inv(np.diag(curvature.sum(axis=1)) - curvature + prior), np.float64
        )
        step = covariance @ (won - (games * chance).sum(axis=1) - strengths / PRIOR_VARIANCE)
        strengths = strengths + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return strengths, covariance
